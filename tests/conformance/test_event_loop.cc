// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 13: a host with an event loop of its own, which sleeps on the fds until
// one is ready or arm's deadline has come, and calls progress only then.
#include <poll.h>

#include <algorithm>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class EventLoop : public Conformance {};

// Both sides on one poll(2). Notes when nothing woke it although there was
// something to do.
class Loop {
 public:
  explicit Loop(Pair& pair) : pair_(pair) {
    for (Session* side : {&pair_.source(), &pair_.destination()}) Refresh(side);
  }

  bool supported() const { return !fds_[0].empty() && !fds_[1].empty(); }
  int wakeups() const { return wakeups_; }

  // Runs until `done`. A lost wake-up shows as a sleep that never ends.
  bool Run(const std::function<bool()>& done) {
    const uint64_t give_up = RealNow() + 20'000'000'000;
    while (!done()) {
      if (RealNow() > give_up) return false;
      Turn();
    }
    return true;
  }

  // One sleep, and a progress of the sides that need it.
  void Turn() {
    bool due[2] = {Due(0), Due(1)};
    if (!due[0] && !due[1]) Sleep(due);
    for (int i = 0; i < 2; ++i) {
      if (!due[i]) continue;
      Session& side = Side(i);
      const size_t changes = side.Count(MIG_EVENT_FDS_CHANGED);
      side.Progress();
      if (side.Count(MIG_EVENT_FDS_CHANGED) > changes) Refresh(&side);
    }
  }

 private:
  Session& Side(int i) { return i == 0 ? pair_.source() : pair_.destination(); }

  void Refresh(Session* side) {
    fds_[side == &pair_.source() ? 0 : 1] = side->EventFds();
  }

  bool Due(int i) {
    deadlines_[i] = MIG_NO_DEADLINE;
    const int32_t status = Side(i).Arm(&deadlines_[i]);
    EXPECT_TRUE(status == MIG_OK || status == MIG_BUSY) << StatusName(status);
    return status != MIG_OK;
  }

  void Sleep(bool due[2]) {
    std::vector<pollfd> polled;
    for (const auto& fds : fds_) {
      for (const mig_event_fd& fd : fds) {
        polled.push_back({fd.fd, static_cast<short>(fd.events), 0});
      }
    }
    ++wakeups_;
    if (poll(polled.data(), polled.size(), Timeout()) < 0) return;
    size_t at = 0;
    for (int i = 0; i < 2; ++i) {
      for (size_t j = 0; j < fds_[i].size(); ++j) {
        due[i] = due[i] || polled[at++].revents != 0;
      }
      due[i] = due[i] || Side(i).host().Now() >= deadlines_[i];
    }
  }

