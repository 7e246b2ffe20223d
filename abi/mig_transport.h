/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin ABI of live-migration transports, major version 1.
 *
 * A host (hypervisor) loads a plugin, drives one session per migration and
 * side, and sends guest memory in rounds. mig_transport(7) is the contract:
 * its numbered rules are cited here as "rule N".
 *
 * Thread tags, one on every function:
 *   [context]     calls on one context are serialised by the host, any thread
 *   [session]     calls on one session are serialised by the host, any thread
 *   [concurrent]  may run beside any other call on the same object but destroy
 *
 * Layout rules (rule 1): explicit widths, no implicit padding, 64-bit targets.
 * Every struct starts with its size in bytes as its *owner* compiled it
 * (who fills it, sets it); elements of arrays have none, the element size is
 * passed beside the array and the array is stepped by it. Fields are only
 * appended. A caller's struct that is longer than the callee knows is accepted
 * if the rest is zero, else STRUCT_SIZE (of mig_host_services the rest is
 * ignored). What a callee fills in, it zeroes up to the caller's size.
 * Strings are NUL-terminated UTF-8 and belong to the plugin unless
 * said otherwise. A flag or type that the receiver does not know is refused
 * in calls and ignored in events.
 */
#ifndef MIG_TRANSPORT_H_
#define MIG_TRANSPORT_H_

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != 0xffffffffffffffffu
#error "mig_transport.h: only targets with 64-bit pointers are supported"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MIG_ABI_VERSION 1u
#define MIG_WAIT_FOREVER (-1)               /* a progress timeout */
#define MIG_NO_DEADLINE 0xffffffffffffffffu /* an arm deadline */
#define MIG_UUID_SIZE 16
#define MIG_NAME_MAX 255u  /* bytes of a block name, NUL not counted */
#define MIG_RANGE_SIZE 32u /* sizeof(struct mig_range), frozen */
#define MIG_MIN_MESSAGE_MAX                        \
  524288u /* every plugin carries messages of this \
           */

/* ------------------------------------------------------------- status -- */

/* What every call returns. 0 is success, positive values are answers, and
 * negative values are errors. -code / 100 is the category, by what broke; a
 * host that does not know a code acts on its category (rule 5). */
enum mig_status {
  MIG_OK = 0,
  MIG_AGAIN = 1, /* not taken for lack of room; an event says when to retry */
  MIG_BUSY = 2,  /* arm: there is work, call progress before sleeping */

  /* 1xx argument: the caller passed something wrong; nothing was done */
  MIG_E_ARGUMENT = -100,    /* a null, a zero, an unknown flag or enum value */
  MIG_E_STRUCT_SIZE = -101, /* a struct or element size is too small */
  MIG_E_RANGE = -102,  /* a range lies outside its block, or is unaligned */
  MIG_E_OPTION = -103, /* unknown option, or value outside its range */
  MIG_E_URI = -104,    /* the URI can't be parsed, or names no transport */
  MIG_E_BLOCK = -105,  /* unknown, repeated or unusable block */

  /* 2xx operation: this call can't be done now, or at all */
  MIG_E_STATE = -200,       /* not legal in the session's state */
  MIG_E_UNSUPPORTED = -201, /* the plugin does not implement it */
  MIG_E_VERSION = -202,     /* no common ABI version */
  MIG_E_STRICT = -203,      /* a strict round was given one page twice */

  /* 3xx peer */
  MIG_E_PEER_UNREACHABLE = -300, /* name look-up or connecting failed */
  MIG_E_PEER_LOST = -301,        /* the connection broke */
  MIG_E_PEER_TIMEOUT = -302,     /* the peer was silent for too long */
  MIG_E_PEER_CLOSED = -303,      /* the peer ended before the migration did */
  MIG_E_PEER_CANCELLED = -304,   /* the peer's host cancelled */
  MIG_E_PEER_FAILED = -305,      /* the peer reported an error of its own */
  MIG_E_PEER_MISMATCH = -306,    /* version, block, VM or capability differs */
  MIG_E_PEER_PROTOCOL = -307,    /* the peer sent what the protocol forbids */
  MIG_E_PEER_AUTH = -308, /* the peer did not prove that it has the key */

