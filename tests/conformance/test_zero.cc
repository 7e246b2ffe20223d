// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 9: zero ranges. Rule 10: blocks whose pages may be replaced.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Zero : public Conformance {};
class Discardable : public Conformance {};

TEST_F(Zero, Rule09_ReadsZeroWhereDataWas) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  block.destination.Fill(0, block.spec.length, 2);
  ASSERT_TRUE(pair.Round({block.Range(0, 16 * kPage)}));
  ASSERT_TRUE(pair.Round({block.Range(8 * kPage, 16 * kPage, MIG_RANGE_ZERO)}));
  EXPECT_TRUE(block.destination.Holds(0, 8 * kPage, 1));
  EXPECT_TRUE(block.destination.IsZero(8 * kPage, 16 * kPage));
  EXPECT_TRUE(block.destination.Holds(24 * kPage, 40 * kPage, 2));
}

TEST_F(Zero, Rule09_NothingIsReadOfAZeroRange) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.destination.Fill(0, block.spec.length, 2);
  // The flag is the truth, the memory may have changed since; and it may not
  // even be there.
  block.source.Forbid();
  ASSERT_TRUE(pair.Round({block.Whole(MIG_RANGE_ZERO)}));
  EXPECT_TRUE(block.destination.IsZero(0, block.spec.length));
}

TEST_F(Zero, Rule09_H01_DataZeroDataOverRounds) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.destination_flags = MIG_BLOCK_ZEROED}));
  Block& block = pair.block();
  for (uint64_t round = 1; round <= 12; ++round) {
    const bool zero = round % 3 == 0;
    block.source.Fill(0, block.spec.length, round);
    ASSERT_TRUE(pair.Round({block.Whole(zero ? MIG_RANGE_ZERO : 0)}));
    ASSERT_TRUE(zero ? block.destination.IsZero(0, block.spec.length)
                     : block.destination.Holds(0, block.spec.length, round))
        << "round " << round;
  }
}

// Rounds that follow each other without waiting: the zero and the data take
// different ways, and must not overtake each other.
TEST_F(Zero, Rule08_Rule09_H01_ZeroAndDataDoNotOvertake) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.destination_flags = MIG_BLOCK_ZEROED}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 5);
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(pair.Begin());
    ASSERT_TRUE(pair.Write({block.Whole(round % 2 == 0 ? MIG_RANGE_ZERO : 0)}));
    ASSERT_TRUE(pair.End());
  }
  ASSERT_TRUE(pair.RoundDone());
  EXPECT_TRUE(block.destination.Holds(0, block.spec.length, 5));
}

TEST_F(Zero, Rule09_UntouchedMemoryStaysUntouched) {
  constexpr uint64_t kGib = 1ULL << 30;
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  mig_caps caps;
  if (pair.destination().GetCaps(&caps) == MIG_OK &&
      (caps.flags & MIG_CAP_PINS_MEMORY) != 0) {
    GTEST_SKIP() << "the plugin pins memory, so all of it is populated";
  }
  ASSERT_TRUE(
      pair.AddBlock({.length = kGib, .destination_flags = MIG_BLOCK_ZEROED}));
  ASSERT_TRUE(pair.Exchange());
  Block& block = pair.block();
  ASSERT_TRUE(pair.Round({block.Whole(MIG_RANGE_ZERO)}));
  EXPECT_EQ(block.destination.ResidentPages(), 0U)
      << "zeros were written where nothing was";
  // Written once, those pages have to be zeroed; the others still need not.
  block.source.Fill(5 * kPage, kPage, 6);
  ASSERT_TRUE(pair.Round({block.Page(5)}));
  ASSERT_TRUE(pair.Round({block.Whole(MIG_RANGE_ZERO)}));
  EXPECT_LE(block.destination.ResidentPages(), 512U);
  EXPECT_TRUE(block.destination.IsZero(5 * kPage, kPage));
}

TEST_F(Zero, Rule09_WithoutZeroedTheMemoryIsNotTrusted) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.source_flags = MIG_BLOCK_ZEROED}));
  Block& block = pair.block();
  block.destination.Fill(0, block.spec.length, 3);
  ASSERT_TRUE(pair.Round({block.Whole(MIG_RANGE_ZERO)}));
  EXPECT_TRUE(block.destination.IsZero(0, block.spec.length))
      << "only the destination's ZEROED says what the destination reads";
}

TEST_F(Zero, Rule09_Rule10_PagesAreNeverReplaced) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.kind = MemoryKind::kMemfd}));
  Block& block = pair.block();
  const size_t length = block.spec.length;
  void* const twin = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED,
                          block.destination.fd(), 0);
  ASSERT_NE(twin, MAP_FAILED);
  block.source.Fill(0, length, 4);
  ASSERT_TRUE(pair.Round({block.Whole()}));
  EXPECT_EQ(memcmp(twin, block.source.data(), length), 0);
  ASSERT_TRUE(pair.Round({block.Whole(MIG_RANGE_ZERO)}));
  EXPECT_TRUE(block.destination.IsZero(0, length));
  EXPECT_EQ(memcmp(twin, block.destination.data(), length), 0)
      << "the block's mapping is another one than before";
  block.source.Fill(0, length, 5);
  ASSERT_TRUE(pair.Round({block.Whole()}));
  EXPECT_EQ(memcmp(twin, block.source.data(), length), 0);
  munmap(twin, length);
}

TEST_F(Discardable, Rule10_C34_RefusedWhereThePluginPins) {
  Pair pair;
  for (Session* side : {&pair.source(), &pair.destination()}) {
    mig_caps caps;
    if (side->GetCaps(&caps) != MIG_OK) GTEST_SKIP() << "no get_caps";
    const bool pins = (caps.flags & MIG_CAP_PINS_MEMORY) != 0;
    Block& block = pair.SpareBlock({}, 0);
    mig_block description = block.OfSource();
    description.flags = MIG_BLOCK_DISCARDABLE;
    const int32_t status = side->AddBlock(description);
    if (pins) {
      EXPECT_EQ(StatusName(status), "MIG_E_BLOCK");
      EXPECT_NE(side->error().message.find(block.name), std::string::npos);
    } else {
      EXPECT_EQ(StatusName(status), "MIG_OK") << side->error().message;
    }
    side->Destroy();
  }
}

TEST_F(Discardable, Rule10_AReplacedPageIsWrittenWhereNothingPins) {
  Pair pair;
  mig_caps caps;
  if (pair.destination().GetCaps(&caps) != MIG_OK ||
      (caps.flags & MIG_CAP_PINS_MEMORY) != 0) {
    GTEST_SKIP() << "the plugin pins memory";
  }
  ASSERT_TRUE(pair.Ready({.destination_flags = MIG_BLOCK_DISCARDABLE}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Round({block.Whole()}));
  ASSERT_EQ(madvise(block.destination.data(), 8 * kPage, MADV_DONTNEED), 0);
  ASSERT_TRUE(pair.Round({block.Range(0, 8 * kPage)}));
  EXPECT_TRUE(block.destination.Holds(0, block.spec.length, 1));
}

}  // namespace
}  // namespace mig::conformance