  int Timeout() {
    uint64_t wait = 2'000'000'000;  // to look whether the bound has passed
    for (int i = 0; i < 2; ++i) {
      const uint64_t now = Side(i).host().Now();
      const uint64_t left = deadlines_[i] > now ? deadlines_[i] - now : 0;
      wait = std::min(wait, left);
    }
    return static_cast<int>((wait + 999'999) / 1'000'000);
  }

  Pair& pair_;
  std::vector<mig_event_fd> fds_[2];
  uint64_t deadlines_[2] = {0, 0};
  int wakeups_ = 0;
};

#define NEEDS_FDS(loop) \
  if (!(loop).supported()) GTEST_SKIP() << "the plugin has no event fds"

TEST_F(EventLoop, Rule13_FdsAndDeadlinesDriveAWholeMigration) {
  Pair pair;
  ASSERT_TRUE(pair.Start());
  Loop loop(pair);
  NEEDS_FDS(loop);
  Session& source = pair.source();
  Session& destination = pair.destination();
  const auto both = [&](uint32_t type, size_t times) {
    return loop.Run([&, type, times] {
      return source.Count(type) >= times && destination.Count(type) >= times;
    });
  };
  ASSERT_TRUE(both(MIG_EVENT_CONNECTED, 1)) << pair.Describe();
  ASSERT_TRUE(pair.AddBlock({.length = 16ULL << 20}));
  ASSERT_EQ(source.Exchange(), MIG_OK);
  ASSERT_EQ(destination.Exchange(), MIG_OK);
  ASSERT_TRUE(both(MIG_EVENT_BLOCKS_READY, 1)) << pair.Describe();
  Block& block = pair.block();
  for (uint64_t round = 1; round <= 5; ++round) {
    block.source.Fill(0, block.spec.length, round);
    ASSERT_EQ(source.RoundBegin(round), MIG_OK);
    for (uint64_t at = 0; at < block.spec.length;) {
      const size_t ready = source.Count(MIG_EVENT_WRITE_READY);
      Taken taken;
      const mig_range rest = block.Range(at, block.spec.length - at);
      ASSERT_EQ(source.Write({{rest}}, &taken), MIG_OK);
      at = taken.accepted == 1 ? block.spec.length : at + taken.partial;
      if (at == block.spec.length) break;
      ASSERT_TRUE(loop.Run([&] {
        return source.Count(MIG_EVENT_WRITE_READY) > ready;
      })) << "no wake-up for WRITE_READY; "
          << pair.Describe();
    }
    ASSERT_EQ(source.RoundEnd(round), MIG_OK);
    ASSERT_TRUE(both(MIG_EVENT_ROUND_DONE, round)) << pair.Describe();
    EXPECT_TRUE(block.source.Equals(block.destination));
    ASSERT_EQ(destination.Send(1, "pong"), MIG_OK);
    ASSERT_TRUE(loop.Run([&] {
      return source.Count(MIG_EVENT_MESSAGE) == round;
    })) << pair.Describe();
  }
  ASSERT_EQ(source.Handover(), MIG_OK);
  ASSERT_TRUE(loop.Run([&] { return destination.Saw(MIG_EVENT_HANDOVER); }));
  ASSERT_EQ(destination.Handover(), MIG_OK);
  ASSERT_TRUE(loop.Run([&] { return source.Saw(MIG_EVENT_COMMITTED); }));
  source.Close();
  destination.Close();
  ASSERT_TRUE(both(MIG_EVENT_CLOSED, 1)) << pair.Describe();
}

TEST_F(EventLoop, Rule13_AnIdleSessionLetsTheHostSleep) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Loop loop(pair);
  NEEDS_FDS(loop);
  const uint64_t until = RealNow() + 500'000'000;
  ASSERT_TRUE(loop.Run([&] { return RealNow() > until; }));
  EXPECT_LT(loop.wakeups(), 500) << "it does not sleep but spins";
}

TEST_F(EventLoop, Rule02_Rule13_WakeAndCancelWakeThePoll) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Loop loop(pair);
  NEEDS_FDS(loop);
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(5));
  pair.source().Cancel();
  EXPECT_TRUE(loop.Run([&] {
    return pair.source().Saw(MIG_EVENT_ERROR) &&
           pair.destination().Saw(MIG_EVENT_ERROR);
  })) << pair.Describe();
}

TEST_F(EventLoop, Rule13_ThePeersDeathWakesThePoll) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Loop loop(pair);
  NEEDS_FDS(loop);
  pair.source().Destroy();
  const uint64_t give_up = RealNow() + 20'000'000'000;
  Session& side = pair.destination();
  while (!side.Saw(MIG_EVENT_ERROR) && RealNow() < give_up) {
    uint64_t deadline = 0;
    if (side.Arm(&deadline) == MIG_OK) {
      std::vector<pollfd> polled;
      for (const mig_event_fd& fd : side.EventFds()) {
        polled.push_back({fd.fd, static_cast<short>(fd.events), 0});
      }
      const int ready = poll(polled.data(), polled.size(), 20'000);
      EXPECT_GT(ready, 0) << "the fds say nothing of the peer's death";
      if (ready <= 0) break;
    }
    side.Progress();
  }
  EXPECT_TRUE(side.Saw(MIG_EVENT_ERROR)) << side.Describe();
}

// The clock jumps from deadline to deadline: whoever calls progress only then
// is in time for everything.
TEST_F(EventLoop, Rule04_Rule13_DeadlinesAloneKeepBothSidesAlive) {
  MIG_NEEDS_SIMULATED_CLOCK();
  Pair pair({.clock = ClockKind::kSimulated, .one_context = true});
  ASSERT_TRUE(pair.Ready());
  Host& host = pair.source_host();
  const uint64_t end = host.Now() + 600'000'000'000;
  int turns = 0;
  while (host.Now() < end && ++turns < 20'000) {
    DriveFor({&pair.source(), &pair.destination()}, milliseconds(1));
    uint64_t next = MIG_NO_DEADLINE;
    for (Session* side : {&pair.source(), &pair.destination()}) {
      uint64_t deadline = MIG_NO_DEADLINE;
      const int32_t status = side->Arm(&deadline);
      if (status == MIG_E_UNSUPPORTED) GTEST_SKIP() << "no arm";
      if (status == MIG_BUSY) deadline = host.Now();
      next = std::min(next, deadline);
    }
    if (next == MIG_NO_DEADLINE) break;  // nothing is ever due
    if (next > host.Now()) host.Advance(next - host.Now());
  }
  EXPECT_LT(turns, 20'000) << "deadlines that do not move on";
  EXPECT_FALSE(pair.source().Ended()) << pair.Describe();
  EXPECT_FALSE(pair.destination().Ended()) << pair.Describe();
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
}

}  // namespace
}  // namespace mig::conformance
