// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/convergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mig::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kMs = 1'000'000;

// A round at 1000 MiB/s that leaves `dirty_mib` to send.
RoundFacts Round(uint64_t sent_mib, uint64_t dirty_mib) {
  return {sent_mib * kMiB, sent_mib * kMs, dirty_mib * kMiB};
}

ConvergeLimits Limits(ConvergeMode mode) {
  ConvergeLimits limits;
  limits.mode = mode;
  limits.downtime_ns = 100 * kMs;
  limits.max_rounds = 10;
  return limits;
}

TEST(ConvergenceTest, SwitchesOverWhenTheRestFitsIntoTheLimit) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  EXPECT_EQ(policy.AfterRound(Round(4000, 101), 0, 0).next, NextStep::kRound);
  const Decision decision = policy.AfterRound(Round(101, 100), 0, 0);
  EXPECT_EQ(decision.next, NextStep::kSwitchover);
  EXPECT_EQ(decision.expected_downtime_ns, 100 * kMs);
  EXPECT_THAT(decision.word, IsEmpty());
}

TEST(ConvergenceTest, CountsTheDeviceStateIntoTheDowntime) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  EXPECT_EQ(policy.AfterRound(Round(4000, 60), 0, 60 * kMiB).next,
            NextStep::kRound);
}

TEST(ConvergenceTest, NothingButZeroPagesSwitchesOver) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  EXPECT_EQ(policy.AfterRound({0, kMs, 0}, 0, 100).next, NextStep::kSwitchover);
}

TEST(ConvergenceTest, NoBandwidthKnownAndMuchLeftIsAnotherRound) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  EXPECT_EQ(policy.AfterRound({0, kMs, 64 * kMiB}, 0, 0).next,
            NextStep::kRound);
}

// A round too small to tell bandwidth from latency must not hide that of a
// large one.
TEST(ConvergenceTest, BandwidthComesFromRoundsLargeEnoughToTell) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  policy.AfterRound(Round(4000, 1), 0, 0);
  const Decision decision =
      policy.AfterRound({kMiB, 100 * kMs, 50 * kMiB}, 0, 0);
  EXPECT_EQ(decision.next, NextStep::kSwitchover);
}

// C26: what can't converge is seen after two rounds, whatever the mode.
class DirtyRateTest : public ::testing::TestWithParam<int> {};

TEST_P(DirtyRateTest, GivesUpExactlyWhenItCannotConverge) {
  const auto percent = static_cast<uint64_t>(GetParam());
  ConvergeLimits limits = Limits(ConvergeMode::kGiveUp);
  limits.max_rounds = 0;
  ConvergencePolicy policy(limits);
  uint64_t left = 4000;
  NextStep next = NextStep::kRound;
  int rounds = 0;
  while (next == NextStep::kRound) {
    const uint64_t dirty = left * percent / 100;
    const Decision decision = policy.AfterRound(Round(left, dirty), 0, 0);
    next = decision.next;
    left = dirty;
    ++rounds;
  }
  if (percent < 90) {
    EXPECT_EQ(next, NextStep::kSwitchover);
  } else {
    EXPECT_EQ(next, NextStep::kGiveUp);
    EXPECT_EQ(rounds, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(C26, DirtyRateTest,
                         ::testing::Values(50, 60, 70, 95, 100, 150, 200));

TEST(ConvergenceTest, ThrottlesStepByStepAndSaysWhy) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  Decision decision = policy.AfterRound(Round(1000, 1000), 0, 0);
  EXPECT_EQ(decision.throttle_percent, 0U);
  decision = policy.AfterRound(Round(1000, 1000), 0, 0);
  EXPECT_EQ(decision.next, NextStep::kRound);
  EXPECT_EQ(decision.throttle_percent, 20U);
  EXPECT_THAT(decision.word, HasSubstr("dirties 1000.0 MiB/s where 1000.0"));
  decision = policy.AfterRound(Round(1000, 1000), 0, 0);
  EXPECT_EQ(decision.throttle_percent, 30U);
  decision = policy.AfterRound(Round(1000, 500), 0, 0);
  EXPECT_EQ(decision.throttle_percent, 30U) << "it converges now: no change";
  EXPECT_THAT(decision.word, IsEmpty());
}

TEST(ConvergenceTest, ThrottlingStopsAtNinetyNinePercentThenGivesUp) {
  ConvergencePolicy policy(Limits(ConvergeMode::kThrottle));
  Decision decision;
  for (int i = 0; i < 9; ++i) {
    decision = policy.AfterRound(Round(1000, 1000), 0, 0);
  }
  EXPECT_EQ(decision.throttle_percent, 90U);
  decision = policy.AfterRound(Round(1000, 1000), 0, 0);
  EXPECT_EQ(decision.next, NextStep::kGiveUp) << "10 rounds are the limit";
  EXPECT_THAT(decision.word, HasSubstr("10 rounds"));
}

TEST(ConvergenceTest, StopModeStopsTheGuestAtTheTimeLimit) {
  ConvergeLimits limits = Limits(ConvergeMode::kStop);
  limits.time_ns = 5000 * kMs;
  ConvergencePolicy policy(limits);
  policy.AfterRound(Round(1000, 1000), 1000 * kMs, 0);
  const Decision warned = policy.AfterRound(Round(1000, 1000), 2000 * kMs, 0);
  EXPECT_THAT(warned.word, HasSubstr("stopped at the limit"));
  const Decision again = policy.AfterRound(Round(1000, 1000), 3000 * kMs, 0);
  EXPECT_THAT(again.word, IsEmpty()) << "once is enough";
  const Decision stop = policy.AfterRound(Round(1000, 1000), 5000 * kMs, 0);
  EXPECT_EQ(stop.next, NextStep::kForcedStop);
  EXPECT_THAT(stop.word, HasSubstr("time limit of 5000 ms"));
}

TEST(ConvergenceTest, ModesAreReadByName) {
  EXPECT_EQ(*ParseConvergeMode("stop"), ConvergeMode::kStop);
  EXPECT_EQ(*ParseConvergeMode("give-up"), ConvergeMode::kGiveUp);
  const absl::Status status = ParseConvergeMode("pray").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("throttle, stop"));
}

}  // namespace
}  // namespace mig::sim
