// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 7: the order of rounds, strict rounds, and flush.
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Strict : public Conformance {};

// A second send of a page in a strict round ends the session, on both sides.
void ExpectCaught(const std::vector<mig_range>& first,
                  const std::vector<mig_range>& second, const Block& block,
                  Pair& pair) {
  ASSERT_TRUE(pair.Begin(MIG_ROUND_STRICT));
  Taken taken;
  if (!first.empty()) {
    ASSERT_EQ(pair.source().Write(first, &taken), MIG_OK);
    ASSERT_EQ(taken.accepted, first.size());
  }
  EXPECT_EQ(StatusName(pair.source().Write(second, &taken)), "MIG_E_STRICT");
  EXPECT_NE(pair.source().error().message.find(block.name), std::string::npos)
      << "the message names the block: " << pair.source().error().message;
  EXPECT_TRUE(pair.Pump([&] {
    return pair.source().Saw(MIG_EVENT_ERROR) &&
           pair.destination().Saw(MIG_EVENT_ERROR);
  })) << pair.Describe();
  EXPECT_EQ(StatusName(pair.source().SessionError().code), "MIG_E_STRICT");
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ROUND_DONE));
}

TEST_F(Strict, Rule07_SecondSendInALaterCallIsCaught) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const Block& block = pair.block();
  ExpectCaught({block.Range(0, 8 * kPage)}, {block.Page(7)}, block, pair);
}

TEST_F(Strict, Rule07_SecondSendInOneCallIsCaught) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const Block& block = pair.block();
  ExpectCaught({}, {block.Page(3), block.Page(4), block.Page(3)}, block, pair);
}

TEST_F(Strict, Rule07_Rule09_ZeroCountsAsASend) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const Block& block = pair.block();
  ExpectCaught({block.Page(3)}, {block.Page(3, MIG_RANGE_ZERO)}, block, pair);
}

TEST_F(Strict, Rule07_OverlapOfOnePageIsCaught) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 64 * 1024, .page_size = 1024}));
  const Block& block = pair.block();
  ExpectCaught({block.Range(1024, 4096)}, {block.Range(4096, 8192)}, block,
               pair);
}

TEST_F(Strict, Rule07_PagesOfTwoBlocksAndRoundsAreNotConfused) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.Exchange());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(pair.Round({pair.block(0).Whole(), pair.block(1).Whole(),
                            pair.block(0).Range(kPage, 0)},
                           MIG_ROUND_STRICT));
  }
}

TEST_F(Strict, Rule07_AfterARefusedWriteTheSamePagesAreGood) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const Block& block = pair.block();
  ASSERT_TRUE(pair.Begin(MIG_ROUND_STRICT));
  Taken taken;
  const mig_range bad[] = {block.Page(0), block.Range(block.spec.length, 4096)};
  ASSERT_EQ(pair.source().Write(bad, &taken), MIG_E_RANGE);
  ASSERT_EQ(pair.source().Write({{block.Page(0)}}, &taken), MIG_OK)
      << "nothing was taken, so this is the first send: "
      << pair.source().error().message;
}

TEST_F(Strict, Rule07_WithoutStrictASecondSendIsTheHostsAffair) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Round({block.Page(3), block.Page(3)}));
  EXPECT_TRUE(block.destination.Holds(3 * kPage, kPage, 1));
  ASSERT_TRUE(pair.Round({block.Page(3)}, MIG_ROUND_FINAL));
}

TEST_F(Strict, Rule07_WrongCallsAnswerAndChangeNothing) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Session& source = pair.source();
  Taken taken;
  const mig_range page = pair.block().Page(0);
  EXPECT_EQ(source.Write({{page}}, &taken), MIG_E_STATE) << "no round is open";
  EXPECT_EQ(source.RoundEnd(1), MIG_E_STATE);
  EXPECT_EQ(source.Handover(), MIG_E_STATE) << "no round was done";
  for (const uint64_t wrong : {0ULL, 2ULL, ~0ULL}) {
    EXPECT_LT(source.RoundBegin(wrong), 0) << wrong;
  }
  EXPECT_EQ(source.RoundBegin(1, 1U << 9), MIG_E_ARGUMENT) << "unknown flag";
  ASSERT_EQ(source.RoundBegin(1), MIG_OK);
  EXPECT_EQ(source.RoundBegin(1), MIG_E_STATE);
  EXPECT_EQ(source.RoundBegin(2), MIG_E_STATE) << "round 1 is not ended";
  EXPECT_LT(source.RoundEnd(2), 0);
  EXPECT_LT(source.RoundEnd(0), 0);
  EXPECT_EQ(source.Exchange(), MIG_E_STATE);
  EXPECT_EQ(source.Handover(), MIG_E_STATE);
  EXPECT_EQ(source.AddBlock(pair.block().OfSource()), MIG_E_STATE);
  ASSERT_EQ(source.RoundEnd(1), MIG_OK);
  EXPECT_EQ(source.RoundEnd(1), MIG_E_STATE);
  EXPECT_EQ(source.Write({{page}}, &taken), MIG_E_STATE);
  ASSERT_TRUE(pair.Pump([&] {
    return source.Saw(MIG_EVENT_ROUND_DONE) &&
           pair.destination().Saw(MIG_EVENT_ROUND_DONE);
  }));
  EXPECT_LT(source.RoundBegin(1), 0) << "round 1 was";
  EXPECT_FALSE(source.Ended());
  EXPECT_FALSE(pair.destination().Ended());
}

TEST_F(Strict, Rule07_RoundsAreTheSourcesAlone) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Session& destination = pair.destination();
  Taken taken;
  EXPECT_EQ(destination.RoundBegin(1), MIG_E_STATE);
  EXPECT_EQ(destination.RoundEnd(1), MIG_E_STATE);
  EXPECT_EQ(destination.Write({{pair.block().Page(0)}}, &taken), MIG_E_STATE);
  EXPECT_EQ(destination.Connect(pair.address()), MIG_E_STATE);
  EXPECT_EQ(pair.source().Listen(NextListenUri()), MIG_E_STATE);
  ASSERT_TRUE(pair.Round({pair.block().Page(0)}));
}

TEST_F(Strict, Rule07_RoundsNeedAgreedBlocks) {
  Pair pair;
  EXPECT_EQ(pair.source().RoundBegin(1), MIG_E_STATE);
  ASSERT_TRUE(pair.Connect());
  EXPECT_EQ(pair.source().RoundBegin(1), MIG_E_STATE);
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_EQ(pair.source().Exchange(), MIG_OK);
  EXPECT_EQ(pair.source().RoundBegin(1), MIG_E_STATE);
  EXPECT_EQ(pair.source().Exchange(), MIG_E_STATE) << "one at a time";
  EXPECT_FALSE(pair.source().Ended());
}

TEST_F(Strict, Rule07_FlushSendsWhatIsQueuedBeforeTheRoundEnds) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 4);
  ASSERT_TRUE(pair.Begin());
  ASSERT_TRUE(pair.Write({block.Range(0, 4 * kPage)}));
  ASSERT_EQ(pair.source().Flush(), MIG_OK);
  ASSERT_EQ(pair.source().Flush(), MIG_OK) << "nothing left is fine";
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(20));
  ASSERT_TRUE(pair.Write({block.Range(4 * kPage, 4 * kPage)}));
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  EXPECT_TRUE(block.destination.Holds(0, 8 * kPage, 4));
}

}  // namespace
}  // namespace mig::conformance
