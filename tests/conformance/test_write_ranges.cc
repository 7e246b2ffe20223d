// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 6: that every byte goes where it belongs, whatever the layout.
#include <algorithm>
#include <cstring>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class WriteRanges : public Conformance {};

constexpr uint64_t kGib = 1ULL << 30;

// Sparse memory costs nothing, until a plugin pins it on both sides.
#define SKIP_IF_TOO_MUCH(length)                                        \
  if (2 * (length) >                                                    \
      static_cast<uint64_t>(GlobalConfig().memory_gib) * kGib) {        \
    GTEST_SKIP() << "needs " << 2 * (length) / kGib                     \
                 << " GiB where memory is pinned, and --memory-gib is " \
                 << GlobalConfig().memory_gib;                          \
  }                                                                     \
  static_assert(true)

TEST_F(WriteRanges, Rule06_EveryPageArrives) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 16ULL << 20}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Round({block.Whole()}));
  EXPECT_TRUE(block.source.Equals(block.destination));
}

TEST_F(WriteRanges, Rule06_OnlyWhatIsWrittenArrives) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  block.destination.Fill(0, block.spec.length, 2);
  ASSERT_TRUE(pair.Round({block.Range(3 * kPage, 2 * kPage), block.Page(9)}));
  for (uint64_t page = 0; page < block.pages(); ++page) {
    const uint64_t seed = page == 3 || page == 4 || page == 9 ? 1 : 2;
    EXPECT_TRUE(block.destination.Holds(page * kPage, kPage, seed)) << page;
  }
}

TEST_F(WriteRanges, C13_H05_OffsetsPast4GiBAreExact) {
  SKIP_IF_TOO_MUCH(5 * kGib);
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 5 * kGib}));
  Block& block = pair.block();
  std::vector<mig_range> ranges;
  for (const uint64_t edge : {2 * kGib, 4 * kGib}) {
    for (const uint64_t offset : {edge - kPage, edge}) {
      block.source.Fill(offset, kPage, offset);
      ranges.push_back(block.Range(offset, kPage));
    }
  }
  ranges.push_back(block.Range(5 * kGib - kPage, kPage));
  block.source.Fill(5 * kGib - kPage, kPage, 7);
  ASSERT_TRUE(pair.Round(ranges));
  if (!GlobalConfig().populates) {
    EXPECT_EQ(block.destination.ResidentPages(), 5U)
        << "pages that were not sent were touched";
  }
  for (const mig_range& range : ranges) {
    EXPECT_EQ(memcmp(block.source.data() + range.offset,
                     block.destination.data() + range.offset, kPage),
              0)
        << "at offset " << range.offset;
  }
}

TEST_F(WriteRanges, C13_Rule09_ZeroRangeOver4GiBIsWhole) {
  SKIP_IF_TOO_MUCH(5 * kGib);
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 5 * kGib}));
  Block& block = pair.block();
  const uint64_t offsets[] = {0, 2 * kGib, 4 * kGib - kPage, 4 * kGib,
                              5 * kGib - kPage};
  std::vector<mig_range> ranges;
  for (const uint64_t offset : offsets) {
    block.source.Fill(offset, kPage, 3);
    ranges.push_back(block.Range(offset, kPage));
  }
  ASSERT_TRUE(pair.Round(ranges));
  // The host said nothing of MIG_BLOCK_ZEROED; so only these pages are written.
  for (mig_range& range : ranges) range.flags = MIG_RANGE_ZERO;
  ranges[0].length = 0;
  ASSERT_TRUE(pair.Round(ranges));
  EXPECT_TRUE(block.destination.Holds(0, kPage, 3));
  for (const uint64_t offset : offsets) {
    if (offset == 0) continue;
    EXPECT_TRUE(block.destination.IsZero(offset, kPage)) << offset;
  }
}

