// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 6: how much a write takes, and what it refuses.
#include <algorithm>
#include <cstring>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Write : public Conformance {};

// More than a transport would buffer between two hosts.
constexpr uint64_t kLarge = 64ULL << 20;

// Takes as much as the source accepts while the peer stands still, and answers
// what is left. Sets *taken to the sum of bytes.
std::vector<mig_range> WriteUntilFull(Session& source,
                                      std::vector<mig_range> ranges,
                                      uint64_t* bytes) {
  *bytes = 0;
  for (int idle = 0; idle < 50 && !ranges.empty();) {
    Taken taken;
    EXPECT_EQ(source.Write(ranges, &taken), MIG_OK) << source.error().message;
    uint64_t now = taken.partial;
    for (size_t i = 0; i < taken.accepted; ++i) now += ranges[i].length;
    ranges.erase(ranges.begin(),
                 ranges.begin() + static_cast<ptrdiff_t>(taken.accepted));
    if (taken.partial != 0) {
      EXPECT_EQ(taken.partial % kPage, 0U) << "rule 6: whole pages";
      ranges[0].offset += taken.partial;
      ranges[0].length -= taken.partial;
    }
    *bytes += now;
    idle = now == 0 ? idle + 1 : 0;
    DriveFor({&source}, milliseconds(1));
  }
  return ranges;
}

// Writes all of a large block, in `ranges`, to a peer that stands still at
// first, and compares at the end.
void WriteAgainstAStandingPeer(Pair& pair, std::vector<mig_range> ranges,
                               uint32_t flags) {
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Begin(flags));
  uint64_t taken = 0;
  ranges = WriteUntilFull(pair.source(), std::move(ranges), &taken);
  testing::Test::RecordProperty("bytes_taken", std::to_string(taken));
  if (!ranges.empty()) {
    EXPECT_LT(taken, kLarge);
    EXPECT_FALSE(pair.source().Ended()) << "less than all is no failure";
    const size_t before = pair.source().Count(MIG_EVENT_WRITE_READY);
    pair.Pump(
        [&] { return pair.source().Count(MIG_EVENT_WRITE_READY) > before; });
    ASSERT_GT(pair.source().Count(MIG_EVENT_WRITE_READY), before)
        << "no WRITE_READY came when the peer went on";
    ASSERT_TRUE(pair.Write(std::move(ranges)));
  }
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  EXPECT_TRUE(block.source.Equals(block.destination));
}

TEST_F(Write, Rule06_C28_SaysHowFarItTookOfManyRanges) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = kLarge}));
  std::vector<mig_range> ranges;
  for (uint64_t page = 0; page < pair.block().pages(); ++page) {
    ranges.push_back(pair.block().Page(page));
  }
  WriteAgainstAStandingPeer(pair, std::move(ranges), 0);
}

TEST_F(Write, Rule06_C28_SaysHowFarItTookIntoOneRange) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = kLarge}));
  WriteAgainstAStandingPeer(pair, {pair.block().Whole()}, 0);
}

TEST_F(Write, Rule07_StrictDoesNotTakeTheRestForASecondSend) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = kLarge}));
  WriteAgainstAStandingPeer(pair, {pair.block().Whole()}, MIG_ROUND_STRICT);
}

// Whoever waits for WRITE_READY has nothing else to go on by.
TEST_F(Write, Rule06_ARefusedWriteLeavesWriteReadyOwed) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = kLarge}));
  ASSERT_TRUE(pair.Begin());
  Session& source = pair.source();
  Taken taken;
  ASSERT_EQ(source.Write({{pair.block().Whole()}}, &taken), MIG_OK);
  if (taken.accepted == 1) return;
  const size_t before = source.Count(MIG_EVENT_WRITE_READY);
  mig_range outside = pair.block().Page(0);
  outside.length = 2 * kLarge;
  // At any moment: there may be room for some while before it is told.
  pair.Pump([&] {
    if (source.Count(MIG_EVENT_WRITE_READY) > before) return true;
    const int32_t answer = source.Write({{outside}}, &taken);
    EXPECT_TRUE(answer == MIG_E_RANGE ||
                (answer == MIG_OK && taken.accepted + taken.partial == 0))
        << answer;
    return false;
  });
  EXPECT_GT(source.Count(MIG_EVENT_WRITE_READY), before);
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
}

TEST_F(Write, Rule06_WriteReadyOnlyAfterLessThanAllWasTaken) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.Begin());
  Taken taken;
  ASSERT_EQ(pair.source().Write({{pair.block().Page(0)}}, &taken), MIG_OK);
  if (taken.accepted == 1) {
    DriveFor({&pair.source(), &pair.destination()}, milliseconds(20));
    EXPECT_FALSE(pair.source().Saw(MIG_EVENT_WRITE_READY));
  }
}

