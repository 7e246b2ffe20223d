/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a plugin's entry point to a complete table: negotiation, the copy at
 * the smaller size, and what is filled in or refused (rule 1.11).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mig_loader_internal.h"

typedef void (*any_op)(void);

struct op_slot {
  const char *name;
  size_t offset;
};

#define SLOT(field) \
  { #field, offsetof(struct mig_transport_ops, field) }
static const struct op_slot op_slots[] = {
    SLOT(context_create),  SLOT(context_destroy),
    SLOT(option_set),      SLOT(option_get),
    SLOT(probe),           SLOT(get_extension),
    SLOT(session_create),  SLOT(listen),
    SLOT(connect),         SLOT(local_address),
    SLOT(add_block),       SLOT(remove_block),
    SLOT(exchange),        SLOT(round_begin),
    SLOT(write),           SLOT(flush),
    SLOT(round_end),       SLOT(send),
    SLOT(message_release), SLOT(progress),
    SLOT(get_event_fds),   SLOT(arm),
    SLOT(handover),        SLOT(host_busy),
    SLOT(cancel),          SLOT(wake),
    SLOT(close),           SLOT(session_destroy),
    SLOT(get_caps),        SLOT(get_stats),
    SLOT(session_error),
};
static const struct op_slot text_slots[] = {
    SLOT(name),     SLOT(version),     SLOT(description),
    SLOT(licenses), SLOT(uri_schemes),
};
#undef SLOT

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIRST_OP offsetof(struct mig_transport_ops, context_create)

_Static_assert(COUNT(op_slots) ==
                   (sizeof(struct mig_transport_ops) - FIRST_OP) /
                       sizeof(any_op),
               "an op was appended: name it in op_slots, and give it a default "
               "in mig_loader_defaults.c if it is optional");

/* No real table comes near it; more is garbage. */
#define OPS_SIZE_MAX 65536u

/* Of a longer path no more is shown, so that there is room for the others. */
#define SHOWN_MAX 1000

void mig_loader_note(struct mig_loader_report *report, int32_t code,
                     const char *path, const char *format, ...) {
  if (report->code == 0) {
    report->code = code;
  }
  size_t room = sizeof(report->text) - report->length;
  int head =
      snprintf(report->text + report->length, room, "\n  %.*s%s: ", SHOWN_MAX,
               path, strlen(path) > SHOWN_MAX ? "..." : "");
  if (head > 0 && (size_t)head < room) {
    report->length += (size_t)head;
    room -= (size_t)head;
    va_list arguments;
    va_start(arguments, format);
    int body =
        vsnprintf(report->text + report->length, room, format, arguments);
    va_end(arguments);
    if (body >= 0 && (size_t)body < room) {
      report->length += (size_t)body;
      return;
    }
  }
  report->length = sizeof(report->text) - 1;
  memcpy(report->text + report->length - 3, "...", 4);
}

static any_op read_op(const struct mig_transport_ops *ops, size_t offset) {
  any_op op = NULL;
  memcpy(&op, (const char *)ops + offset, sizeof(op));
  return op;
}

/* Calls the entry point. NULL and a note if it answers no table. */
static const struct mig_transport_ops *ask(mig_transport_query_fn query,
                                           const char *path,
                                           struct mig_loader_report *report) {
  const struct mig_transport_ops *ops = NULL;
  struct mig_error error = {.size = sizeof(error)};
  int32_t code = query(MIG_LOADER_ABI_MIN, MIG_LOADER_ABI_MAX, &ops, &error);
  error.message[sizeof(error.message) - 1] = '\0';
  error.message[strcspn(error.message, "\r\n")] = '\0';
  if (code == MIG_OK && ops != NULL) {
    return ops;
  }
  if (code == MIG_OK) {
    mig_loader_note(report, MIG_E_INTERNAL, path,
                    "the plugin answered success, but no table: report it to "
                    "its author");
  } else {
    mig_loader_note(
        report, code == MIG_E_VERSION ? MIG_E_VERSION : MIG_E_INTERNAL, path,
        "the plugin refused this host, which has ABI versions %u to %u, with "
        "code %d: %s",
        MIG_LOADER_ABI_MIN, MIG_LOADER_ABI_MAX, code,
        error.message[0] != '\0' ? error.message : "(it gave no reason)");
  }
  return NULL;
}

/* Holds what comes before the ops against what version 1 says. */
static int check_head(const struct mig_transport_ops *ops, const char *path,
                      struct mig_loader_report *report) {
  if (ops->abi_version < MIG_LOADER_ABI_MIN ||
      ops->abi_version > MIG_LOADER_ABI_MAX) {
    mig_loader_note(report, MIG_E_VERSION, path,
                    "its table has ABI version %u, this host has %u to %u: use "
                    "a plugin built for this host",
                    ops->abi_version, MIG_LOADER_ABI_MIN, MIG_LOADER_ABI_MAX);
    return -1;
  }
  if (ops->size < FIRST_OP || ops->size > OPS_SIZE_MAX ||
      ops->size % sizeof(any_op) != 0) {
    mig_loader_note(report, MIG_E_STRUCT_SIZE, path,
                    "its table says it has %u bytes; possible are multiples of "
                    "%zu from %zu to %u",
                    ops->size, sizeof(any_op), FIRST_OP, OPS_SIZE_MAX);
    return -1;
  }
  return 0;
}

static int check_array(const char *what, const void *array, uint32_t count,
                       uint32_t size, size_t least, const char *path,
                       struct mig_loader_report *report) {
  if (count == 0 || (array != NULL && size >= least)) {
    return 0;
  }
  mig_loader_note(report, MIG_E_STRUCT_SIZE, path,
                  "it has %u %s %s, of %u bytes each; at least %zu are needed",
                  count, what, array == NULL ? "at NULL" : "in an array", size,
                  least);
  return -1;
}

static int refuse_op(const struct op_slot *slot, uint32_t given,
                     const char *path, struct mig_loader_report *report) {
  if (slot->offset < given) {
    mig_loader_note(report, MIG_E_UNSUPPORTED, path,
                    "the required op '%s' is NULL in its table: report it to "
                    "its author",
                    slot->name);
  } else {
    mig_loader_note(report, MIG_E_STRUCT_SIZE, path,
                    "its table of %u bytes is too short for the required op "
                    "'%s', which ends at byte %zu",
                    given, slot->name, slot->offset + sizeof(any_op));
  }
  return -1;
}

/* Fills in what the plugin left out; `given` is the size of its own table. */
static int complete(struct mig_transport_ops *ops, uint32_t given,
                    const char *path, struct mig_loader_report *report) {
  /* One without the other would let a host sleep past a deadline. */
  if (ops->get_event_fds == NULL || ops->arm == NULL) {
    ops->get_event_fds = NULL;
    ops->arm = NULL;
  }
  for (size_t i = 0; i < COUNT(op_slots); ++i) {
    const struct op_slot *slot = &op_slots[i];
    if (read_op(ops, slot->offset) == NULL) {
      any_op fallback = read_op(&mig_loader_default_ops, slot->offset);
      if (fallback == NULL) {
        return refuse_op(slot, given, path, report);
      }
      memcpy((char *)ops + slot->offset, &fallback, sizeof(fallback));
    }
  }
  for (size_t i = 0; i < COUNT(text_slots); ++i) {
    const char *text = NULL;
    memcpy(&text, (char *)ops + text_slots[i].offset, sizeof(text));
    if (text == NULL) {
      text = "";
      memcpy((char *)ops + text_slots[i].offset, &text, sizeof(text));
    }
  }
  return 0;
}

int mig_loader_negotiate(mig_transport_query_fn query, const char *path,
                         struct mig_transport_ops *ops, uint32_t *size,
                         struct mig_loader_report *report) {
  const struct mig_transport_ops *theirs = ask(query, path, report);
  if (theirs == NULL || check_head(theirs, path, report) != 0) {
    return -1;
  }
  *size = theirs->size;
  memset(ops, 0, sizeof(*ops));
  memcpy(ops, theirs, *size < sizeof(*ops) ? *size : sizeof(*ops));
  ops->size = sizeof(*ops);
  if (check_array("options", ops->options, ops->option_count, ops->option_size,
                  sizeof(struct mig_option), path, report) != 0 ||
      check_array("counters", ops->counters, ops->counter_count,
                  ops->counter_size, sizeof(struct mig_counter), path,
                  report) != 0) {
    return -1;
  }
  return complete(ops, *size, path, report);
}
