// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/random.h"

#include "test_util.h"

namespace mig::sim {
namespace {

TEST(Random, PermuteVisitsEachPageOnce) {
  for (const uint64_t size : {1, 2, 3, 5, 64, 1000, 4097}) {
    for (const uint64_t key : {uint64_t{0}, uint64_t{12345}}) {
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t page = Permute(i, size, key);
        ASSERT_LT(page, size);
        ASSERT_FALSE(seen[page]) << size << " " << page;
        seen[page] = true;
      }
    }
  }
}

TEST(Random, PermuteScattersAndDependsOnTheKey) {
  constexpr uint64_t kSize = 100000;
  int neighbours = 0;
  int same = 0;
  for (uint64_t i = 1; i < 1000; ++i) {
    const uint64_t a = Permute(i - 1, kSize, 1);
    const uint64_t b = Permute(i, kSize, 1);
    if (a - b + 10 < 20) ++neighbours;
    if (b == Permute(i, kSize, 2)) ++same;
  }
  EXPECT_LT(neighbours, 10);
  EXPECT_LT(same, 10);
}

TEST(Random, BelowReachesAllOfItsRangeAndNoMore) {
  Random random{1};
  std::vector<int> hits(7);
  for (int i = 0; i < 7000; ++i) ++hits[random.Below(7)];
  for (const int count : hits) EXPECT_NEAR(count, 1000, 200);
}

}  // namespace
}  // namespace mig::sim
