/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-ins for the optional ops. An op gets no table, only a session, so they
 * are the same stateless functions for every plugin.
 */
#include <stdio.h>
#include <string.h>

#include "mig_loader_internal.h"

static int32_t fail(int32_t code, const char *op, const char *remedy,
                    struct mig_error *error) {
  if (error == NULL || error->size < sizeof(*error)) {
    return code;
  }
  memset((char *)error + sizeof(error->size), 0,
         error->size - sizeof(error->size));
  error->code = code;
  (void)snprintf(error->message, sizeof(error->message), "%s: %s", op, remedy);
  return code;
}

static int32_t unsupported(const char *op, const char *remedy,
                           struct mig_error *error) {
  char text[160];
  (void)snprintf(text, sizeof(text), "this plugin does not implement it; %s",
                 remedy);
  return fail(MIG_E_UNSUPPORTED, op, text, error);
}

static int32_t no_option_set(struct mig_context *context, const char *name,
                             const char *value, struct mig_error *error) {
  (void)context, (void)name, (void)value;
  return unsupported("option_set", "leave its options alone", error);
}

static int32_t no_option_get(struct mig_context *context, const char *name,
                             char *value, size_t size, size_t *needed,
                             struct mig_error *error) {
  (void)context, (void)name, (void)value, (void)size, (void)needed;
  return unsupported("option_get", "its options can't be read", error);
}

static int32_t no_probe(struct mig_context *context, struct mig_device *devices,
                        size_t max, size_t element_size, size_t *count,
                        struct mig_error *error) {
  (void)context, (void)devices, (void)max, (void)element_size;
  if (count != NULL) {
    *count = 0;
  }
  return unsupported("probe", "name what it shall use in the URI", error);
}

static const void *no_extension(struct mig_context *context, const char *id) {
  (void)context, (void)id;
  return NULL;
}

static int32_t no_remove_block(struct mig_session *session, uint32_t id,
                               struct mig_error *error) {
  (void)session, (void)id;
  return unsupported("remove_block", "keep the block until the session ends",
                     error);
}

static int32_t nothing_to_flush(struct mig_session *session,
                                struct mig_error *error) {
  (void)session, (void)error;
  return MIG_OK;
}

static int32_t no_event_fds(struct mig_session *session,
                            struct mig_event_fd *fds, size_t max,
                            size_t element_size, size_t *count,
                            struct mig_error *error) {
  (void)session, (void)fds, (void)max, (void)element_size;
  if (count != NULL) {
    *count = 0;
  }
  return unsupported("get_event_fds", "wait in progress, with a timeout",
                     error);
}

static int32_t no_arm(struct mig_session *session, uint64_t *deadline_ns,
                      struct mig_error *error) {
  (void)session, (void)deadline_ns;
  return unsupported("arm", "wait in progress, with a timeout", error);
}

/* A plugin without it never takes a silent peer for dead. */
static int32_t never_too_busy(struct mig_session *session, uint64_t max_ns,
                              struct mig_error *error) {
  (void)session;
  if (max_ns > MIG_HOST_BUSY_MAX_NS) {
    char text[120];
    (void)snprintf(text, sizeof(text),
                   "%llu ns are more than the limit of %llu ns: call it again "
                   "before that",
                   (unsigned long long)max_ns,
                   (unsigned long long)MIG_HOST_BUSY_MAX_NS);
    return fail(MIG_E_ARGUMENT, "host_busy", text, error);
  }
  return MIG_OK;
}

static int32_t no_caps(struct mig_session *session, struct mig_caps *caps,
                       struct mig_error *error) {
  (void)session, (void)caps;
  return unsupported("get_caps", "count on the ABI's minima", error);
}

static int32_t no_stats(struct mig_session *session, uint64_t *values,
                        size_t count) {
  (void)session, (void)values, (void)count;
  return MIG_E_UNSUPPORTED;
}

const struct mig_transport_ops mig_loader_default_ops = {
    .size = sizeof(struct mig_transport_ops),
    .abi_version = MIG_ABI_VERSION,
    .name = "",
    .version = "",
    .description = "",
    .licenses = "",
    .uri_schemes = "",
    .option_set = no_option_set,
    .option_get = no_option_get,
    .probe = no_probe,
    .get_extension = no_extension,
    .remove_block = no_remove_block,
    .flush = nothing_to_flush,
    .get_event_fds = no_event_fds,
    .arm = no_arm,
    .host_busy = never_too_busy,
    .get_caps = no_caps,
    .get_stats = no_stats,
};
