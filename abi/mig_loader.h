/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds, checks and loads transport plugins (a C API, no dependency but libdl).
 *
 * A name without '/' is looked for as NAME.so in each directory of
 * MIG_TRANSPORT_PLUGIN_PATH (colon-separated; ignored when the process is
 * privileged, as secure_getenv(3) says), then in the built-in plugin directory.
 * Registered plugins come before both, and executables in the build tree also
 * look into its plugin directory. The first that can be used is taken. A name
 * with '/' is a path.
 *
 * All functions are safe from any thread. A loaded plugin stays mapped until
 * the process ends (DESIGN H11); mig_loader_close frees only the handle.
 */
#ifndef MIG_LOADER_H_
#define MIG_LOADER_H_

#include "mig_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIG_LOADER_API __attribute__((visibility("default")))
#define MIG_LOADER_PATH_VARIABLE "MIG_TRANSPORT_PLUGIN_PATH"

struct mig_plugin; /* one loaded plugin */

/* Why loading failed, with every path that was tried, a line each. The caller
 * owns it and sets `size`. */
struct mig_loader_error {
  uint32_t size;
  int32_t code; /* enum mig_status: ARGUMENT, VERSION, UNSUPPORTED, ... */
  char message[4088];
};

/* Loads `name_or_path` and negotiates the ABI. *plugin is the caller's, to be
 * closed. Its ops table is a copy in which no op is NULL: missing optional ops
 * answer MIG_E_UNSUPPORTED (flush and host_busy: MIG_OK), a missing required
 * one is refused by name. Errors: ARGUMENT, VERSION, STRUCT_SIZE (a table too
 * short for a required op), UNSUPPORTED (not found, or no plugin), INTERNAL. */
MIG_LOADER_API int32_t mig_loader_open(const char *name_or_path,
                                       struct mig_plugin **plugin,
                                       struct mig_loader_error *error);

/* Frees the handle; NULL is ignored. Every context must be destroyed first. */
MIG_LOADER_API void mig_loader_close(struct mig_plugin *plugin);

/* Makes a plugin that is linked into this executable known as `name` (copied),
 * for hosts that can't dlopen. The same name and function again is MIG_OK, the
 * same name and another function ARGUMENT. */
MIG_LOADER_API int32_t mig_loader_register(const char *name,
                                           mig_transport_query_fn query);

/* The completed table: valid until mig_loader_close. */
MIG_LOADER_API const struct mig_transport_ops *mig_plugin_ops(
    const struct mig_plugin *plugin);
/* The file it came from, or "(registered)". Valid until mig_loader_close. */
MIG_LOADER_API const char *mig_plugin_path(const struct mig_plugin *plugin);
/* The table's size as the plugin gave it, for diagnosis. */
MIG_LOADER_API uint32_t mig_plugin_ops_size(const struct mig_plugin *plugin);

/* The i-th directory that is searched, or NULL past the end; the pointer is
 * valid until this thread's next call. */
MIG_LOADER_API const char *mig_loader_search_dir(size_t i);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MIG_LOADER_H_ */
