// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/newcomers.h"

#include <array>

#include "gtest/gtest.h"

namespace mig {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kTimeout = 5 * kSecond;

TEST(NewcomersTest, OnlyWhoWasSilentTooLongMakesRoomTheLongestFirst) {
  // Came at 1, 2, 3 and 4 s; the first has spoken.
  const std::array<Newcomer, 4> pending = {{{6 * kSecond, true},
                                            {8 * kSecond, false},
                                            {7 * kSecond, false},
                                            {9 * kSecond, false}}};
  uint64_t again = 0;
  EXPECT_EQ(PickSilent(pending, kTimeout, 3 * kSecond - 1, &again), SIZE_MAX);
  EXPECT_EQ(again, 3 * kSecond) << "when the one that came at 2 s had its time";
  EXPECT_EQ(PickSilent(pending, kTimeout, 3 * kSecond, &again), 2u);
  EXPECT_EQ(PickSilent(pending, kTimeout, 100 * kSecond, &again), 2u);
}

TEST(NewcomersTest, WhoHasSpokenStays) {
  const std::array<Newcomer, 2> pending = {
      {{6 * kSecond, true}, {6 * kSecond, true}}};
  uint64_t again = 0;
  EXPECT_EQ(PickSilent(pending, kTimeout, 5 * kSecond, &again), SIZE_MAX);
  EXPECT_EQ(again, UINT64_MAX);
  EXPECT_EQ(PickSilent({}, kTimeout, 5 * kSecond, &again), SIZE_MAX);
}

TEST(NewcomersTest, AShortHandshakeTimeoutLeavesAShortSilence) {
  EXPECT_EQ(SilenceLimitNs(100'000'000), 25'000'000u);
  EXPECT_EQ(SilenceLimitNs(600 * kSecond), kSecond);
}

}  // namespace
}  // namespace mig
