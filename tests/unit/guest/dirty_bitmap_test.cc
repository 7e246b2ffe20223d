// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/dirty_bitmap.h"

#include <random>
#include <utility>

#include "test_util.h"

namespace mig::sim {
namespace {

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

Runs RunsOf(const DirtyBitmap& bitmap) {
  Runs runs;
  bitmap.ForEachRange(
      [&](uint64_t first, uint64_t count) { runs.emplace_back(first, count); });
  return runs;
}

TEST(DirtyBitmap, MergesAdjacentPagesAcrossWords) {
  DirtyBitmap bitmap(300);
  bitmap.SetRange(60, 140);
  bitmap.Set(0);
  bitmap.Set(299);
  EXPECT_EQ(RunsOf(bitmap), (Runs{{0, 1}, {60, 140}, {299, 1}}));
  EXPECT_EQ(bitmap.Count(), 142U);
}

TEST(DirtyBitmap, SetAllStopsAtTheLastPage) {
  DirtyBitmap bitmap(70);
  bitmap.SetAll();
  EXPECT_EQ(bitmap.Count(), 70U);
  EXPECT_EQ(RunsOf(bitmap), (Runs{{0, 70}}));
  bitmap.ClearAll();
  EXPECT_TRUE(bitmap.Empty());
  EXPECT_TRUE(RunsOf(bitmap).empty());
}

TEST(DirtyBitmap, ShrinkingForgetsThePagesBeyond) {
  DirtyBitmap bitmap(128);
  bitmap.SetAll();
  bitmap.Resize(65);
  bitmap.Resize(128);
  EXPECT_EQ(bitmap.Count(), 65U);
}

TEST(DirtyBitmap, MergeKeepsBothSides) {
  DirtyBitmap a(200);
  DirtyBitmap b(200);
  a.Set(3);
  b.Set(130);
  a.Merge(b);
  EXPECT_TRUE(a.Test(3));
  EXPECT_TRUE(a.Test(130));
  EXPECT_EQ(a.Count(), 2U);
}

TEST(DirtyBitmap, ReachesPagesBeyondTwoToTheThirtyTwo) {
  if (UnderSanitizer()) GTEST_SKIP() << "half a GiB, times its shadow";
  const uint64_t far = (uint64_t{1} << 32) + 7;
  DirtyBitmap bitmap(far + 1);
  bitmap.Set(far);
  EXPECT_EQ(RunsOf(bitmap), (Runs{{far, 1}}));
  EXPECT_FALSE(bitmap.Test(7));
}

TEST(DirtyBitmap, RangesAreThoseOfAPageByPageWalk) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const uint64_t pages = 1 + random() % 300;
    DirtyBitmap bitmap(pages);
    std::vector<bool> plain(pages);
    for (int i = 0; i < 20; ++i) {
      const uint64_t first = random() % pages;
      const uint64_t count = random() % (pages - first + 1);
      const bool set = random() % 3 != 0;
      if (set) bitmap.SetRange(first, count);
      for (uint64_t p = first; p < first + count; ++p) {
        if (!set) bitmap.Clear(p);
        plain[p] = set;
      }
    }
    Runs expected;
    for (uint64_t p = 0; p < pages; ++p) {
      ASSERT_EQ(bitmap.Test(p), plain[p]);
      if (!plain[p]) continue;
      if (p > 0 && plain[p - 1]) {
        ++expected.back().second;
      } else {
        expected.emplace_back(p, 1);
      }
    }
    EXPECT_EQ(RunsOf(bitmap), expected);
  }
}

}  // namespace
}  // namespace mig::sim
