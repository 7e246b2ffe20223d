/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a process of its privileges searches, for privileged_test.sh. */
#include <stdio.h>
#include <sys/auxv.h>

#include "mig_loader.h"

int main(void) {
  struct mig_loader_error error = {.size = sizeof(error)};
  struct mig_plugin *plugin = NULL;
  printf("privileged %d\n", getauxval(AT_SECURE) != 0);
  for (size_t i = 0; mig_loader_search_dir(i) != NULL; ++i) {
    printf("directory %s\n", mig_loader_search_dir(i));
  }
  (void)mig_loader_open("none", &plugin, &error);
  printf("%s\n", error.message);
  return 0;
}
