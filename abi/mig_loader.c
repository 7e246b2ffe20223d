/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* Where plugins are looked for, and what is done with a file that is found. */
#define _GNU_SOURCE
#include "mig_loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mig_loader_internal.h"

#define REGISTERED_PATH "(registered)"

struct mig_plugin {
  struct mig_transport_ops ops;
  uint32_t ops_size;
  void *handle; /* NULL if registered */
  char path[];
};

/* ------------------------------------------------------- search path -- */

/* Whether this executable was never moved out of the tree that built it.
 * Installed ones must not trust a directory that is somebody's checkout. */
static int runs_in_build_tree(void) {
  char exe[PATH_MAX];
  size_t root = strlen(MIG_LOADER_BUILD_ROOT);
  ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe));
  return getauxval(AT_SECURE) == 0 && root > 0 && length > (ssize_t)root &&
         memcmp(exe, MIG_LOADER_BUILD_ROOT "/", root + 1) == 0;
}

/* The i-th entry of a colon-separated list that is not empty (an empty one,
 * which means the working directory in PATH, is somebody's mistake here).
 * Answers its length, and 0 with *i less the number of entries at the end. */
static size_t list_entry(const char *list, size_t *i, const char **entry) {
  while (list != NULL && *list != '\0') {
    size_t length = strcspn(list, ":");
    if (length > 0 && (*i)-- == 0) {
      *entry = list;
      return length;
    }
    list += length + (list[length] == ':');
  }
  return 0;
}

const char *mig_loader_search_dir(size_t i) {
  static _Thread_local char dir[PATH_MAX];
  const char *entry = NULL;
  /* secure_getenv answers NULL to a privileged process. */
  size_t length =
      list_entry(secure_getenv(MIG_LOADER_PATH_VARIABLE), &i, &entry);
  if (length > 0) {
    (void)snprintf(dir, sizeof(dir), "%.*s", (int)length, entry);
    return dir;
  }
  if (runs_in_build_tree() && i-- == 0) {
    return MIG_LOADER_BUILD_DIR;
  }
  return i == 0 ? MIG_LOADER_PLUGINDIR : NULL;
}

/* -------------------------------------------------------- one candidate -- */

__attribute__((format(printf, 3, 4))) static void set_error(
    struct mig_loader_error *error, int32_t code, const char *format, ...) {
  const size_t head = offsetof(struct mig_loader_error, message);
  if (error == NULL || error->size <= head) {
    return;
  }
  memset((char *)error + sizeof(error->size), 0,
         error->size - sizeof(error->size));
  error->code = code;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(error->message, error->size - head, format, arguments);
  va_end(arguments);
}

static const char *errno_text(int number, char *buffer, size_t size) {
  return strerror_r(number, buffer, size); /* GNU's: any thread */
}

/* The absolute path of a regular file, to be freed; or NULL and a note. */
static char *find_file(const char *path, struct mig_loader_report *report) {
  char text[128];
  struct stat status;
  char *file = realpath(path, NULL);
  if (file == NULL || stat(file, &status) != 0) {
    int missing = errno == ENOENT || errno == ENOTDIR;
    mig_loader_note(report, missing ? 0 : MIG_E_UNSUPPORTED, path, "%s",
                    errno_text(errno, text, sizeof(text)));
  } else if (!S_ISREG(status.st_mode)) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, path,
                    "not a regular file: a plugin is a shared object");
  } else if (mig_loader_is_cut_off(file, (uint64_t)status.st_size)) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, path,
                    "cut off after %lld bytes: install it again",
                    (long long)status.st_size);
  } else {
    return file;
  }
  free(file);
  return NULL;
}

/* dlerror's text without the path that the report has anyway. */
static const char *dl_reason(const char *file) {
  const char *text = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc's and
                                   musl's are thread-local */
  size_t length = strlen(file);
  if (text == NULL) {
    return "unknown error of dlopen";
  }
  if (strncmp(text, file, length) == 0 &&
      strncmp(text + length, ": ", 2) == 0) {
    text += length + 2;
  }
  return text;
}

/* Where the object is mapped that `address` lies in. */
static const void *object_base(const void *address, const char **name) {
  Dl_info info;
  if (dladdr(address, &info) == 0) {
    return NULL;
  }
  *name = info.dli_fname;
  return info.dli_fbase;
}

/* The entry point, only if this very object defines it: dlsym also finds the
 * one of a plugin that this object merely depends on. */
static mig_transport_query_fn find_query(void *handle, const char *file,
                                         struct mig_loader_report *report) {
  mig_transport_query_fn query = NULL;
  struct link_map *map = NULL;
  const char *self = "";
  const char *owner = "";
  void *symbol = dlsym(handle, MIG_TRANSPORT_QUERY_SYMBOL);
  if (symbol == NULL) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, file,
                    "no transport plugin: it does not define '%s'",
                    MIG_TRANSPORT_QUERY_SYMBOL);
    return NULL;
  }
  /* An object's dynamic section is always its own. */
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
      object_base(map->l_ld, &self) != object_base(symbol, &owner)) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, file,
                    "no transport plugin: '%s' is defined by its dependency "
                    "%s, not by itself",
                    MIG_TRANSPORT_QUERY_SYMBOL, owner);
    return NULL;
  }
  memcpy(&query, &symbol, sizeof(query));
  return query;
}