  /* 4xx session */
  MIG_E_CANCELLED = -400, /* this host cancelled */
  MIG_E_FAILED = -401,    /* the session failed earlier, see session_error */

  /* 5xx device */
  MIG_E_DEVICE = -500,
  MIG_E_DEVICE_REMOVED = -501,

  /* 6xx resource */
  MIG_E_MEMORY = -600,
  MIG_E_LIMIT = -601,   /* a system limit: locked memory, files, threads */
  MIG_E_ADDRESS = -602, /* local address in use or not available */
  MIG_E_PERMISSION = -603,
  MIG_E_GUEST_MEMORY = -604, /* a block can't be read or written: protected,
                                truncated, poisoned */

  /* 9xx the plugin itself */
  MIG_E_INTERNAL = -900
};

/* Why a call failed. The caller owns it, sets `size`, and passes it (or NULL);
 * the callee fills it on failure only, and leaves it alone on success. */
struct mig_error {
  uint32_t size;
  int32_t code;          /* enum mig_status */
  int32_t system_errno;  /* errno of the call that failed, 0 if none */
  int32_t provider_code; /* the device's or library's own number, 0 if none */
  char message[496]; /* one line: what was asked, what happened, what to do */
};

/* ------------------------------------------------------ host services -- */

enum mig_log_level {
  MIG_LOG_ERROR = 1,
  MIG_LOG_WARNING = 2,
  MIG_LOG_INFO = 3,
  MIG_LOG_DEBUG = 4
};

/* clock_ns is simulated: `progress` takes only timeout 0, and nothing that the
 * plugin does may depend on real time, addresses or unordered iteration. */
#define MIG_HOST_SIMULATED_CLOCK (1u << 0)

/* What the host lends to a plugin, for the life of a context (rule 4). Every
 * function is [concurrent] and is called from any thread, the plugin's own
 * included (those block all signals). None may call back into the plugin,
 * unwind, or wait for a lock that the host holds during a call into it. A NULL
 * function gets a default: no log, CLOCK_MONOTONIC, getrandom(2). */
struct mig_host_services {
  uint32_t size;
  uint32_t flags; /* MIG_HOST_... */
  void *host;     /* passed back as first argument */
  void (*log)(void *host, int32_t level, const char *message);
  uint64_t (*clock_ns)(void *host); /* never goes back */
  int32_t (*random)(void *host, void *buffer, size_t length); /* 0, or errno */
};

/* ------------------------------------------------ self-description ------ */

enum mig_option_type {
  MIG_OPTION_BOOL = 1,     /* "on" or "off" */
  MIG_OPTION_INTEGER = 2,  /* decimal */
  MIG_OPTION_SIZE = 3,     /* bytes, with an optional suffix K, M, G (1024) */
  MIG_OPTION_DURATION = 4, /* with a suffix: ms or s */
  MIG_OPTION_ENUM = 5,     /* one of the words in `range` */
  MIG_OPTION_STRING = 6
};
#define MIG_OPTION_SECRET (1u << 0) /* get answers "(set)" or "(unset)" */

/* An array element (no size of its own). */
struct mig_option {
  const char *name;
  const char *default_value;
  const char *range; /* "1..64", "on|off", "a path" */
  const char *help;  /* one line */
  uint32_t type;     /* enum mig_option_type */
  uint32_t flags;
};

enum mig_counter_kind {
  MIG_COUNTER_TOTAL = 1, /* only grows */
  MIG_COUNTER_GAUGE = 2, /* a momentary value */
  MIG_COUNTER_PEAK = 3   /* the largest value so far */
};

/* An array element: what get_stats' value of the same index means. Every
 * plugin with counters has bytes-accepted (by write), bytes-sent,
 * bytes-received (of guest memory, both) and rounds-done. */
