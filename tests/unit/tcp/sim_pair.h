// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A source and a destination over a simulated network, driven by nothing but
// arm and a clock that goes from one deadline to the next.
#ifndef TESTS_UNIT_TCP_SIM_PAIR_H_
#define TESTS_UNIT_TCP_SIM_PAIR_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tcp/sim_network.h"
#include "test_sessions.h"

namespace mig::tcp {

class SimPair {
 public:
  static constexpr uint64_t kPages = 96;
  // Side, time, and the event's type, code and number.
  using Seen = std::tuple<int, uint64_t, uint32_t, int32_t, uint64_t>;

  explicit SimPair(const std::string& source = "sim:pair,seed=1",
                   const std::string& destination = "sim:pair,seed=2")
      : start_ns(host.now_ns()),
        source_memory(kPages * kPage, 1),
        destination_memory(kPages * kPage, 2),
        source_(&host, Settings(MIG_ROLE_SOURCE, source)),
        destination_(&host, Settings(MIG_ROLE_DESTINATION, destination)) {}

  Side& s() { return source_; }
  Side& d() { return destination_; }
  uint64_t elapsed_ns() const { return host.now_ns() - start_ns; }

  // Steps who is busy, or moves the clock to where somebody will be; false:
  // nobody will before `end`.
  bool Tick(uint64_t end) {
    uint64_t next = MIG_NO_DEADLINE;
    bool stepped = false;
    for (const int who : {0, 1}) {
      Side& side = who == 0 ? source_ : destination_;
      uint64_t deadline = 0;
      if (side->Arm(&deadline)) {
        stepped = true;
        Step(who);
      } else {
        EXPECT_GT(deadline, host.now_ns());
        next = std::min(next, deadline);
      }
    }
    if (stepped) return true;
    if (next > end) return false;
    host.Advance(next - host.now_ns());
    return true;
  }
  // Until `done`; false if that does not come within `limit`.
  template <typename Done>
  bool RunUntil(Done done, uint64_t limit = 60 * kSecond) {
    const uint64_t end = host.now_ns() + limit;
    for (int i = 0; i < 500'000; ++i) {
      if (done()) return true;
      if (!Tick(end)) return done();
    }
    ADD_FAILURE() << "the sessions never come to rest";
    return false;
  }
  bool Over() { return over(source_) || over(destination_); }
  // Until both have `type`, or one has failed; true: both have it.
  bool Both(uint32_t type, size_t count = 1) {
    const auto done = [&] {
      return source_.Count(type) >= count && destination_.Count(type) >= count;
    };
    return RunUntil([&] { return done() || Over(); }) && done();
  }

