// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One context, and one session of it, as C++ objects. Every call checks what
// holds for all calls (call_check.h), every event what holds for all events.
#ifndef TESTS_CONFORMANCE_SESSION_H_
#define TESTS_CONFORMANCE_SESSION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "call_check.h"
#include "host.h"
#include "mig_transport.h"

namespace mig::conformance {

class Context {
 public:
  // Sets the options of the command line too.
  explicit Context(Host& host);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  mig_context* get() { return context_; }
  Host& host() { return host_; }
  int32_t SetOption(const std::string& name, const std::string& value);
  std::string GetOption(const std::string& name);
  const CallError& error() const { return error_; }
  // Held while a session is made: calls on a context are serialised.
  std::mutex& mutex() { return mutex_; }

 private:
  Host& host_;
  mig_context* context_ = nullptr;
  CallError error_;
  std::mutex mutex_;
};

using Uuid = std::array<uint8_t, MIG_UUID_SIZE>;
// One that no other test used.
Uuid NextUuid();

struct Identity {
  Uuid uuid = NextUuid();
  uint64_t attempt = 1;
  const char* extensions = nullptr;
};

struct Event {
  mig_event raw;     // data and message only until released
  std::string data;  // a copy of a message's bytes
};

// How much of a write was taken.
struct Taken {
  size_t accepted = 0;
  uint64_t partial = 0;
};

// Not thread-safe but for Cancel, Wake and GetStats, like what it wraps.
class Session {
 public:
  Session(Context& context, uint32_t role, const Identity& identity);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool valid() const { return session_ != nullptr; }
  mig_session* get() { return session_; }
  Host& host() { return host_; }
  uint32_t role() const { return role_; }
  // Of the last call that can fail.
  const CallError& error() const { return error_; }

  int32_t Listen(const std::string& uri);
  int32_t Connect(const std::string& uri);
  std::string LocalAddress();
  int32_t AddBlock(const mig_block& block);
  int32_t RemoveBlock(uint32_t id);
  int32_t Exchange();
  int32_t RoundBegin(uint64_t number, uint32_t flags = 0);
  int32_t Write(std::span<const mig_range> ranges, Taken* taken);
  int32_t Flush();
  int32_t RoundEnd(uint64_t number);
  int32_t Send(uint32_t type, std::span<const mig_iov> pieces);
  int32_t Send(uint32_t type, const std::string& bytes);
  int32_t Handover();
  int32_t HostBusy(uint64_t max_ns);
  int32_t Arm(uint64_t* deadline_ns);
  // Empty where the plugin has none.
  std::vector<mig_event_fd> EventFds();
  int32_t GetCaps(mig_caps* caps);
  void Cancel();
  void Wake();
  void Close();
  void Destroy();
  // The counters' values; empty if there are none.
  std::vector<uint64_t> GetStats();
  CallError SessionError();

  // Takes events into events(). Answers how many came.
  size_t Progress(int64_t timeout_ns = 0, size_t max = 16);

  // Off: messages stay held, and Release is the test's to call.
  void set_auto_release(bool on) { auto_release_ = on; }
  void Release(mig_message* message);

  const std::vector<Event>& events() const { return events_; }
  size_t Count(uint32_t type) const;
  bool Saw(uint32_t type) const { return Count(type) > 0; }
  bool SawNumber(uint32_t type, uint64_t number) const;
  // The first of this type, or null.
  const Event* First(uint32_t type) const;
  // Where in events() the first of this type is; events().size() if nowhere.
  size_t Index(uint32_t type, uint64_t number) const;
  std::vector<std::string> Messages() const;
  // Whether the session came to an end of any kind before close.
  bool Ended() const;
  void ForgetEvents() {
    events_.clear();
    counts_.clear();
  }
  std::string Describe() const;

 private:
  int32_t Call(const char* name, const std::function<int32_t(mig_error*)>& f);
  void Take(const mig_event& event);
  void CheckEvent(const mig_event& event);
  void CheckOrder(uint32_t type);

  Host& host_;
  uint32_t role_;
  mig_session* session_ = nullptr;
  CallError error_;
  bool auto_release_ = true;
  std::vector<Event> events_;
  std::map<uint32_t, size_t> counts_;  // by type, of events_
  std::vector<uint32_t> endings_;  // event types that end something, in order
  uint64_t last_time_ns_ = 0;
  uint64_t last_round_done_ = 0;
};

// "ROUND_DONE", or the number.
std::string EventName(uint32_t type);

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_SESSION_H_