struct mig_counter {
  const char *name; /* "bytes-sent" */
  const char *unit; /* "B", "ns", "1" */
  const char *help;
  uint32_t kind; /* enum mig_counter_kind */
  uint32_t flags;
};

/* An array element: one thing that probe found. */
struct mig_device {
  uint32_t flags;
  uint32_t port;      /* 0 if it has none */
  uint64_t speed_bps; /* line rate in bits a second, 0 if unknown */
  char name[64];
  char address[64]; /* what a peer would connect to, "" if unknown */
  char detail[256]; /* one line on what it can do, or why it can't be used */
};
#define MIG_DEVICE_USABLE (1u << 0)

/* An array element: one capability of a session. */
struct mig_capability {
  const char *name;
  const char *unit;
  uint64_t asked;      /* what this side asked for */
  uint64_t granted;    /* what the system or device granted here */
  uint64_t negotiated; /* what holds for both sides */
  const char *text;    /* "" or a remark, such as each attempt that was made */
};

/* What a host has to know to act. The host sets `size`; pointers are the
 * session's, valid until its next get_caps or destroy. */
struct mig_caps {
  uint32_t size;
  uint32_t flags;           /* MIG_CAP_... */
  uint64_t max_message;     /* bytes of one control message, negotiated */
  uint64_t peer_timeout_ns; /* silence after which this side gives up */
  const char *extensions;   /* negotiated ids, comma-separated, "" if none */
  const struct mig_capability *details;
  uint64_t detail_count;
  uint64_t detail_size; /* element size of `details` */
};
#define MIG_CAP_PINS_MEMORY (1u << 0) /* right from session_create on */
#define MIG_CAP_AUTHENTICATED (1u << 1)
#define MIG_CAP_ENCRYPTED (1u << 2)

#define MIG_HOST_BUSY_MAX_NS 600000000000u /* 10 minutes, for host_busy */

/* -------------------------------------------------------------- session -- */

struct mig_context; /* one plugin with services and options */
struct mig_session; /* one migration, one side of it */
struct mig_message; /* one received control message */

enum mig_role { MIG_ROLE_SOURCE = 1, MIG_ROLE_DESTINATION = 2 };

/* Both sides of one migration use the same UUID and attempt (rule 14). */
struct mig_session_params {
  uint32_t size;
  uint32_t role; /* enum mig_role */
  uint8_t vm_uuid[MIG_UUID_SIZE];
  uint64_t attempt; /* 1, 2, ...; a retry of one VM uses a higher one */
  /* Ids wanted, comma-separated, or NULL; copied. One that ends in '?' is
   * optional, any other that the peer lacks is PEER_MISMATCH. */
  const char *extensions;
  uint64_t flags; /* none yet: 0 */
};

/* --------------------------------------------------------------- memory -- */

/* Reads zero from add_block until the first write; the destination's matters */
#define MIG_BLOCK_ZEROED (1u << 0)
#define MIG_BLOCK_DISCARDABLE (1u << 1) /* pages may be replaced (rule 10) */
#define MIG_BLOCK_FD (1u << 2)          /* fd and fd_offset are valid */
/* Stays mapped and unreplaced beyond the session, until a later session of the
 * context removes it or the context is destroyed: may stay registered. */
#define MIG_BLOCK_KEPT (1u << 3)

/* Blocks of both sides meet by name. The memory is the host's. From add_block
 * to BLOCK_REMOVED, CLOSED or the return of session_destroy, whichever is
 * first, it stays mapped, unreplaced (rule 10), and readable (source) or
 * writable (destination) without a fault that waits for the host's thread. */
struct mig_block {
  uint32_t size;
  uint32_t id;        /* this host's own number for it in ranges; unique */
  const char *name;   /* 1..MIG_NAME_MAX bytes, unique; copied */
  void *address;      /* aligned to page_size */
  uint64_t length;    /* bytes, a multiple of page_size, not 0 */
  uint64_t page_size; /* dirty granule, equal on both sides; a power of 2,
                         1 KiB..1 GiB; ranges are multiples of it */
  uint64_t fd_offset;
  uint32_t flags; /* MIG_BLOCK_... */
  int32_t fd;     /* the host's; -1 if none */
};