TEST_F(Write, Rule06_TheRestMayBeLeftOut) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = kLarge}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 2);
  ASSERT_TRUE(pair.Begin());
  Taken taken;
  ASSERT_EQ(pair.source().Write({{block.Whole()}}, &taken), MIG_OK);
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  const uint64_t length =
      taken.accepted == 1 ? block.spec.length : taken.partial;
  EXPECT_TRUE(block.destination.Holds(0, length, 2));
  EXPECT_TRUE(block.destination.IsZero(length, block.spec.length - length))
      << "what was not accepted was sent";
}

// Writes [good, bad, good]: nothing of it may be taken.
void ExpectRefused(Pair& pair, const mig_range& bad, int32_t status) {
  SCOPED_TRACE(testing::Message()
               << "offset " << bad.offset << " length " << bad.length
               << " block " << bad.block << " flags " << bad.flags
               << " reserved " << bad.reserved);
  const mig_range ranges[] = {pair.block().Page(0), bad, pair.block().Page(2)};
  Taken taken;
  EXPECT_EQ(StatusName(pair.source().Write(ranges, &taken)),
            StatusName(status));
}

TEST_F(Write, Rule06_BadRangeMeansThatNothingIsTaken) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 3);
  ASSERT_TRUE(pair.Begin());
  const uint64_t length = block.spec.length;
  ExpectRefused(pair, block.Range(length, kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(length - kPage, 2 * kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(0, length + kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(length + kPage, 0), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(512, kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(kPage, 512), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(kPage, kPage + 1), MIG_E_RANGE);
  EXPECT_FALSE(pair.source().Ended());
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  EXPECT_TRUE(block.destination.IsZero(0, length))
      << "a part of a refused write was sent";
}

TEST_F(Write, Rule06_H05_H06_SumsThatWrapAreRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const Block& block = pair.block();
  ASSERT_TRUE(pair.Begin());
  const uint64_t top = ~uint64_t{0} - kPage + 1;  // the last aligned offset
  ExpectRefused(pair, block.Range(top, kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(top, 2 * kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(kPage, top), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(kPage, top - kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(1ULL << 63, 1ULL << 63), MIG_E_RANGE);
  // Equal to a legal range when cut to 32 bits.
  ExpectRefused(pair, block.Range(1ULL << 32, kPage), MIG_E_RANGE);
  ExpectRefused(pair, block.Range(0, (1ULL << 32) + kPage), MIG_E_RANGE);
  EXPECT_FALSE(pair.source().Ended());
}

TEST_F(Write, Rule01_Rule06_UnknownBlockFlagAndReservedAreRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.Begin());
  mig_range bad = pair.block().Page(1);
  bad.block = 4242;
  ExpectRefused(pair, bad, MIG_E_BLOCK);
  bad.block = pair.block().destination_id;  // the peer's number is not ours
  ExpectRefused(pair, bad, MIG_E_BLOCK);
  bad = pair.block().Page(1, 1U << 7);
  ExpectRefused(pair, bad, MIG_E_ARGUMENT);
  bad = pair.block().Page(1, MIG_RANGE_ZERO | 1U << 31);
  ExpectRefused(pair, bad, MIG_E_ARGUMENT);
  bad = pair.block().Page(1);
  bad.reserved = 1;
  ExpectRefused(pair, bad, MIG_E_ARGUMENT);
  bad.reserved = 1ULL << 63;
  ExpectRefused(pair, bad, MIG_E_ARGUMENT);
  EXPECT_FALSE(pair.source().Ended());
}

TEST_F(Write, Rule06_ZeroLengthDoesNothing) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 4);
  const std::vector<mig_range> ranges = {
      block.Range(0, 0), block.Range(block.spec.length, 0), block.Page(5),
      block.Range(kPage, 0, MIG_RANGE_ZERO)};
  ASSERT_TRUE(pair.Round(ranges));
  EXPECT_TRUE(block.destination.IsZero(0, 5 * kPage));
  EXPECT_TRUE(block.destination.Holds(5 * kPage, kPage, 4));
  ASSERT_TRUE(pair.Round({})) << "a round of nothing is a round";
}

TEST_F(Write, Rule06_BlockThatIsNotAgreedIsRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.AddBlock());
  const int32_t begun = pair.source().RoundBegin(1);
  if (begun != MIG_OK) {
    EXPECT_EQ(StatusName(begun), "MIG_E_STATE");
    return;
  }
  ExpectRefused(pair, pair.block(1).Page(0), MIG_E_BLOCK);
}

}  // namespace
}  // namespace mig::conformance
