/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * A minimal transport, to start your own from: both sides live in one process
 * and meet by the URI "example:NAME"; a page travels by memcpy.
 *
 * C11, and C++17 as well. Needs nothing but mig_transport.h and libc.
 *
 * One lock guards everything, and what is done under it is bounded (COPY_MAX),
 * so that cancel and wake never wait for long. Sessions sleep on an eventfd,
 * which is also what get_event_fds answers. A real transport would use a lock
 * for each session, copy with calls that report bad memory (process_vm_writev,
 * send) instead of faulting, and find a peer dead that falls silent.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "mig_transport.h"

#define SCHEME "example:"
#define CREDITS 16u                  /* messages that a receiver may hold */
#define COPY_MAX ((uint64_t)4 << 20) /* bytes a write may copy */
#define KNOWN_BLOCK_FLAGS \
  (MIG_BLOCK_ZEROED | MIG_BLOCK_DISCARDABLE | MIG_BLOCK_FD | MIG_BLOCK_KEPT)

enum phase {
  NEW,
  CONNECTING,
  CONNECTED,
  EXCHANGING,
  READY,
  ROUND,
  OFFERED,
  TAKEN
};
#define IN(phase) (1u << (phase))
#define FROM_CONNECTED                                                    \
  (IN(CONNECTED) | IN(EXCHANGING) | IN(READY) | IN(ROUND) | IN(OFFERED) | \
   IN(TAKEN))
#define ANY_ROLE 0u

struct mig_context {
  struct mig_host_services services;
};

struct block {
  struct block *next;
  struct block *twin; /* the peer's, once agreed */
  char *base;
  uint64_t length;
  uint64_t page_size;
  /* A bit a page. Source: given in this strict round. Destination: may be
   * other than zero. */
  uint8_t *bits;
  uint32_t id;
  uint32_t flags;
  char name[MIG_NAME_MAX + 1];
};

/* A queued event; a message's payload follows it. */
struct mig_message {
  struct mig_message *next;
  struct mig_event event;
};
static_assert(sizeof(struct mig_message) % 16 == 0, "payloads are aligned");

enum counter { ACCEPTED, SENT, RECEIVED, ROUNDS, COUNTERS };