#define MIG_RANGE_ZERO (1u << 0) /* the pages are zero; nothing is read */

/* A run of pages of one block: 32 bytes, frozen for major version 1. */
struct mig_range {
  uint64_t offset;   /* from the block's start */
  uint64_t length;   /* bytes; 0 is legal and does nothing */
  uint32_t block;    /* mig_block.id of this side */
  uint32_t flags;    /* MIG_RANGE_... */
  uint64_t reserved; /* 0, or the range is an ARGUMENT error */
};

#define MIG_ROUND_STRICT (1u << 0) /* report a page that is given twice */
#define MIG_ROUND_FINAL (1u << 1)  /* the guest is stopped: a hint */

/* An array element; the layout of struct iovec. */
struct mig_iov {
  const void *base;
  uint64_t length;
};

/* --------------------------------------------------------------- events -- */

enum mig_event_type {
  MIG_EVENT_CONNECTED = 1,     /* the peer is authenticated and agrees */
  MIG_EVENT_BLOCKS_READY = 2,  /* every exchanged block is agreed and usable */
  MIG_EVENT_BLOCK_REMOVED = 3, /* number: this side's id of it */
  MIG_EVENT_ROUND_DONE = 4,    /* number: the round (rule 8) */
  MIG_EVENT_MESSAGE = 5,     /* message, message_type, data, length, channel */
  MIG_EVENT_SEND_READY = 6,  /* send answered MIG_AGAIN: try again */
  MIG_EVENT_WRITE_READY = 7, /* write took less than all: try again */
  MIG_EVENT_HANDOVER = 8,    /* destination: the guest is offered (rule 12) */
  MIG_EVENT_COMMITTED = 9,   /* source: the destination has the guest */
  MIG_EVENT_HANDOVER_REFUSED = 10, /* source: run it here; only CLOSED and
                                      FDS_CHANGED follow, as after ERROR */
  MIG_EVENT_IN_DOUBT = 11,    /* source: lost in handover; code: the cause */
  MIG_EVENT_ERROR = 12,       /* code: the session's first error; once */
  MIG_EVENT_PEER_CLOSED = 13, /* the peer left after the guest was taken over */
  MIG_EVENT_CLOSED = 14,      /* the last event of a session */
  MIG_EVENT_FDS_CHANGED = 15, /* ask get_event_fds again */
  MIG_EVENT_PREPARING = 16    /* number: bytes prepared, length: of how many */
};

/* An array element. The plugin writes min(element size, its own size). */
struct mig_event {
  uint32_t type; /* enum mig_event_type */
  int32_t code;  /* enum mig_status */
  uint64_t number;
  uint64_t time_ns; /* when the plugin saw it, on the host's clock */
  struct mig_message *message;
  const void *data; /* until message_release; 16-byte aligned, or NULL */
  uint64_t length;
  uint32_t message_type; /* the sending host's own */
  uint32_t channel;      /* 0 */
};

/* An array element: sleep in poll(2) on these between calls of progress. */
struct mig_event_fd {
  int32_t fd;      /* the plugin's: never read, written or closed by the host */
  uint32_t events; /* POLLIN | POLLOUT */
};

/* ------------------------------------------------------------ operations -- */

/* Any call may answer ARGUMENT, STRUCT_SIZE, MEMORY or INTERNAL, and one on a
 * session that ended early FAILED; only further errors are listed. A call that
 * is the other role's answers STATE. A round is open from round_begin to its
 * ROUND_DONE; a session is ready when connected and every exchange is done.
 *
 * The plugin's table. It is constant, and lives as long as the plugin is
 * loaded. Ops marked (optional) may be NULL; mig_loader puts in a default. */
