// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks that come and go between rounds (C15).
#include <string>

#include "pair.h"

namespace mig::conformance {
namespace {

class HotPlug : public Conformance {};

testing::AssertionResult WaitRemoved(Pair& pair, const Block& block) {
  const bool removed = pair.Pump([&] {
    return (pair.source().SawNumber(MIG_EVENT_BLOCK_REMOVED, block.source_id) &&
            pair.destination().SawNumber(MIG_EVENT_BLOCK_REMOVED,
                                         block.destination_id)) ||
           pair.source().Ended();
  });
  if (removed && !pair.source().Ended()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << pair.Describe();
}

// Answers false where the plugin can't remove blocks.
bool Remove(Pair& pair, const Block& block) {
  const int32_t status = pair.source().RemoveBlock(block.source_id);
  if (status == MIG_E_UNSUPPORTED) return false;
  EXPECT_EQ(status, MIG_OK) << pair.source().error().message;
  EXPECT_TRUE(WaitRemoved(pair, block));
  return true;
}

TEST_F(HotPlug, Rule15_ABlockIsAddedBetweenRounds) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  pair.block(0).source.Fill(0, 64 * kPage, 1);
  ASSERT_TRUE(pair.Round({pair.block(0).Whole()}));
  ASSERT_TRUE(pair.AddBlock({.length = 16 * kPage}));
  ASSERT_TRUE(pair.Exchange());
  pair.block(1).source.Fill(0, 16 * kPage, 2);
  ASSERT_TRUE(pair.Round({pair.block(1).Whole(), pair.block(0).Page(3)}));
  EXPECT_TRUE(pair.block(0).source.Equals(pair.block(0).destination));
  EXPECT_TRUE(pair.block(1).source.Equals(pair.block(1).destination));
}

TEST_F(HotPlug, Rule15_C15_ARemovedBlockIsTheHostsAgain) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.Exchange());
  ASSERT_TRUE(pair.Round({pair.block(0).Whole(), pair.block(1).Whole()}));
  if (!Remove(pair, pair.block(0))) GTEST_SKIP() << "no remove_block";
  pair.block(0).source.Forbid();
  pair.block(0).destination.Forbid();
  ASSERT_TRUE(pair.Begin());
  Taken taken;
  EXPECT_EQ(pair.source().Write({{pair.block(0).Page(0)}}, &taken),
            MIG_E_BLOCK);
  ASSERT_TRUE(pair.Write({pair.block(1).Whole()}));
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  ASSERT_TRUE(pair.Handover());
  ASSERT_TRUE(pair.Close());
}

TEST_F(HotPlug, Rule06_C15_WhatWasAcceptedIsDrainedFirst) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 16ULL << 20}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 3);
  ASSERT_TRUE(pair.Begin());
  Taken taken;
  ASSERT_EQ(pair.source().Write({{block.Whole()}}, &taken), MIG_OK);
  const uint64_t bytes =
      taken.accepted == 1 ? block.spec.length : taken.partial;
  const int32_t status = pair.source().RemoveBlock(block.source_id);
  if (status == MIG_E_UNSUPPORTED) GTEST_SKIP() << "no remove_block";
  ASSERT_EQ(status, MIG_OK) << pair.source().error().message;
  // A range that there is no room for yet is not checked yet (rule 6.3).
  int32_t refused = MIG_OK;
  EXPECT_TRUE(pair.Pump([&] {
    if (refused == MIG_OK) {
      refused = pair.source().Write({{block.Page(0)}}, &taken);
      EXPECT_EQ(taken.accepted + taken.partial, 0u);
    }
    return refused != MIG_OK;
  }));
  EXPECT_EQ(refused, MIG_E_BLOCK) << "no range of it from now on";
  EXPECT_LT(pair.source().RemoveBlock(block.source_id), 0) << "twice";
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(WaitRemoved(pair, block));
  block.source.Forbid();
  EXPECT_TRUE(block.destination.Holds(0, bytes, 3)) << "was not drained";
  ASSERT_TRUE(pair.RoundDone());
}

TEST_F(HotPlug, Rule15_ANameMayComeBack) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  if (!Remove(pair, pair.block())) GTEST_SKIP() << "no remove_block";
  Block& again = pair.SpareBlock({.length = 32 * kPage}, 0);
  ASSERT_EQ(pair.source().AddBlock(again.OfSource()), MIG_OK)
      << pair.source().error().message;
  ASSERT_EQ(pair.destination().AddBlock(again.OfDestination()), MIG_OK)
      << pair.destination().error().message;
  ASSERT_TRUE(pair.Exchange());
  again.source.Fill(0, 32 * kPage, 4);
  ASSERT_TRUE(pair.Round({again.Whole()}));
  EXPECT_TRUE(again.source.Equals(again.destination));
}

TEST_F(HotPlug, Rule15_ABlockThatIsNotAgreedGoesAtOnce) {
  Pair pair;
  for (Session* side : {&pair.source(), &pair.destination()}) {
    Block& block = pair.SpareBlock({}, 0);
    ASSERT_EQ(side->AddBlock(block.OfSource()), MIG_OK);
    const int32_t status = side->RemoveBlock(block.source_id);
    if (status == MIG_E_UNSUPPORTED) GTEST_SKIP() << "no remove_block";
    ASSERT_EQ(status, MIG_OK) << side->error().message;
    EXPECT_TRUE(Drive({side}, [&] {
      return side->SawNumber(MIG_EVENT_BLOCK_REMOVED, block.source_id);
    })) << side->Describe();
    EXPECT_EQ(side->RemoveBlock(block.source_id), MIG_E_BLOCK) << "unknown";
  }
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
}

TEST_F(HotPlug, Rule15_AnAgreedBlockIsTheSourcesToRemove) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  const int32_t status =
      pair.destination().RemoveBlock(pair.block().destination_id);
  if (status == MIG_E_UNSUPPORTED) GTEST_SKIP() << "no remove_block";
  EXPECT_TRUE(status == MIG_E_STATE || status == MIG_E_BLOCK)
      << StatusName(status);
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
}

}  // namespace
}  // namespace mig::conformance
