// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/pacer.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace mig::rdma {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(Pacer, LetsEverythingThroughWithoutALimit) {
  Pacer pacer(0);
  pacer.Tick(5);
  EXPECT_EQ(pacer.Allowed(UINT64_MAX), UINT64_MAX);
  pacer.Spend(UINT64_MAX);
  EXPECT_EQ(pacer.Allowed(1), 1u);
  EXPECT_TRUE(pacer.Ready());
}

// Whoever sends what is allowed and sleeps until the deadline gets the rate.
TEST(Pacer, KeepsTheRateOverTimeAtAnyRate) {
  for (const uint64_t rate : {uint64_t{1000}, uint64_t{1} << 20,
                              uint64_t{12'500'000'000}, UINT64_MAX}) {
    Pacer pacer(rate);
    uint64_t now = 77 * kSecond;
    const uint64_t start = now;
    uint64_t sent = 0;
    for (int i = 0; i < 10'000 && now < start + 100 * kSecond; ++i) {
      pacer.Tick(now);
      for (uint64_t step; (step = pacer.Allowed(4096)) > 0;) {
        pacer.Spend(step);
        sent += step;
        if (rate == UINT64_MAX && sent > uint64_t{1} << 34) break;
      }
      if (rate == UINT64_MAX) break;
      const uint64_t due = pacer.DueNs();
      ASSERT_GT(due, now);
      now = due;
    }
    if (rate == UINT64_MAX) continue;
    const double ideal =
        static_cast<double>(rate) * static_cast<double>(now - start) / 1e9;
    const double burst = std::max(static_cast<double>(rate) * 0.005, 65536.0);
    EXPECT_LE(static_cast<double>(sent), ideal + burst + 4096) << rate;
    EXPECT_GE(static_cast<double>(sent), ideal - burst) << rate;
  }
}

TEST(Pacer, IsReadyExactlyAtItsDeadline) {
  Pacer pacer(1'000'000);
  pacer.Tick(0);
  pacer.Spend(10'000'000);
  EXPECT_EQ(pacer.Allowed(1), 0u);
  const uint64_t due = pacer.DueNs();
  pacer.Tick(due - 1);
  EXPECT_FALSE(pacer.Ready());
  pacer.Tick(due);
  EXPECT_TRUE(pacer.Ready());
  EXPECT_EQ(pacer.DueNs(), due);
}

TEST(Pacer, ALongSleepGivesNoMoreThanABurst) {
  Pacer pacer(1'000'000'000);
  pacer.Tick(0);
  pacer.Spend(5'000'000);
  pacer.Tick(3600 * kSecond);
  EXPECT_EQ(pacer.Allowed(UINT64_MAX), 5'001'216u);  // 5 MB, whole pages
}

}  // namespace
}  // namespace mig::rdma