struct mig_transport_ops {
  uint32_t size;
  uint32_t abi_version;    /* the one that query negotiated */
  const char *name;        /* "tcp" */
  const char *version;     /* of the plugin, "0.1.0" */
  const char *description; /* one line */
  const char *licenses; /* SPDX expression of all that loading it brings in */
  const char *uri_schemes; /* "tcp,unix,fd" */
  uint32_t wire_version_min;
  uint32_t wire_version_max;
  const struct mig_option *options;
  const struct mig_counter *counters;
  uint32_t option_count;
  uint32_t option_size; /* element size */
  uint32_t counter_count;
  uint32_t counter_size; /* element size */

  /* -- context -- */

  /* Makes a context; *services is copied, what it points to must outlive the
   * context. [context] Errors: STRUCT_SIZE, ARGUMENT, MEMORY. */
  int32_t (*context_create)(const struct mig_host_services *services,
                            struct mig_context **context,
                            struct mig_error *error);
  /* Frees a context whose sessions are all destroyed; NULL is ignored. Joins
   * the context's threads, in under a second. [context] */
  void (*context_destroy)(struct mig_context *context);
  /* Sets an option for the sessions created later. The value is text, as its
   * type says. [context] Errors: OPTION. (optional) */
  int32_t (*option_set)(struct mig_context *context, const char *name,
                        const char *value, struct mig_error *error);
  /* Copies the value with its NUL, cut at `size`; *needed is the whole size.
   * [context] Errors: OPTION. (optional) */
  int32_t (*option_get)(struct mig_context *context, const char *name,
                        char *value, size_t size, size_t *needed,
                        struct mig_error *error);
  /* Lists what can be used here. *count is how many there are, also when it
   * is more than `max`. [context] Errors: DEVICE, MEMORY. (optional) */
  int32_t (*probe)(struct mig_context *context, struct mig_device *devices,
                   size_t max, size_t element_size, size_t *count,
                   struct mig_error *error);
  /* The extension's own table, or NULL. [context] (optional) */
  const void *(*get_extension)(struct mig_context *context, const char *id);

  /* -- session: set-up -- */

  /* Makes one side of one migration; *params is copied. [context]
   * Errors: STRUCT_SIZE, ARGUMENT, UNSUPPORTED (an extension), MEMORY. */
  int32_t (*session_create)(struct mig_context *context,
                            const struct mig_session_params *params,
                            struct mig_session **session,
                            struct mig_error *error);
  /* Destination: listens at `uri` and serves the one peer that authenticates
   * for this VM and attempt. Strangers, other VMs and other attempts are
   * refused and do not end the session; a version or capability that the right
   * peer lacks does. The URI's host is numeric, empty (any) or localhost, and
   * bound when this returns. fd:N is duplicated. Outcome: CONNECTED or ERROR.
   * [session] State: new. Errors: URI, ADDRESS, PERMISSION, STATE. */
  int32_t (*listen)(struct mig_session *session, const char *uri,
                    struct mig_error *error);
  /* Source: starts to connect; fd:N is duplicated. Outcome: CONNECTED or ERROR.
   * [session] State: new. Errors: URI, STATE, LIMIT. */
  int32_t (*connect)(struct mig_session *session, const char *uri,
                     struct mig_error *error);
  /* The URI to give to a peer, with the port that was chosen; copied like
   * option_get. [session] State: after listen. Errors: STATE. */
  int32_t (*local_address)(struct mig_session *session, char *uri, size_t size,
                           size_t *needed, struct mig_error *error);

  /* -- memory -- */

  /* Makes a block known. [session] State: new or connected, no open round.
   * Errors: BLOCK (also DISCARDABLE where the plugin pins), RANGE, STATE. */
  int32_t (*add_block)(struct mig_session *session,
                       const struct mig_block *block, struct mig_error *error);
  /* Source: takes a block away: no range of it is accepted from now on, what
   * was accepted is drained first. Outcome: BLOCK_REMOVED on both sides, each
   * with its own id, or ERROR. Destination: only a block that is not agreed
   * yet. One that is not agreed yet is removed at once, with the event.
   * [session] State: any before the handover. Errors: BLOCK, STATE. (optional)
   */
  int32_t (*remove_block)(struct mig_session *session, uint32_t id,
                          struct mig_error *error);
  /* Agrees with the peer on the blocks added since the last exchange, and
   * prepares them (registration, pinning). Both sides call it, in any order.
   * Outcome: BLOCKS_READY or ERROR; no time limit but the host's. [session]
   * State: connected, no open round. Errors: STATE. */
  int32_t (*exchange)(struct mig_session *session, struct mig_error *error);

