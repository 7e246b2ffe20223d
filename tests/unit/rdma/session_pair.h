// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A source and a destination session over two soft devices, in one thread,
// under a clock that the test moves.
#ifndef TESTS_UNIT_RDMA_SESSION_PAIR_H_
#define TESTS_UNIT_RDMA_SESSION_PAIR_H_

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "opener_pair.h"
#include "rdma/session.h"
#include "soft-verbs/soft_verbs.h"

namespace mig::rdma {

constexpr uint64_t kPageBytes = 4096;

class SessionSide {
 public:
  SessionSide(OpenerHost* host, std::shared_ptr<soft::Fabric> fabric,
              const std::string& config, uint32_t role, uint64_t pages,
              bool pinned, bool on_demand = false, uint32_t depth = 64)
      : SessionSide(
            host,
            *soft::MakeSoftVerbs(config, &host->host(), std::move(fabric)),
            role, pages, pinned, on_demand, depth) {}
  SessionSide(OpenerHost* host, std::unique_ptr<soft::SoftVerbs> device,
              uint32_t role, uint64_t pages, bool pinned,
              bool on_demand = false, uint32_t depth = 64)
      : verbs(device.get()), size_(pages * kPageBytes) {
    RegistrationSettings registration;
    registration.on_demand = on_demand;
    // Nothing may be pinned where nothing has to be.
    registration.memlock = [this, on_demand] {
      ++memlock_reads;
      return Memlock{.unlimited = !on_demand};
    };
    pool = std::make_shared<DevicePool>(std::move(device), verbs, &host->host(),
                                        registration);
    settings.pinned = pinned;
    settings.close_timeout_ns = kSecond;
    OpenerSettings& opener = settings.opener;
    opener.hello.role = role;
    opener.hello.attempt = 1;
    opener.hello.max_message = 1u << 20;
    opener.hello.window = 4u << 20;
    opener.hello.peer_timeout_ns = 10 * kSecond;
    opener.hello.chunk_size = 1u << 20;
    opener.hello.data_qps = 2;
    opener.data.most = {.max_send_wr = depth,
                        .max_recv_wr = FenceReceiver::kReceives,
                        .max_send_sge = 1,
                        .max_recv_sge = 1,
                        .max_inline_data = 0};
    opener.data.least_send_depth = 16;
    opener.data.least_receive_depth = FenceReceiver::kReceives;
    opener.connect_timeout_ns = 10 * kSecond;
    opener.handshake_timeout_ns = 5 * kSecond;
    opener.threads = false;
    Renew(host);
    // Between pages that nobody may touch.
    auto* const area = static_cast<unsigned char*>(
        mmap(nullptr, size_ + 2 * kPageBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memory = area + kPageBytes;
    EXPECT_EQ(mprotect(memory, size_, PROT_READ | PROT_WRITE), 0);
  }
  ~SessionSide() {
    session.reset();
    EXPECT_EQ(pool.use_count(), 1);
    pool.reset();
    munmap(memory - kPageBytes, size_ + 2 * kPageBytes);
  }
  Session* operator->() { return session.get(); }
  uint64_t size() const { return size_; }

  // Another session on the same device, with `settings`.
  void Renew(OpenerHost* host) {
    session.reset();
    events.clear();
    session = *Session::Create(&host->host(), pool, settings);
  }

  absl::Status AddBlock(uint32_t id) {
    struct mig_block block = {};
    block.size = sizeof(block);
    block.id = id;
    block.name = "ram";
    block.address = memory;
    block.length = size_;
    block.page_size = kPageBytes;
    block.fd = -1;
    return session->AddBlock(block);
  }
  void Step() {
    std::array<struct mig_event, 8> taken;
    size_t count = 0;
    EXPECT_TRUE(
        session
            ->Progress(taken.data(), taken.size(), sizeof(taken[0]), 0, &count)
            .ok());
    for (size_t i = 0; i < count; ++i) {
      events.push_back(taken[i]);
      if (taken[i].message != nullptr) {
        session->MessageRelease(taken[i].message);
      }
    }
  }
  bool Has(uint32_t type) const { return Find(type) != events.end(); }
  std::vector<struct mig_event>::const_iterator Find(uint32_t type) const {
    return std::find_if(events.begin(), events.end(),
                        [type](const auto& e) { return e.type == type; });
  }
  int32_t FailureCode() const {
    for (const auto& event : events) {
      if (event.type == MIG_EVENT_ERROR || event.type == MIG_EVENT_IN_DOUBT) {
        return event.code;
      }
    }
    return MIG_OK;
  }
  bool Ended() const {
    return FailureCode() != MIG_OK || Has(MIG_EVENT_HANDOVER_REFUSED);
  }
  uint64_t Count(Counter counter) const {
    std::array<uint64_t, kCounterCount> values;
    session->GetStats(values.data(), values.size());
    return values[static_cast<size_t>(counter)];
  }

  soft::SoftVerbs* verbs = nullptr;
  SessionSettings settings;
  std::shared_ptr<DevicePool> pool;
  std::unique_ptr<Session> session;
  unsigned char* memory = nullptr;
  std::vector<struct mig_event> events;
  int memlock_reads = 0;

 private:
  const uint64_t size_;
};

class SessionTest : public ::testing::Test {
 protected:
  void Make(const std::string& source = "mlx5,seed=1",
            const std::string& target = "mlx5,seed=2", bool pinned = true,
            uint64_t pages = 512) {
    s.reset();
    d.reset();
    auto fabric = std::make_shared<soft::Fabric>();
    s = std::make_unique<SessionSide>(&host, fabric, source, MIG_ROLE_SOURCE,
                                      pages, pinned, on_demand, depth);
    d = std::make_unique<SessionSide>(&host, fabric, target,
                                      MIG_ROLE_DESTINATION, pages, pinned,
                                      on_demand, depth);
    for (uint64_t i = 0; i < s->size(); ++i) {
      s->memory[i] = static_cast<unsigned char>(i / kPageBytes * 7 + i);
    }
    std::memset(d->memory, 0xee, d->size());
  }
  // Steps both, and moves the clock where both rest, at most to `end`; false if
  // nothing is due before.
  bool Tick(uint64_t end) {
    s->Step();
    d->Step();
    uint64_t s_due = 0;
    uint64_t d_due = 0;
    const bool s_busy = (*s)->Arm(&s_due);
    const bool d_busy = (*d)->Arm(&d_due);
    std::array<struct pollfd, 2> fds = {
        {{(*s)->EventFd().fd, POLLIN, 0}, {(*d)->EventFd().fd, POLLIN, 0}}};
    if (s_busy || d_busy || poll(fds.data(), fds.size(), 0) > 0) return true;
    const uint64_t due = std::min(s_due, d_due);
    if (due > end) return false;
    host.now_ns = std::max(host.now_ns, due);
    return true;
  }
  // Until `done`; false if that does not come within `limit`.
  template <typename Done>
  bool RunUntil(Done done, uint64_t limit = 60 * kSecond) {
    const uint64_t end = host.now_ns + limit;
    for (int i = 0; i < 200'000; ++i) {
      if (done()) return true;
      if (!Tick(end)) return done();
    }
    ADD_FAILURE() << "the sessions never come to rest";
    return false;
  }
  bool Ready(const std::string& uri = kUri) {
    EXPECT_TRUE((*d)->Listen(uri).ok());
    EXPECT_TRUE((*s)->Connect(uri).ok());
    const auto connected = [this] {
      return (s->Has(MIG_EVENT_CONNECTED) && d->Has(MIG_EVENT_CONNECTED)) ||
             (s->Ended() && d->Ended());
    };
    if (!RunUntil(connected) || s->Ended() || d->Ended()) return false;
    EXPECT_TRUE(s->AddBlock(7).ok());
    EXPECT_TRUE(d->AddBlock(9).ok());
    EXPECT_TRUE((*s)->Exchange().ok());
    EXPECT_TRUE((*d)->Exchange().ok());
    const auto ready = [this] {
      return (s->Has(MIG_EVENT_BLOCKS_READY) &&
              d->Has(MIG_EVENT_BLOCKS_READY)) ||
             (s->Ended() && d->Ended());
    };
    return RunUntil(ready) && !s->Ended() && !d->Ended();
  }
  // Each page by itself, from the last to the first: nothing to merge. And a
  // flush now and then, as hosts do.
  absl::Status WriteAll() {
    for (uint64_t at = s->size(); at > 0 && !s->Ended();) {
      if (at / kPageBytes % 1000 == 0) {
        MIG_RETURN_IF_ERROR((*s)->Flush());
      }
      const struct mig_range range = {at - kPageBytes, kPageBytes, 7, 0, 0};
      size_t accepted = 0;
      uint64_t partial = 0;
      absl::Status status =
          (*s)->Write(&range, 1, sizeof(range), &accepted, &partial);
      if (!status.ok()) return status;
      at -= accepted * kPageBytes;
      if (accepted == 0) Tick(host.now_ns + 60 * kSecond);
    }
    return absl::OkStatus();
  }
  bool Round(uint64_t number) {
    if (!(*s)->RoundBegin(number, 0).ok() || !WriteAll().ok() ||
        !(*s)->RoundEnd(number).ok()) {
      return false;
    }
    return RunUntil([this, number] {
      const auto done = [number](const SessionSide& side) {
        return std::any_of(
            side.events.begin(), side.events.end(), [number](const auto& e) {
              return e.type == MIG_EVENT_ROUND_DONE && e.number == number;
            });
      };
      return (done(*s) && done(*d)) || (s->Ended() && d->Ended());
    });
  }
  bool Same() const {
    return std::memcmp(s->memory, d->memory, s->size()) == 0;
  }
  // Both close within their bound.
  void CloseBoth() {
    (*s)->Close();
    (*d)->Close();
    EXPECT_TRUE(RunUntil(
        [this] { return s->Has(MIG_EVENT_CLOSED) && d->Has(MIG_EVENT_CLOSED); },
        5 * kSecond));
  }

  OpenerHost host;
  bool on_demand = false;  // registration=odp
  uint32_t depth = 64;     // of a data queue pair
  std::unique_ptr<SessionSide> s;
  std::unique_ptr<SessionSide> d;
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_SESSION_PAIR_H_
