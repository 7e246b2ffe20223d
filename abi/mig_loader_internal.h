/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* What the loader's files share; not installed. */
#ifndef MIG_LOADER_INTERNAL_H_
#define MIG_LOADER_INTERNAL_H_

#include "mig_loader.h"

/* The host's side of the negotiation. */
#define MIG_LOADER_ABI_MIN 1u
#define MIG_LOADER_ABI_MAX MIG_ABI_VERSION

/* Why each tried path failed. The first refusal of something that exists
 * decides the code: "not found" elsewhere says less. */
struct mig_loader_report {
  int32_t code; /* 0 until something was refused */
  size_t length;
  char text[sizeof(((struct mig_loader_error *)0)->message)];
};

/* Adds "\n  PATH: reason". A code of 0 stands for "not there". */
__attribute__((format(printf, 4, 5))) void mig_loader_note(
    struct mig_loader_report *report, int32_t code, const char *path,
    const char *format, ...);

/* What a loaded plugin's host sees instead of a missing optional op; a NULL in
 * it marks a required op. */
extern const struct mig_transport_ops mig_loader_default_ops;

/* Asks `query` for a table and copies it, completed, into *ops; *size is the
 * plugin's own. On failure notes why under `path` and answers -1. */
int mig_loader_negotiate(mig_transport_query_fn query, const char *path,
                         struct mig_transport_ops *ops, uint32_t *size,
                         struct mig_loader_report *report);

/* Whether `file`, which has `size` bytes, is an ELF file that needs more. */
int mig_loader_is_cut_off(const char *file, uint64_t size);

/* The function that was registered as `name`, or NULL. */
mig_transport_query_fn mig_loader_registered(const char *name);

#endif /* MIG_LOADER_INTERNAL_H_ */
