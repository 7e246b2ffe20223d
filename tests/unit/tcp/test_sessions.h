// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Sessions under a clock that the test moves, both in one thread: what a test
// does is what happens, in that order.
#ifndef TESTS_UNIT_TCP_TEST_SESSIONS_H_
#define TESTS_UNIT_TCP_TEST_SESSIONS_H_

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tcp/session.h"

namespace mig::tcp {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPage = 4096;

// Host services whose clock stands still, and whose random bytes are counted
// up, so that a run can be repeated.
class FakeHost {
 public:
  explicit FakeHost(uint32_t flags = 0) : host_(Services(flags)) {}
  const Host& host() const { return host_; }
  void Advance(uint64_t ns) { now_ns_ += ns; }
  uint64_t now_ns() const { return now_ns_; }
  std::vector<std::string> log;

 private:
  struct mig_host_services Services(uint32_t flags) {
    struct mig_host_services services = {};
    services.size = sizeof(services);
    services.flags = flags;
    services.host = this;
    services.clock_ns = [](void* self) {
      return static_cast<FakeHost*>(self)->now_ns_;
    };
    services.random = [](void* self, void* to, size_t size) {
      std::memset(to, ++static_cast<FakeHost*>(self)->random_, size);
      return 0;
    };
    services.log = [](void* self, int32_t, const char* line) {
      static_cast<FakeHost*>(self)->log.emplace_back(line);
    };
    return services;
  }
  uint64_t now_ns_ = 1000 * kSecond;
  uint8_t random_ = 0;
  Host host_;
};

inline SessionSettings SettingsOf(uint32_t role, const std::string& key = "") {
  SessionSettings settings;
  settings.opener.key = key;
  Hello& hello = settings.opener.hello;
  hello.role = role;
  hello.auth = key.empty() ? 0 : 1;
  hello.uuid.fill(0x42);
  hello.attempt = 1;
  hello.max_message = 1u << 20;
  hello.window = 4u << 20;
  hello.peer_timeout_ns = 10 * kSecond;
  settings.opener.connect_timeout_ns = 10 * kSecond;
  settings.opener.handshake_timeout_ns = 5 * kSecond;
  settings.close_timeout_ns = kSecond;
  settings.batches = 8;
  return settings;
}

// Guest memory between two pages that nobody may touch.
class GuardedMemory {
 public:
  explicit GuardedMemory(uint64_t size, int fill = 0) : size_(size) {
    whole_ = static_cast<std::byte*>(mmap(nullptr, size + 2 * kPage, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(data(), size, PROT_READ | PROT_WRITE);
    std::memset(data(), fill, size);
  }
  ~GuardedMemory() { munmap(whole_, size_ + 2 * kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  std::byte* data() const { return whole_ + kPage; }
  uint64_t size() const { return size_; }
  bool AllAre(int value) const {
    return std::all_of(data(), data() + size_, [value](std::byte b) {
      return std::to_integer<int>(b) == value;
    });
  }

 private:
  uint64_t size_;
  std::byte* whole_;
};

inline struct mig_block BlockOf(const GuardedMemory& memory, uint32_t id,
                                const char* name = "ram", uint32_t flags = 0) {
  struct mig_block block = {};
  block.size = sizeof(block);
  block.id = id;
  block.name = name;
  block.address = memory.data();
  block.length = memory.size();
  block.page_size = kPage;
  block.flags = flags;
  block.fd = -1;
  return block;
}

// One session and the events that came out of it. Messages are copied and,
// unless told otherwise, released.
class Side {
 public:
  Side(FakeHost* host, SessionSettings settings) {
    auto made = Session::Create(&host->host(), std::move(settings));
    EXPECT_TRUE(made.ok());
    session_ = *std::move(made);
  }
  Session* operator->() { return session_.get(); }
  Session& session() { return *session_; }
  void Destroy() { session_.reset(); }

  void Step() {
    std::array<struct mig_event, 8> taken;
    size_t count = 0;
    EXPECT_TRUE(
        session_
            ->Progress(taken.data(), taken.size(), sizeof(taken[0]), 0, &count)
            .ok());
    for (size_t i = 0; i < count; ++i) {
      events.push_back(taken[i]);
      if (taken[i].type != MIG_EVENT_MESSAGE) continue;
      messages.emplace_back(static_cast<const char*>(taken[i].data),
                            taken[i].data == nullptr ? 0 : taken[i].length);
      if (release) session_->MessageRelease(taken[i].message);
    }
  }
  bool Busy() {
    uint64_t deadline = 0;
    return session_->Arm(&deadline);
  }
  uint64_t Deadline() {
    uint64_t deadline = 0;
    session_->Arm(&deadline);
    return deadline;
  }
  size_t Count(uint32_t type) const {
    return static_cast<size_t>(
        std::count_if(events.begin(), events.end(),
                      [type](const auto& e) { return e.type == type; }));
  }
  bool Has(uint32_t type) const { return Count(type) > 0; }
  std::vector<uint32_t> Types() const {
    std::vector<uint32_t> types;
    for (const auto& event : events) types.push_back(event.type);
    return types;
  }
  // The code of the one ERROR or IN_DOUBT, 0 if there is none.
  int32_t FailureCode() const {
    for (const auto& event : events) {
      if (event.type == MIG_EVENT_ERROR || event.type == MIG_EVENT_IN_DOUBT) {
        return event.code;
      }
    }
    return MIG_OK;
  }
  std::string ErrorText() { return std::string(session_->error().message()); }

  std::vector<struct mig_event> events;
  std::vector<std::string> messages;
  bool release = true;

 private:
  std::unique_ptr<Session> session_;
};

// A source and a destination over a socket pair, each with one block.
class Pair {
 public:
  explicit Pair(uint64_t pages = 64,
                const std::function<void(SessionSettings*)>& change = {},
                const std::string& source_key = "",
                const std::string& destination_key = "")
      : source_memory(pages * kPage, 1), destination_memory(pages * kPage, 2) {
    SessionSettings s = SettingsOf(MIG_ROLE_SOURCE, source_key);
    SessionSettings d = SettingsOf(MIG_ROLE_DESTINATION, destination_key);
    if (change) {
      change(&s);
      change(&d);
    }
    source = std::make_unique<Side>(&host, s);
    destination = std::make_unique<Side>(&host, d);
    std::array<int, 2> fds;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()),
              0);
    source_fd.Reset(fds[0]);
    destination_fd.Reset(fds[1]);
    EXPECT_TRUE((*destination)->Listen(absl::StrCat("fd:", fds[1])).ok());
    EXPECT_TRUE((*source)->Connect(absl::StrCat("fd:", fds[0])).ok());
  }
  Side& s() { return *source; }
  Side& d() { return *destination; }

  // Steps both until neither has anything to do.
  void Settle() {
    for (int i = 0; i < 5000; ++i) {
      s().Step();
      d().Step();
      if (!s().Busy() && !d().Busy() && !Pending()) return;
    }
    ADD_FAILURE() << "the sessions never come to rest";
  }
  void Ready(uint32_t destination_flags = 0) {
    EXPECT_TRUE(s()->AddBlock(BlockOf(source_memory, 7)).ok());
    EXPECT_TRUE(
        d()->AddBlock(BlockOf(destination_memory, 9, "ram", destination_flags))
            .ok());
    Settle();
    EXPECT_TRUE(s()->Exchange().ok());
    EXPECT_TRUE(d()->Exchange().ok());
    Settle();
    EXPECT_TRUE(s().Has(MIG_EVENT_BLOCKS_READY)) << s().ErrorText();
    EXPECT_TRUE(d().Has(MIG_EVENT_BLOCKS_READY)) << d().ErrorText();
  }
  // Writes everything, waiting as a host does.
  void Write(std::vector<struct mig_range> ranges) {
    size_t at = 0;
    for (int i = 0; i < 100000 && at < ranges.size(); ++i) {
      size_t accepted = 0;
      uint64_t partial = 0;
      ASSERT_TRUE(s()->Write(ranges.data() + at, ranges.size() - at,
                             sizeof(ranges[0]), &accepted, &partial)
                      .ok());
      at += accepted;
      if (at < ranges.size()) {
        ranges[at].offset += partial;
        ranges[at].length -= partial;
      }
      s().Step();
      d().Step();
    }
    ASSERT_EQ(at, ranges.size());
  }
  void Round(uint64_t number, std::vector<struct mig_range> ranges) {
    ASSERT_TRUE(s()->RoundBegin(number, 0).ok());
    Write(std::move(ranges));
    ASSERT_TRUE(s()->RoundEnd(number).ok());
    Settle();
  }
  void OneRound() {
    Ready();
    Round(1, {{0, source_memory.size(), 7, 0, 0}});
    EXPECT_TRUE(s().Has(MIG_EVENT_ROUND_DONE));
    EXPECT_TRUE(d().Has(MIG_EVENT_ROUND_DONE));
  }
  // The destination's host has seen the offer.
  void Offered() {
    OneRound();
    EXPECT_TRUE(s()->Handover().ok());
    Settle();
    EXPECT_TRUE(d().Has(MIG_EVENT_HANDOVER));
  }
  // As a host does: the sessions have their own, and what one closes, ends.
  void LetGo() {
    source_fd.Reset();
    destination_fd.Reset();
  }
  // The link breaks, both ways. Not after LetGo.
  void Cut() {
    shutdown(source_fd.get(), SHUT_RDWR);
    shutdown(destination_fd.get(), SHUT_RDWR);
  }
  bool Same() const {
    return std::memcmp(source_memory.data(), destination_memory.data(),
                       source_memory.size()) == 0;
  }

  FakeHost host;
  GuardedMemory source_memory;
  GuardedMemory destination_memory;
  UniqueFd source_fd, destination_fd;
  std::unique_ptr<Side> source, destination;

 private:
  // Whether a host that sleeps on the descriptors would be woken.
  bool Pending() {
    std::array<struct pollfd, 2> fds = {
        {{s()->EventFd().fd, POLLIN, 0}, {d()->EventFd().fd, POLLIN, 0}}};
    return poll(fds.data(), fds.size(), 0) > 0;
  }
};

}  // namespace mig::tcp

#endif  // TESTS_UNIT_TCP_TEST_SESSIONS_H_