  /* -- rounds, source only -- */

  /* Opens round `number`: 1 first, then each the last + 1, when the one
   * before is ended (its ROUND_DONE may be outstanding: then write takes
   * nothing yet). [session] State: ready. Errors: STATE, ARGUMENT. */
  int32_t (*round_begin)(struct mig_session *session, uint64_t number,
                         uint32_t flags, struct mig_error *error);
  /* Takes ranges in order: *accepted whole ones, and *partial bytes of the
   * next, a multiple of its page size; the host goes on with the rest, or ends
   * the round without it. Less than all is backpressure (WRITE_READY follows),
   * and answers MIG_OK, also for none.
   * On an error nothing of this call was taken: every range that there is room
   * for is checked before the first is taken. element_size >= MIG_RANGE_SIZE.
   * [session] State: in a round. Errors: RANGE, BLOCK, ARGUMENT, STATE, STRICT
   * (ends the session). Never allocates, locks or makes a system call per page.
   */
  int32_t (*write)(struct mig_session *session, const struct mig_range *ranges,
                   size_t count, size_t element_size, size_t *accepted,
                   uint64_t *partial, struct mig_error *error);
  /* Starts sending what write took and has not begun to send; never waits.
   * [session] State: in a round. (optional) */
  int32_t (*flush)(struct mig_session *session, struct mig_error *error);
  /* Closes the round. Outcome: ROUND_DONE on both sides, or ERROR. [session]
   * State: in this round. Errors: STATE, ARGUMENT. */
  int32_t (*round_end)(struct mig_session *session, uint64_t number,
                       struct mig_error *error);

  /* -- control messages, both sides -- */

  /* Sends one message, copied before this returns; 0 to caps.max_message bytes
   * in all. What is sent after round_end(n) arrives after the peer's
   * ROUND_DONE(n). channel is 0 unless an extension says more. MIG_AGAIN: the
   * peer's credit or the queue is used up, SEND_READY follows. [session] State:
   * connected until closed. Errors: ARGUMENT, STATE. */
  int32_t (*send)(struct mig_session *session, uint32_t channel, uint32_t type,
                  const struct mig_iov *iov, size_t count, size_t element_size,
                  struct mig_error *error);
  /* Gives a received message back, and its credit to the peer; legal until
   * destroy, which frees the rest. [session] */
  void (*message_release)(struct mig_session *session,
                          struct mig_message *message);

  /* -- progress -- */

  /* Does what is due and takes events, oldest first, at most `max`. Waits up
   * to timeout_ns if there is none (MIG_WAIT_FOREVER; 0 only polls; under a
   * simulated clock only 0). The only call that blocks (rule 3). A new session,
   * and one after CLOSED, answers at once; a failed one MIG_OK and its
   * remaining events. [session]
   * Errors: ARGUMENT, STRUCT_SIZE. */
  int32_t (*progress)(struct mig_session *session, struct mig_event *events,
                      size_t max, size_t element_size, int64_t timeout_ns,
                      size_t *count, struct mig_error *error);
  /* The fds to sleep on, level-triggered; *count like probe. They stay open
   * until the next call of this, or destroy. [session] (optional) */
  int32_t (*get_event_fds)(struct mig_session *session,
                           struct mig_event_fd *fds, size_t max,
                           size_t element_size, size_t *count,
                           struct mig_error *error);
  /* Call before sleeping on the fds. MIG_BUSY: call progress first. MIG_OK:
   * sleep until an fd is ready or *deadline_ns (host clock) has come.
   * [session] (optional, with get_event_fds) */
  int32_t (*arm)(struct mig_session *session, uint64_t *deadline_ns,
                 struct mig_error *error);

