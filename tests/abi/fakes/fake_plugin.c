/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * One plugin that is built many ways, most of them wrong. It knows only the
 * frozen header, as a plugin would that was built long ago.
 */
#include <string.h>

#include "../frozen/mig_transport_v1.h"

#ifndef FAKE_QUERY
#define FAKE_QUERY mig_transport_query
#endif
#ifndef FAKE_ABI_VERSION
#define FAKE_ABI_VERSION 1
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(table)
#endif
#ifndef FAKE_ANSWER
#define FAKE_ANSWER MIG_OK
#endif

struct mig_context {
  int unused;
};

/* Tells the test that this plugin was really called. */
static int32_t create(const struct mig_host_services *services,
                      struct mig_context **context, struct mig_error *error) {
  static struct mig_context only;
  (void)services, (void)error;
  *context = &only;
  return 4711;
}

static void never_called(void) {}

#define OP(op)                                                      \
  .op = (__typeof__(((struct mig_transport_ops *)0)->op))(void (*)( \
      void))never_called

static struct {
  struct mig_transport_ops ops;
#ifdef FAKE_LONGER
  void (*appended[FAKE_LONGER])(void);
#endif
} table = {
    .ops = {.abi_version = FAKE_ABI_VERSION,
            .size = FAKE_SIZE,
            .name = "fake",
            .version = "1",
            .description = "a plugin of a test",
            .licenses = "BSD-2-Clause",
            .uri_schemes = "fake",
            .context_create = create,
            OP(context_destroy),
            OP(option_set),
            OP(option_get),
            OP(probe),
            OP(get_extension),
            OP(session_create),
            OP(listen),
            OP(connect),
            OP(local_address),
            OP(add_block),
            OP(remove_block),
            OP(exchange),
            OP(round_begin),
            OP(write),
            OP(flush),
            OP(round_end),
            OP(send),
            OP(message_release),
            OP(progress),
            OP(get_event_fds),
            OP(arm),
            OP(handover),
            OP(host_busy),
            OP(cancel),
            OP(wake),
            OP(close),
            OP(session_destroy),
            OP(get_caps),
            OP(get_stats),
            OP(session_error)},
};

#ifdef FAKE_MISSING
/* When loaded, not when asked: query is called from several threads. */
__attribute__((constructor)) static void leave_one_out(void) {
  table.ops.FAKE_MISSING = NULL;
}
#endif

#ifdef FAKE_UNRESOLVED
int function_that_nobody_defines(void);
#endif

__attribute__((visibility("default"))) int32_t FAKE_QUERY(
    uint32_t host_abi_min, uint32_t host_abi_max,
    const struct mig_transport_ops **ops, struct mig_error *error) {
  (void)host_abi_min, (void)host_abi_max;
#ifdef FAKE_UNRESOLVED
  (void)function_that_nobody_defines();
#endif
#ifdef FAKE_MESSAGE
  error->code = FAKE_ANSWER;
  strcpy(error->message, FAKE_MESSAGE);
#else
  (void)error;
#endif
#ifndef FAKE_NO_TABLE
  *ops = &table.ops;
#else
  (void)ops;
#endif
  return FAKE_ANSWER;
}
