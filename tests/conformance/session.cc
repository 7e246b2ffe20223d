// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "config.h"
#include "memory.h"

namespace mig::conformance {
namespace {

// destroy may take a second and 30 ms a registered GiB; ten times that is
// still told from hanging.
constexpr std::chrono::milliseconds kDestroyLimit(10'000);

}  // namespace

Uuid NextUuid() {
  static std::atomic<uint64_t> counter{0};
  Uuid uuid;
  const uint64_t words[2] = {Mix(++counter), Mix(counter + (1ULL << 40))};
  memcpy(uuid.data(), words, sizeof(words));
  return uuid;
}

Context::Context(Host& host) : host_(host) {
  const int32_t status = CheckedCall(
      "context_create", GlobalConfig().call_limit,
      [&](mig_error* error) {
        return Ops()->context_create(&host.services(), &context_, error);
      },
      &error_);
  EXPECT_EQ(status, MIG_OK) << error_.message;
  for (const auto& [name, value] : GlobalConfig().options) {
    EXPECT_EQ(SetOption(name, value), MIG_OK) << error_.message;
  }
}

Context::~Context() {
  TimedCall("context_destroy", kDestroyLimit,
            [&] { Ops()->context_destroy(context_); });
}

int32_t Context::SetOption(const std::string& name, const std::string& value) {
  return CheckedCall(
      "option_set", GlobalConfig().call_limit,
      [&](mig_error* error) {
        return Ops()->option_set(context_, name.c_str(), value.c_str(), error);
      },
      &error_);
}

std::string Context::GetOption(const std::string& name) {
  char value[4096] = {};
  size_t needed = 0;
  const int32_t status = CheckedCall(
      "option_get", GlobalConfig().call_limit,
      [&](mig_error* error) {
        return Ops()->option_get(context_, name.c_str(), value, sizeof(value),
                                 &needed, error);
      },
      &error_);
  return status == MIG_OK ? value : "";
}

Session::Session(Context& context, uint32_t role, const Identity& identity)
    : host_(context.host()), role_(role) {
  mig_session_params params = {};
  params.size = sizeof(params);
  params.role = role;
  memcpy(params.vm_uuid, identity.uuid.data(), MIG_UUID_SIZE);
  params.attempt = identity.attempt;
  params.extensions = identity.extensions;
  const std::lock_guard<std::mutex> lock(context.mutex());
  Call("session_create", [&](mig_error* error) {
    return Ops()->session_create(context.get(), &params, &session_, error);
  });
}

Session::~Session() { Destroy(); }

int32_t Session::Call(const char* name,
                      const std::function<int32_t(mig_error*)>& f) {
  return CheckedCall(name, GlobalConfig().call_limit, f, &error_);
}

int32_t Session::Listen(const std::string& uri) {
  return Call("listen", [&](mig_error* error) {
    return Ops()->listen(session_, uri.c_str(), error);
  });
}

int32_t Session::Connect(const std::string& uri) {
  return Call("connect", [&](mig_error* error) {
    return Ops()->connect(session_, uri.c_str(), error);
  });
}

std::string Session::LocalAddress() {
  char uri[4096] = {};
  size_t needed = 0;
  const int32_t status = Call("local_address", [&](mig_error* error) {
    return Ops()->local_address(session_, uri, sizeof(uri), &needed, error);
  });
  if (status != MIG_OK) return "";
  EXPECT_EQ(needed, strlen(uri) + 1) << "needed counts the NUL";
  return uri;
}

int32_t Session::AddBlock(const mig_block& block) {
  return Call("add_block", [&](mig_error* error) {
    return Ops()->add_block(session_, &block, error);
  });
}

int32_t Session::RemoveBlock(uint32_t id) {
  return Call("remove_block", [&](mig_error* error) {
    return Ops()->remove_block(session_, id, error);
  });
}

int32_t Session::Exchange() {
  return Call("exchange", [&](mig_error* error) {
    return Ops()->exchange(session_, error);
  });
}

int32_t Session::RoundBegin(uint64_t number, uint32_t flags) {
  return Call("round_begin", [&](mig_error* error) {
    return Ops()->round_begin(session_, number, flags, error);
  });
}

int32_t Session::Write(std::span<const mig_range> ranges, Taken* taken) {
  *taken = Taken();
  Taken given{ranges.size() + 1, UINT64_MAX};
  const int32_t status = Call("write", [&](mig_error* error) {
    return Ops()->write(session_, ranges.data(), ranges.size(),
                        sizeof(mig_range), &given.accepted, &given.partial,
                        error);
  });
  if (status != MIG_OK) {
    EXPECT_LT(status, 0) << "rule 6: write answers MIG_OK also for nothing";
    return status;
  }
  *taken = given;
  EXPECT_LE(given.accepted, ranges.size());
  if (given.accepted >= ranges.size()) {
    EXPECT_EQ(given.partial, 0U) << "rule 6: there is no next range";
  } else if (given.partial != 0) {
    EXPECT_LT(given.partial, ranges[given.accepted].length)
        << "rule 6: a range that was taken whole counts as accepted";
  }
  return status;
}

int32_t Session::Flush() {
  return Call("flush",
              [&](mig_error* error) { return Ops()->flush(session_, error); });
}

int32_t Session::RoundEnd(uint64_t number) {
  return Call("round_end", [&](mig_error* error) {
    return Ops()->round_end(session_, number, error);
  });
}

int32_t Session::Send(uint32_t type, std::span<const mig_iov> pieces) {
  return Call("send", [&](mig_error* error) {
    return Ops()->send(session_, 0, type, pieces.data(), pieces.size(),
                       sizeof(mig_iov), error);
  });
}

int32_t Session::Send(uint32_t type, const std::string& bytes) {
  const mig_iov piece = {bytes.data(), bytes.size()};
  return Send(type, {&piece, 1});
}

int32_t Session::Handover() {
  return Call("handover", [&](mig_error* error) {
    return Ops()->handover(session_, error);
  });
}

int32_t Session::HostBusy(uint64_t max_ns) {
  return Call("host_busy", [&](mig_error* error) {
    return Ops()->host_busy(session_, max_ns, error);
  });
}

int32_t Session::Arm(uint64_t* deadline_ns) {
  return Call("arm", [&](mig_error* error) {
    return Ops()->arm(session_, deadline_ns, error);
  });
}

std::vector<mig_event_fd> Session::EventFds() {
  std::vector<mig_event_fd> fds(64);
  size_t count = 0;
  const int32_t status = Call("get_event_fds", [&](mig_error* error) {
    return Ops()->get_event_fds(session_, fds.data(), fds.size(),
                                sizeof(mig_event_fd), &count, error);
  });
  if (status != MIG_OK) return {};
  EXPECT_LE(count, fds.size());
  fds.resize(std::min(count, fds.size()));
  return fds;
}

int32_t Session::GetCaps(mig_caps* caps) {
  *caps = {};
  caps->size = sizeof(*caps);
  return Call("get_caps", [&](mig_error* error) {
    return Ops()->get_caps(session_, caps, error);
  });
}

void Session::Cancel() {
  TimedCall("cancel", GlobalConfig().call_limit,
            [&] { Ops()->cancel(session_); });
}

void Session::Wake() {
  TimedCall("wake", GlobalConfig().call_limit, [&] { Ops()->wake(session_); });
}

void Session::Close() {
  TimedCall("close", GlobalConfig().call_limit,
            [&] { Ops()->close(session_); });
}

void Session::Destroy() {
  mig_session* const session = session_;
  session_ = nullptr;
  TimedCall("session_destroy", kDestroyLimit,
            [&] { Ops()->session_destroy(session); });
}

std::vector<uint64_t> Session::GetStats() {
  std::vector<uint64_t> values(Ops()->counter_count);
  const int32_t status =
      Ops()->get_stats(session_, values.data(), values.size());
  if (status != MIG_OK) values.clear();
  return values;
}

CallError Session::SessionError() {
  ErrorBox box;
  TimedCall("session_error", GlobalConfig().call_limit,
            [&] { Ops()->session_error(session_, box.get()); });
  if (box.get()->code != MIG_OK) {
    CheckErrorForm("session_error", box.get()->code, *box.get());
  }
  return box.error();
}

size_t Session::Progress(int64_t timeout_ns, size_t max) {
  std::vector<mig_event> taken(max);
  size_t count = max + 1;
  const auto call = [&](mig_error* error) {
    return Ops()->progress(session_, taken.data(), max, sizeof(mig_event),
                           timeout_ns, &count, error);
  };
  const std::chrono::milliseconds limit =
      timeout_ns == 0 ? GlobalConfig().call_limit : std::chrono::hours(24);
  const int32_t status = CheckedCall("progress", limit, call, &error_);
  EXPECT_EQ(status, MIG_OK) << error_.message;
  if (status != MIG_OK) return 0;
  EXPECT_LE(count, max);
  for (size_t i = 0; i < std::min(count, max); ++i) Take(taken[i]);
  return std::min(count, max);
}

void Session::Release(mig_message* message) {
  TimedCall("message_release", GlobalConfig().call_limit,
            [&] { Ops()->message_release(session_, message); });
}

}  // namespace mig::conformance