struct mig_session {
  struct mig_context *context;
  struct mig_session *peer; /* NULL before it connected, and after it left */
  struct mig_session *next_listener;
  struct block *blocks;
  struct mig_message *head; /* events, oldest first */
  struct mig_message **tail;
  struct mig_message *held; /* messages that the host has not released */
  /* The events that come once at a time need no memory, so that no end can
   * get lost for lack of it. */
  struct mig_message once[MIG_EVENT_PREPARING + 1];
  struct mig_error failure; /* code 0: none */
  uint64_t counters[COUNTERS];
  uint64_t attempt;
  uint64_t round;
  uint32_t round_flags;
  uint32_t role;
  uint32_t in_flight; /* messages sent and not released by the peer */
  int event_fd;
  enum phase phase;
  bool offer_shown; /* the host was told of the offer... */
  bool offer_gone;  /* ...and may take it no more */
  bool send_waits;
  bool closing;
  bool woken;
  uint8_t uuid[MIG_UUID_SIZE];
  char name[MIG_NAME_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mig_session *listeners; /* guarded by lock */

/* ------------------------------------------------------------ errors -- */

__attribute__((format(printf, 3, 0))) static void fill_error(
    struct mig_error *error, int32_t code, const char *format,
    va_list arguments) {
  const size_t head = offsetof(struct mig_error, message);
  if (error == NULL || error->size <= head) {
    return;
  }
  memset((char *)error + sizeof(error->size), 0,
         error->size - sizeof(error->size));
  error->code = code;
  size_t room = error->size - head;
  room = room < sizeof(error->message) ? room : sizeof(error->message);
  /* clang-tidy loses track of callers' va_start. */
  (void)vsnprintf(error->message, room, format, arguments); /* NOLINT */
}

__attribute__((format(printf, 3, 4))) static int32_t fail(
    struct mig_error *error, int32_t code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill_error(error, code, format, arguments);
  va_end(arguments);
  return code;
}

/* Rules 1.1 and 1.4, for a struct that starts with its size. */
static int32_t check_size(const void *object, size_t known, const char *what,
                          struct mig_error *error) {
  uint32_t size = 0;
  if (object == NULL) {
    return fail(error, MIG_E_ARGUMENT, "%s is NULL: pass one", what);
  }
  memcpy(&size, object, sizeof(size));
  if (size < known) {
    return fail(error, MIG_E_STRUCT_SIZE, "%s has size %u: set it to %zu", what,
                size, known);
  }
  for (size_t i = known; i < size; ++i) {
    if (((const char *)object)[i] != 0) {
      return fail(error, MIG_E_STRUCT_SIZE,
                  "%s has size %u, and is not 0 at byte %zu: this plugin knows "
                  "%zu bytes of it",
                  what, size, i, known);
    }
  }
  return MIG_OK;
}

static int32_t check_element(size_t size, size_t known, const char *what,
                             struct mig_error *error) {
  return size >= known ? MIG_OK
                       : fail(error, MIG_E_STRUCT_SIZE,
                              "elements of %s have %zu bytes: at least %zu are "
                              "needed",
                              what, size, known);
}

/* Whether a call of `role` is legal in one of `phases`. */
static int32_t check_state(const struct mig_session *session, uint32_t role,
                           unsigned phases, const char *what,
                           struct mig_error *error) {
  if (session->failure.code != 0) {
    return fail(error, MIG_E_FAILED, "%s: the session failed before: %.400s",
                what, session->failure.message);
  }
  if (session->closing) {
    return fail(error, MIG_E_STATE, "%s: the session is closed: make a new one",
                what);
  }
  if (role != ANY_ROLE && role != session->role) {
    return fail(error, MIG_E_STATE, "%s: it is the %s's call", what,
                role == MIG_ROLE_SOURCE ? "source" : "destination");
  }
  if ((phases & IN(session->phase)) == 0) {
    static const char *const names[] = {
        "new",   "connecting", "connected", "exchanging",
        "ready", "in a round", "offered",   "finished"};
    return fail(error, MIG_E_STATE, "%s: not while the session is %s", what,
                names[session->phase]);
  }
  return MIG_OK;
}

/* ------------------------------------------------------------ events -- */

static uint64_t now_ns(const struct mig_context *context) {
  const struct mig_host_services *host = &context->services;
  if (host->clock_ns != NULL) {
    return host->clock_ns(host->host);
  }
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void ring(struct mig_session *session) {
  const uint64_t one = 1;
  ssize_t written = write(session->event_fd, &one, sizeof(one));
  (void)written; /* only fails when it is readable anyway */
}

static void enqueue(struct mig_session *session, struct mig_message *node) {
  node->event.time_ns = now_ns(session->context);
  node->next = NULL;
  *session->tail = node;
  session->tail = &node->next;
  ring(session);
}

static void lose(struct mig_session *session, int32_t code, const char *text);

static void post(struct mig_session *session, uint32_t type, int32_t code,
                 uint64_t number) {
  struct mig_message *node = &session->once[type];
  if (type == MIG_EVENT_ROUND_DONE || type == MIG_EVENT_BLOCKS_READY) {
    if (session->failure.code != 0) {
      return; /* the other side had no memory for its event */
    }
    node = (struct mig_message *)calloc(1, sizeof(*node));
    if (node == NULL) {
      lose(session, MIG_E_MEMORY, "no memory for an event: free some");
      return;
    }
  } else if (node->event.type != 0) {
    return; /* the host has not taken the last one yet */
  }
  node->event.type = type;
  node->event.code = code;
  node->event.number = number;
  enqueue(session, node);
}

/* Whether memory is a session's own and must not be freed. */
static bool is_once(const struct mig_session *session,
                    const struct mig_message *node) {
  return node >= session->once &&
         node < session->once + MIG_EVENT_PREPARING + 1;
}

static void deliver(struct mig_session *session, char *to, size_t size) {
  struct mig_message *node = session->head;
  size_t known = size < sizeof(node->event) ? size : sizeof(node->event);
  memcpy(to, &node->event, known);
  memset(to + known, 0, size - known);
  session->head = node->next;
  if (session->head == NULL) {
    session->tail = &session->head;
  }
  session->offer_shown |= node->event.type == MIG_EVENT_HANDOVER;
  if (node->event.type == MIG_EVENT_MESSAGE) {
    node->next = session->held;
    session->held = node;
  } else if (is_once(session, node)) {
    node->event.type = 0;
  } else {
    free(node);
  }
}

/* --------------------------------------------------- how a session ends -- */

/* The one terminal failure of a session (rules 5.10 and 15.4). */
__attribute__((format(printf, 4, 5))) static void end(
    struct mig_session *session, uint32_t type, int32_t code,
    const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill_error(&session->failure, code, format, arguments);
  va_end(arguments);
  post(session, type, code, 0);
}

static void unlist(struct mig_session *session) {
  struct mig_session **link = &listeners;
  while (*link != NULL && *link != session) {
    link = &(*link)->next_listener;
  }
  if (*link == session) {
    *link = session->next_listener;
  }
}

/* Takes a session from its peer, which learns why (rule 12 if the guest is on
 * offer). `told` is false for a session that just vanishes. */
static void part(struct mig_session *session, int32_t peer_code,
                 const char *text, bool told) {
  struct mig_session *peer = session->peer;
  unlist(session);
  if (peer == NULL) {
    return;
  }
  session->peer = NULL;
  peer->peer = NULL;
  if (peer->phase == TAKEN) {
    post(peer, MIG_EVENT_PEER_CLOSED, MIG_OK, 0);
  } else if (peer->phase != OFFERED) {
    end(peer, MIG_EVENT_ERROR, peer_code, "%s", text);
  } else if (peer->role == MIG_ROLE_DESTINATION) {
    peer->offer_gone |= told;
    end(peer, MIG_EVENT_ERROR, peer_code, "%s", text);
  } else if (told) {
    end(peer, MIG_EVENT_HANDOVER_REFUSED, peer_code,
        "%s and refused the guest: run it here", text);
  } else {
    end(peer, MIG_EVENT_IN_DOUBT, peer_code,
        "%s while the guest was offered: do not run it before you know that "
        "the destination will not",
        text);
  }
}

/* Ends this side by its own doing. */
static void lose(struct mig_session *session, int32_t code, const char *text) {
  bool withdrawn =
      session->role == MIG_ROLE_SOURCE && session->phase == OFFERED;
  bool cancelled = code == MIG_E_CANCELLED;
  session->offer_gone = true;
  if (session->failure.code == 0 && !session->closing) {
    end(session, withdrawn ? MIG_EVENT_HANDOVER_REFUSED : MIG_EVENT_ERROR, code,
        "%s", text);
  }
  part(session, cancelled ? MIG_E_PEER_CANCELLED : MIG_E_PEER_FAILED,
       cancelled ? "the peer's host cancelled" : "the peer's session failed",
       true);
}

static void ex_cancel(struct mig_session *session) {
  pthread_mutex_lock(&lock);
  if (session->phase != TAKEN) {
    lose(session, MIG_E_CANCELLED, "this host cancelled");
  }
  ring(session);
  pthread_mutex_unlock(&lock);
}

static void ex_close(struct mig_session *session) {
  pthread_mutex_lock(&lock);
  if (!session->closing) {
    session->closing = true;
    session->offer_gone = true;
    if (session->role == MIG_ROLE_SOURCE && session->phase == OFFERED &&
        session->failure.code == 0) {
      end(session, MIG_EVENT_HANDOVER_REFUSED, MIG_E_CANCELLED,
          "the offer was withdrawn by close: run the guest here");
    }
    part(session, MIG_E_PEER_CLOSED, "the peer closed its session", true);
    post(session, MIG_EVENT_CLOSED, MIG_OK, 0);
  }
  pthread_mutex_unlock(&lock);
}

static void free_list(struct mig_session *session, struct mig_message *node) {
  while (node != NULL) {
    struct mig_message *next = node->next;
    if (!is_once(session, node)) {
      free(node);
    }
    node = next;
  }
}

static void ex_session_destroy(struct mig_session *session) {
  if (session == NULL) {
    return;
  }
  pthread_mutex_lock(&lock);
  part(session, MIG_E_PEER_LOST, "the peer's session was destroyed", false);
  pthread_mutex_unlock(&lock);
  free_list(session, session->head);
  free_list(session, session->held);
  while (session->blocks != NULL) {
    struct block *next = session->blocks->next;
    free(session->blocks->bits);
    free(session->blocks);
    session->blocks = next;
  }
  close(session->event_fd);
  free(session);
}

/* ----------------------------------------------- contexts and sessions -- */

static int32_t ex_context_create(const struct mig_host_services *services,
                                 struct mig_context **context,
                                 struct mig_error *error) {
  const size_t known = sizeof(struct mig_host_services);
  if (services == NULL || context == NULL) {
    return fail(error, MIG_E_ARGUMENT,
                "services or context is NULL: pass both");
  }
  if (services->size < known) {
    return fail(error, MIG_E_STRUCT_SIZE,
                "mig_host_services has size %u: set it to %zu", services->size,
                known);
  }
  if ((services->flags & ~MIG_HOST_SIMULATED_CLOCK) != 0) {
    return fail(error, MIG_E_ARGUMENT,
                "host flags %#x are unknown: this plugin knows %#x",
                services->flags, MIG_HOST_SIMULATED_CLOCK);
  }
  *context = (struct mig_context *)calloc(1, sizeof(**context));
  if (*context == NULL) {
    return fail(error, MIG_E_MEMORY, "no memory for a context: free some");
  }
  memcpy(&(*context)->services, services, known);
  return MIG_OK;
}

static void ex_context_destroy(struct mig_context *context) { free(context); }

/* This plugin has none: those that the host can do without are dropped. */
static int32_t check_extensions(const char *list, struct mig_error *error) {
  while (list != NULL && *list != '\0') {
    size_t length = strcspn(list, ",");
    if (length > 0 && list[length - 1] != '?') {
      return fail(error, MIG_E_UNSUPPORTED,
                  "extension '%.*s' is not there: this plugin has none",
                  (int)length, list);
    }
    list += length + (list[length] == ',');
  }
  return MIG_OK;
}

static int32_t check_params(const struct mig_session_params *params,
                            struct mig_error *error) {
  int32_t code =
      check_size(params, sizeof(*params), "mig_session_params", error);
  if (code != MIG_OK) {
    return code;
  }
  if ((params->role != MIG_ROLE_SOURCE &&
       params->role != MIG_ROLE_DESTINATION) ||
      params->attempt == 0 || params->flags != 0) {
    return fail(error, MIG_E_ARGUMENT,
                "role %u, attempt %llu, flags %#llx: role is 1 or 2, attempt "
                "at least 1, flags 0",
                params->role, (unsigned long long)params->attempt,
                (unsigned long long)params->flags);
  }
  return check_extensions(params->extensions, error);
}

static int32_t ex_session_create(struct mig_context *context,
                                 const struct mig_session_params *params,
                                 struct mig_session **session,
                                 struct mig_error *error) {
  if (context == NULL || session == NULL) {
    return fail(error, MIG_E_ARGUMENT, "context or session is NULL: pass both");
  }
  int32_t code = check_params(params, error);
  if (code != MIG_OK) {
    return code;
  }
  struct mig_session *made = (struct mig_session *)calloc(1, sizeof(*made));
  if (made == NULL) {
    return fail(error, MIG_E_MEMORY, "no memory for a session: free some");
  }
  made->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made->event_fd < 0) {
    int number = errno;
    free(made);
    code = fail(error, MIG_E_LIMIT,
                "no eventfd: raise the limit of open files (ulimit -n)");
    if (error != NULL) {
      error->system_errno = number;
    }
    return code;
  }
  made->context = context;
  made->role = params->role;
  made->attempt = params->attempt;
  memcpy(made->uuid, params->vm_uuid, sizeof(made->uuid));
  made->tail = &made->head;
  made->failure.size = sizeof(made->failure);
  *session = made;
  return MIG_OK;
}

/* -------------------------------------------------------- how they meet -- */

static struct mig_session *find_listener(const char *name) {
  struct mig_session *session = listeners;
  while (session != NULL && strcmp(session->name, name) != 0) {
    session = session->next_listener;
  }
  return session;
}

/* The NAME of "example:NAME". */
static int32_t parse_uri(const char *uri, const char **name,
                         struct mig_error *error) {
  if (uri == NULL) {
    return fail(error, MIG_E_ARGUMENT, "the URI is NULL: pass one");
  }
  if (strncmp(uri, SCHEME, strlen(SCHEME)) != 0 ||
      strlen(uri) - strlen(SCHEME) > MIG_NAME_MAX) {
    return fail(error, MIG_E_URI,
                "URI '%.300s' does not fit: give " SCHEME
                "NAME, with a name of at most %u bytes",
                uri, MIG_NAME_MAX);
  }
  *name = uri + strlen(SCHEME);
  return MIG_OK;
}

static int32_t listen_locked(struct mig_session *session, const char *name,
                             struct mig_error *error) {
  int32_t code =
      check_state(session, MIG_ROLE_DESTINATION, IN(NEW), "listen", error);
  if (code != MIG_OK) {
    return code;
  }
  if (find_listener(name) != NULL) {
    return fail(error, MIG_E_ADDRESS,
                SCHEME "%.255s is in use: give another name, or none", name);
  }
  memcpy(session->name, name, strlen(name) + 1);
  /* Without a name, the first number that is free, like port 0. */
  for (unsigned i = 1; session->name[0] == '\0'; ++i) {
    char number[16];
    (void)snprintf(number, sizeof(number), "%u", i);
    if (find_listener(number) == NULL) {
      memcpy(session->name, number, sizeof(number));
    }
  }
  session->next_listener = listeners;
  listeners = session;
  session->phase = CONNECTING;
  return MIG_OK;
}

static int32_t ex_listen(struct mig_session *session, const char *uri,
                         struct mig_error *error) {
  const char *name = "";
  int32_t code = parse_uri(uri, &name, error);
  if (code == MIG_OK) {
    pthread_mutex_lock(&lock);
    code = listen_locked(session, name, error);
    pthread_mutex_unlock(&lock);
  }
  return code;
}

static void print_uuid(const uint8_t *uuid, char *text) {
  for (int i = 0; i < MIG_UUID_SIZE; ++i) {
    (void)snprintf(text + 2 * (size_t)i, 3, "%02x", uuid[i]);
  }
}

/* A listener serves the one peer for its guest and attempt (rule 14). */
static void meet(struct mig_session *session, const char *name) {
  struct mig_session *peer = find_listener(name);
  if (peer == NULL) {
    end(session, MIG_EVENT_ERROR, MIG_E_PEER_UNREACHABLE,
        "nobody listens at " SCHEME "%.255s: start the destination first",
        name);
    return;
  }
  if (memcmp(peer->uuid, session->uuid, sizeof(peer->uuid)) != 0 ||
      peer->attempt != session->attempt) {
    char ours[2 * MIG_UUID_SIZE + 1];
    char theirs[2 * MIG_UUID_SIZE + 1];
    print_uuid(session->uuid, ours);
    print_uuid(peer->uuid, theirs);
    end(session, MIG_EVENT_ERROR, MIG_E_PEER_MISMATCH,
        "this side has VM %s, attempt %llu, the peer VM %s, attempt %llu: "
        "start both with the same",
        ours, (unsigned long long)session->attempt, theirs,
        (unsigned long long)peer->attempt);
    return;
  }
  unlist(peer);
  session->peer = peer;
  peer->peer = session;
  session->phase = CONNECTED;
  peer->phase = CONNECTED;
  post(session, MIG_EVENT_CONNECTED, MIG_OK, 0);
  post(peer, MIG_EVENT_CONNECTED, MIG_OK, 0);
}

static int32_t ex_connect(struct mig_session *session, const char *uri,
                          struct mig_error *error) {
  const char *name = "";
  int32_t code = parse_uri(uri, &name, error);
  if (code == MIG_OK) {
    pthread_mutex_lock(&lock);
    code = check_state(session, MIG_ROLE_SOURCE, IN(NEW), "connect", error);
    if (code == MIG_OK) {
      session->phase = CONNECTING;
      meet(session, name);
    }
    pthread_mutex_unlock(&lock);
  }
  return code;
}

static int32_t ex_local_address(struct mig_session *session, char *uri,
                                size_t size, size_t *needed,
                                struct mig_error *error) {
  if (needed == NULL || (uri == NULL && size > 0)) {
    return fail(error, MIG_E_ARGUMENT, "uri or needed is NULL: pass both");
  }
  pthread_mutex_lock(&lock);
  int32_t code =
      check_state(session, MIG_ROLE_DESTINATION,
                  IN(CONNECTING) | FROM_CONNECTED, "local_address", error);
  pthread_mutex_unlock(&lock);
  if (code == MIG_OK) {
    *needed = strlen(SCHEME) + strlen(session->name) + 1;
    (void)snprintf(uri, size, SCHEME "%s", session->name);
  }
  return code;
}

/* ------------------------------------------------------------- memory -- */

static int32_t check_block(const struct mig_block *block,
                           struct mig_error *error) {
  int32_t code = check_size(block, sizeof(*block), "mig_block", error);
  if (code != MIG_OK) {
    return code;
  }
  size_t length = block->name == NULL ? 0 : strlen(block->name);
  if (length == 0 || length > MIG_NAME_MAX) {
    return fail(error, MIG_E_BLOCK,
                "a block's name has %zu bytes: give 1 to %u", length,
                MIG_NAME_MAX);
  }
  if ((block->flags & ~KNOWN_BLOCK_FLAGS) != 0) {
    return fail(error, MIG_E_ARGUMENT,
                "block '%.255s' has flags %#x: this plugin knows %#x",
                block->name, block->flags, KNOWN_BLOCK_FLAGS);
  }
  uint64_t page = block->page_size;
  if (page < 1024 || page > 1u << 30 || (page & (page - 1)) != 0) {
    return fail(error, MIG_E_BLOCK,
                "block '%.255s' has page size %llu: give a power of 2 from "
                "1024 to 1073741824",
                block->name, (unsigned long long)page);
  }
  uintptr_t address = (uintptr_t)block->address;
  if (block->length == 0 || address == 0 ||
      ((block->length | address) & (page - 1)) != 0 ||
      address + block->length < address) {
    return fail(error, MIG_E_RANGE,
                "block '%.255s' has %llu bytes at %p: both must be multiples "
                "of its page size %llu, and not 0",
                block->name, (unsigned long long)block->length, block->address,
                (unsigned long long)page);
  }
  return MIG_OK;
}

static uint64_t bitmap_size(const struct block *block) {
  return block->length / block->page_size / 8 + 1;
}

static struct block *make_block(const struct mig_block *from, uint32_t role) {
  struct block *block = (struct block *)calloc(1, sizeof(*block));
  if (block == NULL) {
    return NULL;
  }
  block->base = (char *)from->address;
  block->length = from->length;
  block->page_size = from->page_size;
  block->id = from->id;
  block->flags = from->flags;
  memcpy(block->name, from->name, strlen(from->name) + 1);
  block->bits = (uint8_t *)calloc(1, bitmap_size(block));
  if (block->bits == NULL) {
    free(block);
    return NULL;
  }
  if (role == MIG_ROLE_DESTINATION && (from->flags & MIG_BLOCK_ZEROED) == 0) {
    memset(block->bits, 0xff, bitmap_size(block));
  }
  return block;
}

static int32_t add_locked(struct mig_session *session, struct block *block,
                          struct mig_error *error) {
  int32_t code = check_state(
      session, ANY_ROLE, IN(NEW) | IN(CONNECTING) | IN(CONNECTED) | IN(READY),
      "add_block", error);
  if (code != MIG_OK) {
    return code;
  }
  struct block **link = &session->blocks;
  for (; *link != NULL; link = &(*link)->next) {
    if ((*link)->id == block->id || strcmp((*link)->name, block->name) == 0) {
      return fail(error, MIG_E_BLOCK,
                  "block id %u or name '%s' was added before: give another",
                  block->id, block->name);
    }
  }
  *link = block;
  return MIG_OK;
}

static int32_t ex_add_block(struct mig_session *session,
                            const struct mig_block *block,
                            struct mig_error *error) {
  int32_t code = check_block(block, error);
  if (code != MIG_OK) {
    return code;
  }
  struct block *made = make_block(block, session->role);
  if (made == NULL) {
    return fail(error, MIG_E_MEMORY, "no memory for a block: free some");
  }
  pthread_mutex_lock(&lock);
  code = add_locked(session, made, error);
  pthread_mutex_unlock(&lock);
  if (code != MIG_OK) {
    free(made->bits);
    free(made);
  }
  return code;
}

static struct block *find_new_block(const struct mig_session *session,
                                    const char *name) {
  struct block *block = session->blocks;
  while (block != NULL &&
         (block->twin != NULL || strcmp(block->name, name) != 0)) {
    block = block->next;
  }
  return block;
}

/* Matches every new block of one side with the other's. False, and the text
 * why, for the first that differs. */
static bool match(const struct mig_session *one, const struct mig_session *two,
                  char *text, size_t size) {
  const char *here =
      one->role == MIG_ROLE_SOURCE ? "the source" : "the destination";
  for (struct block *block = one->blocks; block != NULL; block = block->next) {
    if (block->twin != NULL) {
      continue;
    }
    struct block *other = find_new_block(two, block->name);
    if (other == NULL) {
      (void)snprintf(text, size,
                     "block '%s' of %llu bytes is only at %s: add it on both "
                     "sides before the exchange",
                     block->name, (unsigned long long)block->length, here);
      return false;
    }
    if (other->length != block->length ||
        other->page_size != block->page_size) {
      (void)snprintf(text, size,
                     "block '%s' has %llu bytes in pages of %llu at %s, and "
                     "%llu in pages of %llu at the peer: make them equal",
                     block->name, (unsigned long long)block->length,
                     (unsigned long long)block->page_size, here,
                     (unsigned long long)other->length,
                     (unsigned long long)other->page_size);
      return false;
    }
  }
  return true;
}

static void end_both(struct mig_session *session, int32_t code,
                     const char *text) {
  end(session, MIG_EVENT_ERROR, code, "%s", text);
  part(session, code, text, true);
}

/* Both sides have called exchange. */
static void agree(struct mig_session *session, struct mig_session *peer) {
  char text[sizeof(session->failure.message)];
  if (!match(session, peer, text, sizeof(text)) ||
      !match(peer, session, text, sizeof(text))) {
    end_both(session, MIG_E_PEER_MISMATCH, text);
    return;
  }
  for (struct block *block = session->blocks; block; block = block->next) {
    if (block->twin == NULL) {
      block->twin = find_new_block(peer, block->name);
      block->twin->twin = block;
    }
  }
  session->phase = READY;
  peer->phase = READY;
  post(session, MIG_EVENT_BLOCKS_READY, MIG_OK, 0);
  post(peer, MIG_EVENT_BLOCKS_READY, MIG_OK, 0);
}

static int32_t ex_exchange(struct mig_session *session,
                           struct mig_error *error) {
  pthread_mutex_lock(&lock);
  int32_t code = check_state(session, ANY_ROLE, IN(CONNECTED) | IN(READY),
                             "exchange", error);
  if (code == MIG_OK) {
    session->phase = EXCHANGING;
    if (session->peer->phase == EXCHANGING) {
      agree(session, session->peer);
    }
  }
  pthread_mutex_unlock(&lock);
  return code;
}

/* ------------------------------------------------------------- rounds -- */

static int32_t ex_round_begin(struct mig_session *session, uint64_t number,
                              uint32_t flags, struct mig_error *error) {
  const uint32_t known = MIG_ROUND_STRICT | MIG_ROUND_FINAL;
  pthread_mutex_lock(&lock);
  int32_t code =
      check_state(session, MIG_ROLE_SOURCE, IN(READY), "round_begin", error);
  if (code == MIG_OK && (number != session->round + 1 || (flags & ~known))) {
    code = fail(error, MIG_E_ARGUMENT,
                "round %llu with flags %#x: the next round is %llu, and this "
                "plugin knows flags %#x",
                (unsigned long long)number, flags,
                (unsigned long long)session->round + 1, known);
  }
  if (code == MIG_OK) {
    session->round = number;
    session->round_flags = flags;
    session->phase = ROUND;
    struct block *block = session->blocks;
    for (; block != NULL && (flags & MIG_ROUND_STRICT) != 0;
         block = block->next) {
      memset(block->bits, 0, bitmap_size(block));
    }
  }
  pthread_mutex_unlock(&lock);
  return code;
}

/* The range's block, or NULL and an error. */
static struct block *check_range(const struct mig_session *session,
                                 const struct mig_range *range, int32_t *code,
                                 struct mig_error *error) {
  struct block *block = session->blocks;
  while (block != NULL && block->id != range->block) {
    block = block->next;
  }
  if (block == NULL || block->twin == NULL) {
    *code = fail(error, MIG_E_BLOCK,
                 "a range names block %u, which is not agreed: add and "
                 "exchange it first",
                 range->block);
    return NULL;
  }
  if ((range->flags & ~MIG_RANGE_ZERO) != 0 || range->reserved != 0) {
    *code =
        fail(error, MIG_E_ARGUMENT,
             "a range has flags %#x and reserved %#llx: this plugin knows "
             "flags %#x, and reserved is 0",
             range->flags, (unsigned long long)range->reserved, MIG_RANGE_ZERO);
    return NULL;
  }
  if (((range->offset | range->length) & (block->page_size - 1)) != 0 ||
      range->offset > block->length ||
      range->length > block->length - range->offset) {
    *code = fail(error, MIG_E_RANGE,
                 "range of %llu bytes at %llu of block '%.255s', which has "
                 "%llu in pages of %llu: keep it inside and aligned",
                 (unsigned long long)range->length,
                 (unsigned long long)range->offset, block->name,
                 (unsigned long long)block->length,
                 (unsigned long long)block->page_size);
    return NULL;
  }
  return block;
}

/* Sets the bits of a range's pages; true if one was set before. */
static bool mark(struct block *block, const struct mig_range *range) {
  bool twice = false;
  uint64_t last = (range->offset + range->length) / block->page_size;
  for (uint64_t page = range->offset / block->page_size; page < last; ++page) {
    uint8_t bit = (uint8_t)(1u << (page % 8));
    twice |= (block->bits[page / 8] & bit) != 0;
    block->bits[page / 8] |= bit;
  }
  return twice;
}

static int32_t mark_given(struct mig_session *session, struct block *block,
                          const struct mig_range *range,
                          struct mig_error *error) {
  if (!mark(block, range)) {
    return MIG_OK;
  }
  char text[400];
  (void)snprintf(text, sizeof(text),
                 "strict round %llu was given a page of the %llu bytes at %llu "
                 "of block '%s' twice: clear dirty bits before writing",
                 (unsigned long long)session->round,
                 (unsigned long long)range->length,
                 (unsigned long long)range->offset, block->name);
  lose(session, MIG_E_STRICT, text);
  return fail(error, MIG_E_STRICT, "%s", text);
}

/* What is known zero is not touched: it costs no memory (rule 9). */
static void zero(struct block *block, const struct mig_range *range) {
  for (uint64_t offset = range->offset; offset < range->offset + range->length;
       offset += block->page_size) {
    uint64_t page = offset / block->page_size;
    uint8_t bit = (uint8_t)(1u << (page % 8));
    if ((block->bits[page / 8] & bit) != 0) {
      memset(block->base + offset, 0, block->page_size);
      block->bits[page / 8] &= (uint8_t)~bit;
    }
  }
}

static void copy(struct mig_session *session, struct block *block,
                 const struct mig_range *range) {
  session->counters[ACCEPTED] += range->length;
  if ((range->flags & MIG_RANGE_ZERO) != 0) {
    zero(block->twin, range);
    return;
  }
  (void)mark(block->twin, range);
  memcpy(block->twin->base + range->offset, block->base + range->offset,
         range->length);
  session->counters[SENT] += range->length;
  session->peer->counters[RECEIVED] += range->length;
}

/* One call's ranges, and how much of them there is room for. */
struct batch {
  const char *ranges;
  size_t element_size;
  size_t count;
  size_t whole;
  uint64_t partial;
};

/* Nothing is taken before everything was checked (rule 6.3). */
enum step { CHECK, MARK, COPY };

/* Does one step with as much as COPY_MAX allows, but at least a page. */
static int32_t walk(struct mig_session *session, struct batch *batch,
                    enum step step, struct mig_error *error) {
  int32_t code = MIG_OK;
  uint64_t room = COPY_MAX;
  for (batch->whole = 0; batch->whole < batch->count && room > 0;
       ++batch->whole) {
    struct mig_range range;
    memcpy(&range, batch->ranges + batch->whole * batch->element_size,
           sizeof(range));
    struct block *block = check_range(session, &range, &code, error);
    if (block == NULL) {
      return code;
    }
    uint64_t page = block->page_size;
    uint64_t most = room == COPY_MAX && room < page ? page : room & ~(page - 1);
    bool cut = range.length > most;
    range.length = cut ? most : range.length;
    if (step == MARK) {
      code = mark_given(session, block, &range, error);
    } else if (step == COPY) {
      copy(session, block, &range);
    }
    if (cut || code != MIG_OK) {
      batch->partial = cut ? most : 0;
      return code;
    }
    room -= range.length < room ? range.length : room;
  }
  return MIG_OK;
}

static int32_t write_locked(struct mig_session *session, struct batch *batch,
                            struct mig_error *error) {
  int32_t code =
      check_state(session, MIG_ROLE_SOURCE, IN(ROUND), "write", error);
  if (code == MIG_OK) {
    code = walk(session, batch, CHECK, error);
  }
  if (code == MIG_OK && (session->round_flags & MIG_ROUND_STRICT) != 0) {
    code = walk(session, batch, MARK, error);
  }
  if (code == MIG_OK) {
    (void)walk(session, batch, COPY, error);
    if (batch->whole < batch->count) {
      post(session, MIG_EVENT_WRITE_READY, MIG_OK, 0);
    }
  }
  return code;
}

static int32_t ex_write(struct mig_session *session,
                        const struct mig_range *ranges, size_t count,
                        size_t element_size, size_t *accepted,
                        uint64_t *partial, struct mig_error *error) {
  if ((ranges == NULL && count > 0) || accepted == NULL || partial == NULL) {
    return fail(error, MIG_E_ARGUMENT,
                "ranges, accepted or partial is NULL: pass all");
  }
  int32_t code = check_element(element_size, MIG_RANGE_SIZE, "ranges", error);
  if (code != MIG_OK) {
    return code;
  }
  struct batch batch = {(const char *)ranges, element_size, count, 0, 0};
  pthread_mutex_lock(&lock);
  code = write_locked(session, &batch, error);
  pthread_mutex_unlock(&lock);
  *accepted = code == MIG_OK ? batch.whole : 0;
  *partial = code == MIG_OK ? batch.partial : 0;
  return code;
}

/* Everything was copied by write: the round is done when it is ended. */
static int32_t ex_round_end(struct mig_session *session, uint64_t number,
                            struct mig_error *error) {
  pthread_mutex_lock(&lock);
  int32_t code =
      check_state(session, MIG_ROLE_SOURCE, IN(ROUND), "round_end", error);
  if (code == MIG_OK && number != session->round) {
    code = fail(error, MIG_E_ARGUMENT, "round %llu: the open round is %llu",
                (unsigned long long)number, (unsigned long long)session->round);
  }
  if (code == MIG_OK) {
    struct mig_session *peer = session->peer;
    session->phase = READY;
    ++session->counters[ROUNDS];
    ++peer->counters[ROUNDS];
    post(peer, MIG_EVENT_ROUND_DONE, MIG_OK, number);
    post(session, MIG_EVENT_ROUND_DONE, MIG_OK, number);
  }
  pthread_mutex_unlock(&lock);
  return code;
}

/* ----------------------------------------------------------- messages -- */

static int32_t iov_length(const struct mig_iov *iov, size_t count,
                          size_t element_size, uint64_t *length,
                          struct mig_error *error) {
  int32_t code = count == 0
                     ? MIG_OK
                     : check_element(element_size, sizeof(*iov), "iov", error);
  *length = 0;
  for (size_t i = 0; i < count && code == MIG_OK; ++i) {
    struct mig_iov part_of;
    if (iov == NULL) {
      return fail(error, MIG_E_ARGUMENT, "iov is NULL: pass it");
    }
    memcpy(&part_of, (const char *)iov + i * element_size, sizeof(part_of));
    if (part_of.length > MIG_MIN_MESSAGE_MAX - *length ||
        (part_of.base == NULL && part_of.length > 0)) {
      return fail(error, MIG_E_ARGUMENT,
                  "piece %zu of a message has %llu bytes at %p: give at most "
                  "%u bytes in all",
                  i, (unsigned long long)part_of.length, part_of.base,
                  MIG_MIN_MESSAGE_MAX);
    }
    *length += part_of.length;
  }
  return code;
}

static struct mig_message *make_message(uint32_t type,
                                        const struct mig_iov *iov, size_t count,
                                        size_t element_size, uint64_t length) {
  struct mig_message *message =
      (struct mig_message *)malloc(sizeof(*message) + length);
  if (message == NULL) {
    return NULL;
  }
  memset(message, 0, sizeof(*message));
  char *to = (char *)(message + 1);
  message->event.type = MIG_EVENT_MESSAGE;
  message->event.message = message;
  message->event.message_type = type;
  message->event.data = length > 0 ? to : NULL;
  message->event.length = length;
  for (size_t i = 0; i < count; ++i) {
    struct mig_iov part_of;
    memcpy(&part_of, (const char *)iov + i * element_size, sizeof(part_of));
    if (part_of.length > 0) {
      memcpy(to, part_of.base, part_of.length);
      to += part_of.length;
    }
  }
  return message;
}

static int32_t send_locked(struct mig_session *session,
                           struct mig_message *message,
                           struct mig_error *error) {
  int32_t code = check_state(session, ANY_ROLE, FROM_CONNECTED, "send", error);
  if (code != MIG_OK) {
    return code;
  }
  if (session->peer == NULL) {
    return fail(error, MIG_E_STATE, "send: the peer has left: close");
  }
  if (session->in_flight == CREDITS) {
    session->send_waits = true;
    return MIG_AGAIN;
  }
  ++session->in_flight;
  enqueue(session->peer, message);
  return MIG_OK;
}

static int32_t ex_send(struct mig_session *session, uint32_t channel,
                       uint32_t type, const struct mig_iov *iov, size_t count,
                       size_t element_size, struct mig_error *error) {
  uint64_t length = 0;
  if (channel != 0) {
    return fail(error, MIG_E_ARGUMENT,
                "channel %u: this plugin has only channel 0", channel);
  }
  int32_t code = iov_length(iov, count, element_size, &length, error);
  if (code != MIG_OK) {
    return code;
  }
  struct mig_message *message =
      make_message(type, iov, count, element_size, length);
  if (message == NULL) {
    return fail(error, MIG_E_MEMORY, "no memory for a message: free some");
  }
  pthread_mutex_lock(&lock);
  code = send_locked(session, message, error);
  pthread_mutex_unlock(&lock);
  if (code != MIG_OK) {
    free(message);
  }
  return code;
}

static void ex_message_release(struct mig_session *session,
                               struct mig_message *message) {
  pthread_mutex_lock(&lock);
  struct mig_message **link = &session->held;
  while (*link != NULL && *link != message) {
    link = &(*link)->next;
  }
  if (*link != NULL) {
    struct mig_session *peer = session->peer;
    *link = message->next;
    free(message);
    if (peer != NULL) {
      --peer->in_flight;
      if (peer->send_waits) {
        peer->send_waits = false;
        post(peer, MIG_EVENT_SEND_READY, MIG_OK, 0);
      }
    }
  }
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------- progress -- */

static int32_t check_progress(const struct mig_session *session,
                              const struct mig_event *events, size_t max,
                              size_t element_size, int64_t timeout_ns,
                              const size_t *count, struct mig_error *error) {
  bool simulated =
      (session->context->services.flags & MIG_HOST_SIMULATED_CLOCK) != 0;
  if ((events == NULL && max > 0) || count == NULL) {
    return fail(error, MIG_E_ARGUMENT, "events or count is NULL: pass both");
  }
  if (timeout_ns < MIG_WAIT_FOREVER || (simulated && timeout_ns != 0)) {
    return fail(error, MIG_E_ARGUMENT, "a timeout of %lld ns: give %s",
                (long long)timeout_ns,
                simulated ? "0 under a simulated clock" : "-1, 0 or more");
  }
  return check_element(element_size, sizeof(*events), "events", error);
}

/* Sleeps until an event, a wake, a signal or the timeout. */
static void sleep_on(int fd, int64_t timeout_ns) {
  struct pollfd poll_fd = {fd, POLLIN, 0};
  struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  (void)ppoll(&poll_fd, 1, timeout_ns < 0 ? NULL : &timeout, NULL);
}

static int32_t ex_progress(struct mig_session *session,
                           struct mig_event *events, size_t max,
                           size_t element_size, int64_t timeout_ns,
                           size_t *count, struct mig_error *error) {
  int32_t code = check_progress(session, events, max, element_size, timeout_ns,
                                count, error);
  if (code != MIG_OK) {
    return code;
  }
  pthread_mutex_lock(&lock);
  /* Nothing can come to a session that has not begun, or has ended. */
  bool may_come =
      session->phase != NEW && session->failure.code == 0 && !session->closing;
  if (session->head == NULL && !session->woken && may_come && timeout_ns != 0) {
    pthread_mutex_unlock(&lock);
    sleep_on(session->event_fd, timeout_ns);
    pthread_mutex_lock(&lock);
  }
  session->woken = false;
  for (*count = 0; *count < max && session->head != NULL; ++*count) {
    deliver(session, (char *)events + *count * element_size, element_size);
  }
  if (session->head == NULL) {
    uint64_t rings = 0;
    ssize_t got = read(session->event_fd, &rings, sizeof(rings));
    (void)got; /* it is empty either way */
  }
  pthread_mutex_unlock(&lock);
  return MIG_OK;
}

static void ex_wake(struct mig_session *session) {
  pthread_mutex_lock(&lock);
  session->woken = true;
  ring(session);
  pthread_mutex_unlock(&lock);
}

static int32_t ex_get_event_fds(struct mig_session *session,
                                struct mig_event_fd *fds, size_t max,
                                size_t element_size, size_t *count,
                                struct mig_error *error) {
  const struct mig_event_fd fd = {session->event_fd, POLLIN};
  if (count == NULL || (fds == NULL && max > 0)) {
    return fail(error, MIG_E_ARGUMENT, "fds or count is NULL: pass both");
  }
  int32_t code =
      max == 0 ? MIG_OK : check_element(element_size, sizeof(fd), "fds", error);
  if (code == MIG_OK) {
    *count = 1;
    if (max > 0) {
      memset(fds, 0, element_size);
      memcpy(fds, &fd, sizeof(fd));
    }
  }
  return code;
}

static int32_t ex_arm(struct mig_session *session, uint64_t *deadline_ns,
                      struct mig_error *error) {
  if (deadline_ns == NULL) {
    return fail(error, MIG_E_ARGUMENT, "deadline_ns is NULL: pass it");
  }
  pthread_mutex_lock(&lock);
  bool busy = session->head != NULL || session->woken;
  pthread_mutex_unlock(&lock);
  *deadline_ns = MIG_NO_DEADLINE;
  return busy ? MIG_BUSY : MIG_OK;
}

/* --------------------------------------------------------- switchover -- */

static int32_t offer(struct mig_session *session, struct mig_error *error) {
  int32_t code =
      check_state(session, MIG_ROLE_SOURCE, IN(READY), "handover", error);
  if (code == MIG_OK && session->round == 0) {
    code = fail(error, MIG_E_STATE,
                "handover: no round was sent: send the guest's memory first");
  }
  if (code == MIG_OK && session->peer->phase == EXCHANGING) {
    code = fail(error, MIG_E_STATE,
                "handover: the peer waits for an exchange: exchange first");
  }
  if (code == MIG_OK) {
    session->phase = OFFERED;
    session->peer->phase = OFFERED;
    post(session->peer, MIG_EVENT_HANDOVER, MIG_OK, 0);
  }
  return code;
}

static int32_t take(struct mig_session *session, struct mig_error *error) {
  if (session->phase != OFFERED || !session->offer_shown ||
      session->offer_gone) {
    int32_t code = check_state(session, MIG_ROLE_DESTINATION, IN(OFFERED),
                               "handover", error);
    return code != MIG_OK ? code
                          : fail(error, MIG_E_STATE,
                                 "handover: wait for the event HANDOVER first");
  }
  session->phase = TAKEN;
  if (session->peer != NULL) {
    session->peer->phase = TAKEN;
    post(session->peer, MIG_EVENT_COMMITTED, MIG_OK, 0);
  }
  return MIG_OK;
}

static int32_t ex_handover(struct mig_session *session,
                           struct mig_error *error) {
  pthread_mutex_lock(&lock);
  int32_t code = session->role == MIG_ROLE_SOURCE ? offer(session, error)
                                                  : take(session, error);
  pthread_mutex_unlock(&lock);
  return code;
}

/* ------------------------------------------------------------ insight -- */

static int32_t ex_get_caps(struct mig_session *session, struct mig_caps *caps,
                           struct mig_error *error) {
  (void)session;
  if (caps == NULL || caps->size < sizeof(*caps)) {
    return fail(error, caps == NULL ? MIG_E_ARGUMENT : MIG_E_STRUCT_SIZE,
                "mig_caps is NULL or has a size below %zu", sizeof(*caps));
  }
  memset((char *)caps + sizeof(caps->size), 0, caps->size - sizeof(caps->size));
  caps->max_message = MIG_MIN_MESSAGE_MAX;
  caps->peer_timeout_ns = MIG_NO_DEADLINE; /* one process: never silent */
  caps->extensions = "";
  caps->detail_size = sizeof(struct mig_capability);
  return MIG_OK;
}

static int32_t ex_get_stats(struct mig_session *session, uint64_t *values,
                            size_t count) {
  if (values == NULL && count > 0) {
    return MIG_E_ARGUMENT;
  }
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count && i < COUNTERS; ++i) {
    values[i] = session->counters[i];
  }
  pthread_mutex_unlock(&lock);
  return MIG_OK;
}

static void ex_session_error(struct mig_session *session,
                             struct mig_error *error) {
  pthread_mutex_lock(&lock);
  (void)fail(error, session->failure.code, "%s", session->failure.message);
  pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------- the table -- */

static const struct mig_counter counters[COUNTERS] = {
    {"bytes-accepted", "B", "guest memory taken by write", MIG_COUNTER_TOTAL,
     0},
    {"bytes-sent", "B", "guest memory copied to the peer", MIG_COUNTER_TOTAL,
     0},
    {"bytes-received", "B", "guest memory copied from the peer",
     MIG_COUNTER_TOTAL, 0},
    {"rounds-done", "1", "rounds that are done", MIG_COUNTER_TOTAL, 0},
};

static const struct mig_transport_ops ops = {
    .size = sizeof(struct mig_transport_ops),
    .abi_version = MIG_ABI_VERSION,
    .name = "example",
    .version = "0.1.0",
    .description = "a minimal transport inside one process",
    .licenses = "BSD-2-Clause",
    .uri_schemes = "example",
    .wire_version_min = 1,
    .wire_version_max = 1,
    .options = NULL,
    .counters = counters,
    .option_count = 0,
    .option_size = sizeof(struct mig_option),
    .counter_count = COUNTERS,
    .counter_size = sizeof(struct mig_counter),
    .context_create = ex_context_create,
    .context_destroy = ex_context_destroy,
    /* What is NULL is optional; mig_loader answers for it. */
    .option_set = NULL,
    .option_get = NULL,
    .probe = NULL,
    .get_extension = NULL,
    .session_create = ex_session_create,
    .listen = ex_listen,
    .connect = ex_connect,
    .local_address = ex_local_address,
    .add_block = ex_add_block,
    .remove_block = NULL,
    .exchange = ex_exchange,
    .round_begin = ex_round_begin,
    .write = ex_write,
    .flush = NULL,
    .round_end = ex_round_end,
    .send = ex_send,
    .message_release = ex_message_release,
    .progress = ex_progress,
    .get_event_fds = ex_get_event_fds,
    .arm = ex_arm,
    .handover = ex_handover,
    .host_busy = NULL,
    .cancel = ex_cancel,
    .wake = ex_wake,
    .close = ex_close,
    .session_destroy = ex_session_destroy,
    .get_caps = ex_get_caps,
    .get_stats = ex_get_stats,
    .session_error = ex_session_error,
};

#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) int32_t
    mig_transport_query(uint32_t host_abi_min, uint32_t host_abi_max,
                        const struct mig_transport_ops **table,
                        struct mig_error *error) {
  if (table == NULL) {
    return fail(error, MIG_E_ARGUMENT, "ops is NULL: pass it");
  }
  if (host_abi_min > MIG_ABI_VERSION || host_abi_max < MIG_ABI_VERSION) {
    return fail(error, MIG_E_VERSION,
                "the host has ABI versions %u to %u, this plugin %u: update "
                "the older of both",
                host_abi_min, host_abi_max, MIG_ABI_VERSION);
  }
  *table = &ops;
  return MIG_OK;
}
