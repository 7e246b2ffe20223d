/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* A whole host: host PLUGIN URI migrates four pages inside this process. */
#include <mig_loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(4096) char memory[2][4 * 4096]; /* source, destination */
static const struct mig_transport_ops *ops;
static struct mig_error error = {.size = sizeof(error)};

static void must(int32_t code, const char *what) {
  if (code != MIG_OK) {
    fprintf(stderr, "%s: %s\n", what, error.message);
    exit(1);
  }
}

static void await(struct mig_session *session, uint32_t type) {
  struct mig_event event = {0};
  for (size_t count = 0; event.type != type;) {
    must(ops->progress(session, &event, 1, sizeof(event), 1000000000, &count,
                       &error),
         "progress");
    if (count == 0 || event.type == MIG_EVENT_ERROR) {
      ops->session_error(session, &error);
      must(MIG_E_FAILED, count == 0 ? "no event in a second" : "migration");
    }
  }
}

static struct mig_session *open_side(struct mig_context *context, uint32_t i) {
  struct mig_session_params params = {
      .size = sizeof(params), .role = i + MIG_ROLE_SOURCE, .attempt = 1};
  struct mig_block block = {.size = sizeof(block),
                            .name = "ram",
                            .fd = -1,
                            .address = memory[i],
                            .length = sizeof(memory[i]),
                            .page_size = 4096};
  struct mig_session *session = NULL;
  must(ops->session_create(context, &params, &session, &error), "session");
  must(ops->add_block(session, &block, &error), "add_block");
  return session;
}

int main(int argc, char **argv) {
  struct mig_loader_error why = {.size = sizeof(why)};
  struct mig_host_services services = {.size = sizeof(services)};
  struct mig_plugin *plugin = NULL;
  struct mig_context *context = NULL;
  if (argc != 3 || mig_loader_open(argv[1], &plugin, &why) != MIG_OK) {
    fprintf(stderr, "%s\n", argc == 3 ? why.message : "host PLUGIN URI");
    return 1;
  }
  ops = mig_plugin_ops(plugin);
  must(ops->context_create(&services, &context, &error), "context");
  struct mig_session *from = open_side(context, 0);
  struct mig_session *to = open_side(context, 1);
  must(ops->listen(to, argv[2], &error), "listen");
  must(ops->connect(from, argv[2], &error), "connect");
  await(from, MIG_EVENT_CONNECTED);
  await(to, MIG_EVENT_CONNECTED);
  must(ops->exchange(from, &error), "exchange");
  must(ops->exchange(to, &error), "exchange");
  await(from, MIG_EVENT_BLOCKS_READY);
  await(to, MIG_EVENT_BLOCKS_READY);
  memset(memory[0], 'x', sizeof(memory[0]));
  struct mig_range range = {.length = sizeof(memory[0])};
  size_t accepted = 0;
  uint64_t partial = 0;
  must(ops->round_begin(from, 1, MIG_ROUND_FINAL, &error), "round_begin");
  must(ops->write(from, &range, 1, sizeof(range), &accepted, &partial, &error),
       "write");
  must(ops->round_end(from, 1, &error), "round_end");
  await(from, MIG_EVENT_ROUND_DONE);
  must(ops->handover(from, &error), "handover");
  await(to, MIG_EVENT_HANDOVER);
  must(ops->handover(to, &error), "handover");
  await(from, MIG_EVENT_COMMITTED);
  ops->session_destroy(from);
  ops->session_destroy(to);
  ops->context_destroy(context);
  int same = memcmp(memory[0], memory[1], sizeof(memory[0])) == 0;
  printf("%s %s\n", mig_plugin_path(plugin), same ? "verified" : "differs");
  mig_loader_close(plugin);
  return same ? 0 : 1;
}
