/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* A host without a dynamic linker: it has only what it registers. */
#include <stdio.h>

#include "mig_loader.h"

extern int32_t mig_transport_query_example(uint32_t, uint32_t,
                                           const struct mig_transport_ops **,
                                           struct mig_error *);

int main(void) {
  struct mig_loader_error error = {.size = sizeof(error)};
  struct mig_plugin *plugin = NULL;
  struct mig_host_services services = {.size = sizeof(services)};
  struct mig_context *context = NULL;
  if (mig_loader_register("example", mig_transport_query_example) != MIG_OK ||
      mig_loader_open("example", &plugin, &error) != MIG_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const struct mig_transport_ops *ops = mig_plugin_ops(plugin);
  if (ops->context_create(&services, &context, NULL) != MIG_OK) {
    return 1;
  }
  ops->context_destroy(context);
  printf("%s %s from %s\n", ops->name, ops->version, mig_plugin_path(plugin));
  mig_loader_close(plugin);
  return 0;
}