  /* -- switchover and the end -- */

  /* Source: offers the guest; after the last ROUND_DONE. From here the host
   * must not run it until HANDOVER_REFUSED or ERROR. Outcome: COMMITTED,
   * HANDOVER_REFUSED, ERROR (it was certainly not taken) or IN_DOUBT. The
   * peer's HANDOVER comes after every round and every message sent before. An
   * error from this call means that nothing left: run the guest here.
   * Destination: takes the offered guest, after the event HANDOVER, also when
   * an ERROR came after that event, unless the offer was withdrawn or this
   * host cancelled or closed. MIG_OK: the guest is this host's, whatever
   * becomes of the link, and neither the session nor the peer writes its
   * memory any more; on an error it was not taken. close refuses the offer.
   * [session] Errors: STATE. */
  int32_t (*handover)(struct mig_session *session, struct mig_error *error);
  /* Tells the peer that this host may not call progress for max_ns, at most
   * MIG_HOST_BUSY_MAX_NS (more is ARGUMENT); 0 ends it early. MIG_AGAIN: the
   * word waits behind what was sent before, and goes out in progress: call that
   * and then this again, until it answers MIG_OK. [session] State: connected
   * until closed. Errors: STATE. (optional) */
  int32_t (*host_busy)(struct mig_session *session, uint64_t max_ns,
                       struct mig_error *error);
  /* Ends the session with CANCELLED, tells the peer, wakes a waiting
   * progress; idempotent, never waits, allowed in every state. After the
   * source's handover it withdraws the offer instead: HANDOVER_REFUSED if the
   * peer confirms, COMMITTED if it was taken before, else IN_DOUBT. On the
   * destination it refuses an offer. A withdrawn offer is ERROR with
   * PEER_CANCELLED there. Once the guest is taken it does nothing.
   * [concurrent] */
  void (*cancel)(struct mig_session *session);
  /* Makes a waiting progress, or else the next one, return at once, with
   * MIG_OK and perhaps no event. [concurrent] */
  void (*wake)(struct mig_session *session);
  /* Starts the end; messages that send took go out first, while the link
   * lives and within the close timeout. With an offer outstanding that is
   * withdrawn like by cancel, and its outcome comes before CLOSED. Outcome:
   * CLOSED. [session] Idempotent. */
  void (*close)(struct mig_session *session);
  /* Frees the session in any state, in under 1 s + 30 ms a registered GiB;
   * NULL is ignored. No memory of a block is touched afterwards. With an offer
   * outstanding the guest is in doubt. [session] */
  void (*session_destroy)(struct mig_session *session);

  /* -- insight -- */

  /* [session] State: any; negotiated values after CONNECTED. (optional) */
  int32_t (*get_caps)(struct mig_session *session, struct mig_caps *caps,
                      struct mig_error *error);
  /* Copies min(count, counter_count) values. [concurrent] (optional) */
  int32_t (*get_stats)(struct mig_session *session, uint64_t *values,
                       size_t count);
  /* Fills *error with why the session failed, was refused or is in doubt;
   * code MIG_OK if it has not.
   * [session] */
  void (*session_error)(struct mig_session *session, struct mig_error *error);
};

/* What a plugin exports, as the symbol "mig_transport_query", or as
 * mig_transport_query_NAME in an archive. Chooses the highest common ABI
 * version in [host_abi_min, host_abi_max] and answers its table. Pure: no
 * thread, no device, no lasting allocation; any thread, any number of times.
 * Errors: VERSION, ARGUMENT. */
typedef int32_t (*mig_transport_query_fn)(uint32_t host_abi_min,
                                          uint32_t host_abi_max,
                                          const struct mig_transport_ops **ops,
                                          struct mig_error *error);
#define MIG_TRANSPORT_QUERY_SYMBOL "mig_transport_query"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MIG_TRANSPORT_H_ */
