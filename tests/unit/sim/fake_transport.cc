// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fake_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

// The opaque types of the ABI, as this plugin makes them.
struct mig_context {
  int unused;
};
struct mig_session {
  int unused;
};

namespace mig::sim {
namespace {

mig_context the_context;
mig_session the_session;

FakeTransport& Fake() { return FakeTransport::Get(); }

int32_t Fail(int32_t code, mig_error* error) {
  error->code = code;
  strncpy(error->message, "told to fail", sizeof error->message - 1);
  return code;
}

int32_t ContextCreate(const mig_host_services* /*services*/,
                      mig_context** context, mig_error* /*error*/) {
  *context = &the_context;
  return MIG_OK;
}
void ContextDestroy(mig_context* /*context*/) {}

int32_t SessionCreate(mig_context* /*context*/,
                      const mig_session_params* /*params*/,
                      mig_session** session, mig_error* /*error*/) {
  *session = &the_session;
  return MIG_OK;
}

int32_t OpenUri(mig_session* /*session*/, const char* /*uri*/,
                mig_error* /*error*/) {
  Fake().Push(MIG_EVENT_CONNECTED);
  return MIG_OK;
}

int32_t LocalAddress(mig_session* /*session*/, char* uri, size_t size,
                     size_t* needed, mig_error* /*error*/) {
  *needed = 2;
  if (size >= 2) memcpy(uri, "f", 2);
  return MIG_OK;
}

int32_t AddBlock(mig_session* /*session*/, const mig_block* /*block*/,
                 mig_error* /*error*/) {
  return MIG_OK;
}

int32_t Exchange(mig_session* /*session*/, mig_error* /*error*/) {
  Fake().Push(MIG_EVENT_BLOCKS_READY);
  return MIG_OK;
}

int32_t RoundBegin(mig_session* /*session*/, uint64_t /*number*/,
                   uint32_t /*flags*/, mig_error* error) {
  if (Fake().failed) {
    ++Fake().calls_after_error;
    return Fail(MIG_E_FAILED, error);
  }
  ++Fake().rounds_begun;
  return MIG_OK;
}

int32_t Write(mig_session* /*session*/, const mig_range* ranges, size_t count,
              size_t /*element_size*/, size_t* accepted, uint64_t* partial,
              mig_error* error) {
  FakeTransport& fake = Fake();
  if (fake.failed) {
    ++fake.calls_after_error;
    return Fail(MIG_E_FAILED, error);
  }
  if (++fake.writes == fake.fail_write) {
    fake.failed = true;
    fake.Push(MIG_EVENT_ERROR, 0, MIG_E_PEER_LOST);
    return Fail(MIG_E_PEER_LOST, error);
  }
  *accepted = 0;
  *partial = 0;
  uint64_t room = fake.room;
  for (size_t i = 0; i < count && room > 0; ++i) {
    mig_range part = ranges[i];
    part.length = std::min(part.length, room);
    room -= part.length;
    fake.taken.push_back(part);
    if (part.length == ranges[i].length) {
      ++*accepted;
    } else {
      *partial = part.length;
    }
  }
  if (*accepted < count) fake.Push(MIG_EVENT_WRITE_READY);
  return MIG_OK;
}

int32_t RoundEnd(mig_session* /*session*/, uint64_t number,
                 mig_error* /*error*/) {
  ++Fake().rounds_ended;
  Fake().Push(MIG_EVENT_ROUND_DONE, number);
  return MIG_OK;
}

int32_t Send(mig_session* /*session*/, uint32_t /*channel*/, uint32_t /*type*/,
             const mig_iov* /*iov*/, size_t /*count*/, size_t /*element_size*/,
             mig_error* /*error*/) {
  return MIG_OK;
}
void MessageRelease(mig_session* /*session*/, mig_message* /*message*/) {}

int32_t Progress(mig_session* /*session*/, mig_event* events, size_t max,
                 size_t /*element_size*/, int64_t /*timeout_ns*/, size_t* count,
                 mig_error* /*error*/) {
  *count = 0;
  while (*count < max && !Fake().events.empty()) {
    events[(*count)++] = Fake().events.front();
    Fake().events.pop_front();
  }
  return MIG_OK;
}

int32_t Handover(mig_session* /*session*/, mig_error* /*error*/) {
  ++Fake().handovers;
  if (Fake().handover_outcome != 0) {
    Fake().Push(Fake().handover_outcome, 0, MIG_E_PEER_LOST);
  }
  return MIG_OK;
}

void Cancel(mig_session* /*session*/) { ++Fake().cancels; }
void Wake(mig_session* /*session*/) {}
void Close(mig_session* /*session*/) {
  if (++Fake().closes == 1) Fake().Push(MIG_EVENT_CLOSED);
}
void Destroy(mig_session* /*session*/) {}

void SessionError(mig_session* /*session*/, mig_error* error) {
  error->code = MIG_OK;
}

mig_transport_ops MakeOps() {
  mig_transport_ops ops = {};
  ops.size = sizeof ops;
  ops.abi_version = MIG_ABI_VERSION;
  ops.name = "fake";
  ops.version = "0";
  ops.description = "does what a test says";
  ops.licenses = "BSD-2-Clause";
  ops.uri_schemes = "fake";
  ops.wire_version_min = ops.wire_version_max = 1;
  ops.option_size = sizeof(mig_option);
  ops.counter_size = sizeof(mig_counter);
  ops.context_create = &ContextCreate;
  ops.context_destroy = &ContextDestroy;
  ops.session_create = &SessionCreate;
  ops.listen = &OpenUri;
  ops.connect = &OpenUri;
  ops.local_address = &LocalAddress;
  ops.add_block = &AddBlock;
  ops.exchange = &Exchange;
  ops.round_begin = &RoundBegin;
  ops.write = &Write;
  ops.round_end = &RoundEnd;
  ops.send = &Send;
  ops.message_release = &MessageRelease;
  ops.progress = &Progress;
  ops.handover = &Handover;
  ops.cancel = &Cancel;
  ops.wake = &Wake;
  ops.close = &Close;
  ops.session_destroy = &Destroy;
  ops.session_error = &SessionError;
  return ops;
}

int32_t Query(uint32_t /*min*/, uint32_t /*max*/, const mig_transport_ops** ops,
              mig_error* /*error*/) {
  static const mig_transport_ops table = MakeOps();
  *ops = &table;
  return MIG_OK;
}

}  // namespace

FakeTransport& FakeTransport::Get() {
  static FakeTransport fake;
  return fake;
}

void FakeTransport::Push(uint32_t type, uint64_t number, int32_t code) {
  mig_event event = {};
  event.type = type;
  event.number = number;
  event.code = code;
  event.time_ns = 1;
  events.push_back(event);
}

std::unique_ptr<PluginContext> FakeTransport::MakeContext() {
  EXPECT_EQ(mig_loader_register("fake", &Query), MIG_OK);
  auto plugin = Plugin::Open("fake");
  EXPECT_TRUE(plugin.ok()) << plugin.status();
  mig_host_services services = {};
  services.size = sizeof services;
  auto context = PluginContext::Create(*plugin, services);
  EXPECT_TRUE(context.ok()) << context.status();
  return *std::move(context);
}

}  // namespace mig::sim