static struct mig_plugin *make_plugin(const struct mig_transport_ops *ops,
                                      uint32_t ops_size, const char *path) {
  size_t length = strlen(path) + 1;
  struct mig_plugin *plugin = malloc(sizeof(*plugin) + length);
  if (plugin != NULL) {
    plugin->ops = *ops;
    plugin->ops_size = ops_size;
    plugin->handle = NULL;
    memcpy(plugin->path, path, length);
  }
  return plugin;
}

static struct mig_plugin *use_query(mig_transport_query_fn query,
                                    const char *path,
                                    struct mig_loader_report *report) {
  struct mig_transport_ops ops;
  uint32_t size = 0;
  if (mig_loader_negotiate(query, path, &ops, &size, report) != 0) {
    return NULL;
  }
  struct mig_plugin *plugin = make_plugin(&ops, size, path);
  if (plugin == NULL) {
    mig_loader_note(report, MIG_E_MEMORY, path, "out of memory");
  }
  return plugin;
}

static struct mig_plugin *load_file(const char *path,
                                    struct mig_loader_report *report) {
  char *file = find_file(path, report);
  if (file == NULL) {
    return NULL;
  }
  struct mig_plugin *plugin = NULL;
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, path, "can't be loaded: %s",
                    dl_reason(file));
  } else {
    mig_transport_query_fn query = find_query(handle, file, report);
    plugin = query == NULL ? NULL : use_query(query, file, report);
    if (plugin == NULL) {
      (void)dlclose(handle);
    } else {
      plugin->handle = handle;
      /* Threads, thread-local destructors and unique symbols of a C++ plugin
       * outlive dlclose, so what was once in use stays mapped (H11). */
      void *pin = dlopen(file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
      if (pin != NULL) {
        (void)dlclose(pin);
      }
    }
  }
  free(file);
  return plugin;
}

/* ------------------------------------------------------------- the API -- */

static struct mig_plugin *search(const char *name,
                                 struct mig_loader_report *report) {
  mig_transport_query_fn query = mig_loader_registered(name);
  struct mig_plugin *plugin = NULL;
  if (query != NULL) {
    plugin = use_query(query, REGISTERED_PATH, report);
  }
  for (size_t i = 0; plugin == NULL; ++i) {
    char path[PATH_MAX];
    const char *dir = mig_loader_search_dir(i);
    if (dir == NULL) {
      break;
    }
    int length = snprintf(path, sizeof(path), "%s/%s.so", dir, name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
      mig_loader_note(report, MIG_E_ARGUMENT, dir,
                      "with the plugin's name it is longer than %d bytes",
                      PATH_MAX - 1);
      continue;
    }
    plugin = load_file(path, report);
  }
  return plugin;
}

static int32_t report_failure(const char *name,
                              const struct mig_loader_report *report,
                              struct mig_loader_error *error) {
  int32_t code = report->code != 0 ? report->code : MIG_E_UNSUPPORTED;
  const char *remedy = "";
  if (report->code == 0) {
    remedy = strchr(name, '/') != NULL
                 ? "\ngive the path of the plugin's file"
                 : "\nset " MIG_LOADER_PATH_VARIABLE
                   " to the directory that has it, or give a path with '/'";
  }
  const char *ignored = "";
  if (getauxval(AT_SECURE) != 0 && strchr(name, '/') == NULL) {
    ignored = "\n(" MIG_LOADER_PATH_VARIABLE
              " is ignored: this process is privileged)";
  }
  set_error(error, code,
            "transport plugin '%.200s%s' can't be used; tried:%s%s%s", name,
            strlen(name) > 200 ? "..." : "", report->text, ignored, remedy);
  return code;
}

int32_t mig_loader_open(const char *name_or_path, struct mig_plugin **plugin,
                        struct mig_loader_error *error) {
  if (plugin != NULL) {
    *plugin = NULL;
  }
  if (name_or_path == NULL || *name_or_path == '\0' || plugin == NULL) {
    set_error(error, MIG_E_ARGUMENT,
              "mig_loader_open: %s: give the name or path of a plugin and "
              "where to put it",
              plugin == NULL ? "plugin is NULL" : "the name is empty");
    return MIG_E_ARGUMENT;
  }
  struct mig_loader_report *report = calloc(1, sizeof(*report));
  if (report == NULL) {
    set_error(error, MIG_E_MEMORY, "mig_loader_open: out of memory");
    return MIG_E_MEMORY;
  }
  *plugin = strchr(name_or_path, '/') != NULL ? load_file(name_or_path, report)
                                              : search(name_or_path, report);
  int32_t code =
      *plugin != NULL ? MIG_OK : report_failure(name_or_path, report, error);
  free(report);
  return code;
}

void mig_loader_close(struct mig_plugin *plugin) {
  if (plugin == NULL) {
    return;
  }
  if (plugin->handle != NULL) {
    (void)dlclose(plugin->handle); /* only counts down: it is pinned */
  }
  free(plugin);
}

const struct mig_transport_ops *mig_plugin_ops(
    const struct mig_plugin *plugin) {
  return &plugin->ops;
}

const char *mig_plugin_path(const struct mig_plugin *plugin) {
  return plugin->path;
}

uint32_t mig_plugin_ops_size(const struct mig_plugin *plugin) {
  return plugin->ops_size;
}