TEST_F(WriteRanges, Rule06_SmallPagesInAnyOrder) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 1024 * 1024, .page_size = 1024}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 5);
  std::vector<mig_range> ranges;
  for (uint64_t page = 0; page < block.pages(); ++page) {
    ranges.push_back(block.Page((page * 389) % block.pages()));
  }
  ASSERT_TRUE(pair.Round(ranges, MIG_ROUND_STRICT));
  EXPECT_TRUE(block.source.Equals(block.destination));
}

TEST_F(WriteRanges, Rule06_LargePages) {
  constexpr uint64_t kHuge = 2ULL << 20;
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 8 * kHuge, .page_size = kHuge}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 6);
  ASSERT_TRUE(pair.Round({block.Page(7), block.Page(0), block.Page(3)}));
  EXPECT_TRUE(block.destination.Holds(7 * kHuge, kHuge, 6));
  EXPECT_TRUE(block.destination.Holds(0, kHuge, 6));
  EXPECT_TRUE(block.destination.Holds(3 * kHuge, kHuge, 6));
  EXPECT_TRUE(block.destination.IsZero(kHuge, 2 * kHuge));
  ASSERT_TRUE(pair.Begin());
  Taken taken;
  EXPECT_EQ(pair.source().Write({{block.Range(kPage, kHuge)}}, &taken),
            MIG_E_RANGE)
      << "4 KiB is not this block's page";
}

TEST_F(WriteRanges, Rule06_AThousandBlocksOfMixedSizes) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  constexpr size_t kBlocks = 1000;
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint64_t page_size = 1024ULL << (i % 4);
    ASSERT_TRUE(pair.AddBlock(
        {.length = (1 + i % 3) * page_size, .page_size = page_size}));
  }
  ASSERT_TRUE(pair.Exchange());
  std::vector<mig_range> ranges;
  for (size_t i = 0; i < kBlocks; ++i) {
    Block& block = pair.block((i * 7) % kBlocks);
    block.source.Fill(0, block.spec.length, i + 1);
    ranges.push_back(block.Whole());
  }
  ASSERT_TRUE(pair.Round(ranges));
  for (size_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(pair.block(i).source.Equals(pair.block(i).destination)) << i;
  }
}

TEST_F(WriteRanges, Rule06_MemoryBehindAnFd) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 1 << 20, .kind = MemoryKind::kMemfd}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 8);
  ASSERT_TRUE(pair.Round({block.Whole()}));
  EXPECT_TRUE(block.source.Equals(block.destination));
}

TEST_F(WriteRanges, Rule01_Rule06_RangesAreSteppedByTheElementSize) {
  struct NewerRange {
    mig_range range;
    uint64_t of_the_future[2];
  };
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 9);
  std::vector<NewerRange> ranges;
  for (const uint64_t page : {1, 5, 20}) {
    ranges.push_back({block.Page(page), {~0ULL, ~0ULL}});
  }
  ASSERT_TRUE(pair.Begin());
  size_t accepted = 0;
  uint64_t partial = 0;
  ASSERT_EQ(Ops()->write(pair.source().get(), &ranges[0].range, ranges.size(),
                         sizeof(NewerRange), &accepted, &partial, nullptr),
            MIG_OK);
  EXPECT_EQ(accepted, 3U);
  ASSERT_EQ(Ops()->write(pair.source().get(), &ranges[0].range, ranges.size(),
                         sizeof(mig_range) - 8, &accepted, &partial, nullptr),
            MIG_E_STRUCT_SIZE);
  ASSERT_EQ(Ops()->write(pair.source().get(), &ranges[0].range, ranges.size(),
                         0, &accepted, &partial, nullptr),
            MIG_E_STRUCT_SIZE);
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  for (const uint64_t page : {1, 5, 20}) {
    EXPECT_TRUE(block.destination.Holds(page * kPage, kPage, 9)) << page;
  }
  EXPECT_TRUE(block.destination.IsZero(0, kPage));
}

}  // namespace
}  // namespace mig::conformance