  bool Connect(const std::string& at = "tcp://127.0.0.1:0") {
    if (!destination_->Listen(at).ok()) return false;
    if (!source_->Connect(*destination_->LocalAddress()).ok()) return false;
    return Both(MIG_EVENT_CONNECTED);
  }
  bool Ready() {
    if (!Connect()) return false;
    EXPECT_TRUE(source_->AddBlock(BlockOf(source_memory, 7)).ok());
    EXPECT_TRUE(destination_->AddBlock(BlockOf(destination_memory, 9)).ok());
    return source_->Exchange().ok() && destination_->Exchange().ok() &&
           Both(MIG_EVENT_BLOCKS_READY);
  }
  // Changes each n-th page and sends it.
  bool Round(uint64_t number) {
    std::vector<struct mig_range> ranges;
    for (uint64_t page = 0; page < kPages; page += number) {
      std::memset(source_memory.data() + page * kPage,
                  static_cast<int>(number * 31 + page), kPage);
      ranges.push_back({page * kPage, kPage, 7, 0, 0});
    }
    return source_->RoundBegin(number, 0).ok() && Write(std::move(ranges)) &&
           source_->RoundEnd(number).ok() && Both(MIG_EVENT_ROUND_DONE, number);
  }
  // A message there, and one back.
  bool Talk() {
    const std::string text(10'000, 'm');
    const struct mig_iov iov = {text.data(), text.size()};
    for (Side* from : {&source_, &destination_}) {
      Side* const to = from == &source_ ? &destination_ : &source_;
      const auto sent = (*from)->Send(0, 1, &iov, 1, sizeof(iov));
      if (!sent.ok() || !*sent) return false;
      if (!RunUntil([&] { return !to->messages.empty() || Over(); })) {
        return false;
      }
      if (to->messages.empty()) return false;
      EXPECT_EQ(to->messages.front(), text);
    }
    return true;
  }
  bool HandOver() {
    if (!source_->Handover().ok()) return false;
    RunUntil([&] { return destination_.Has(MIG_EVENT_HANDOVER) || Over(); });
    taken = destination_->Handover().ok();
    RunUntil([&] { return source_.Has(MIG_EVENT_COMMITTED) || Over(); });
    return taken && source_.Has(MIG_EVENT_COMMITTED);
  }
  bool Migrate() {
    return Ready() && Round(1) && Round(2) && Round(3) && Talk() && HandOver();
  }
  // Both get CLOSED within their bound, whatever has become of them.
  void CloseBoth() {
    source_->Close();
    destination_->Close();
    const auto closed = [&] {
      return source_.Has(MIG_EVENT_CLOSED) &&
             destination_.Has(MIG_EVENT_CLOSED);
    };
    EXPECT_TRUE(RunUntil(closed, 3 * kSecond));
    EXPECT_FALSE(Tick(MIG_NO_DEADLINE - 1)) << "closed, and not at rest";
  }
  // Rule 12, at the end of all.
  void ExpectOneGuest() {
    const bool source_runs =
        source_.Has(MIG_EVENT_HANDOVER_REFUSED) || source_.Has(MIG_EVENT_ERROR);
    EXPECT_FALSE(source_runs && taken) << "two guests run";
    EXPECT_FALSE(source_.Has(MIG_EVENT_COMMITTED) && !taken) << "none runs";
    EXPECT_TRUE(!taken || Same()) << "a guest with wrong memory runs";
  }
  bool Same() const {
    return std::memcmp(source_memory.data(), destination_memory.data(),
                       source_memory.size()) == 0;
  }
  uint64_t Counted(Side* side, Counter counter) {
    std::array<uint64_t, kCounterCount> values;
    (*side)->GetStats(values.data(), values.size());
    return values[static_cast<size_t>(counter)];
  }

  FakeHost host{MIG_HOST_SIMULATED_CLOCK};
  const uint64_t start_ns;
  GuardedMemory source_memory;
  GuardedMemory destination_memory;
  std::vector<Seen> seen;
  bool taken = false;

 private:
  SessionSettings Settings(uint32_t role, const std::string& network) {
    SessionSettings settings = SettingsOf(role);
    auto made = MakeSimNetwork(network, &host.host());
    EXPECT_TRUE(made.ok()) << made.status();
    settings.opener.network = *std::move(made);
    settings.opener.threads = false;
    return settings;
  }
  static bool over(const Side& side) {
    return side.FailureCode() != MIG_OK ||
           side.Has(MIG_EVENT_HANDOVER_REFUSED) ||
           side.Has(MIG_EVENT_PEER_CLOSED);
  }
  void Step(int who) {
    Side& side = who == 0 ? source_ : destination_;
    const size_t before = side.events.size();
    side.Step();
    for (size_t i = before; i < side.events.size(); ++i) {
      const struct mig_event& event = side.events[i];
      seen.emplace_back(who, host.now_ns(), event.type, event.code,
                        event.number);
    }
  }
  bool Write(std::vector<struct mig_range> ranges) {
    for (size_t at = 0; at < ranges.size() && !Over();) {
      size_t accepted = 0;
      uint64_t partial = 0;
      if (!source_
               ->Write(ranges.data() + at, ranges.size() - at,
                       sizeof(ranges[0]), &accepted, &partial)
               .ok()) {
        return false;
      }
      at += accepted;
      if (at == ranges.size()) return true;
      ranges[at].offset += partial;
      ranges[at].length -= partial;
      Tick(host.now_ns() + 60 * kSecond);
    }
    return !Over();
  }

  Side source_;
  Side destination_;
};

}  // namespace mig::tcp

#endif  // TESTS_UNIT_TCP_SIM_PAIR_H_
