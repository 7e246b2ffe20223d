/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* Plugins that are linked into the executable. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mig_loader_internal.h"

struct entry {
  struct entry *next;
  mig_transport_query_fn query;
  char name[];
};

/* Entries are never removed: code that is linked in does not go away. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct entry *registry; /* guarded by registry_mutex */

static struct entry *find_locked(const char *name) {
  struct entry *entry = registry;
  while (entry != NULL && strcmp(entry->name, name) != 0) {
    entry = entry->next;
  }
  return entry;
}

static int32_t add_locked(const char *name, mig_transport_query_fn query) {
  struct entry *entry = find_locked(name);
  if (entry != NULL) {
    return entry->query == query ? MIG_OK : MIG_E_ARGUMENT;
  }
  size_t length = strlen(name) + 1;
  entry = malloc(sizeof(*entry) + length);
  if (entry == NULL) {
    return MIG_E_MEMORY;
  }
  memcpy(entry->name, name, length);
  entry->query = query;
  entry->next = registry;
  registry = entry;
  return MIG_OK;
}

int32_t mig_loader_register(const char *name, mig_transport_query_fn query) {
  if (name == NULL || *name == '\0' || strchr(name, '/') != NULL ||
      query == NULL) {
    return MIG_E_ARGUMENT;
  }
  (void)pthread_mutex_lock(&registry_mutex);
  int32_t code = add_locked(name, query);
  (void)pthread_mutex_unlock(&registry_mutex);
  return code;
}

mig_transport_query_fn mig_loader_registered(const char *name) {
  (void)pthread_mutex_lock(&registry_mutex);
  const struct entry *entry = find_locked(name);
  mig_transport_query_fn query = entry != NULL ? entry->query : NULL;
  (void)pthread_mutex_unlock(&registry_mutex);
  return query;
}
