// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 12: the handover, when all goes well, and when it is refused.
#include <string>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Handover : public Conformance {};

testing::AssertionResult ReadyToHandOver(Pair& pair) {
  testing::AssertionResult result = pair.Ready();
  if (result) result = pair.Round({pair.block().Whole()}, MIG_ROUND_FINAL);
  return result;
}

TEST_F(Handover, Rule12_TheWholeDance) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_EQ(pair.source().Send(1, "device state"), MIG_OK);
  ASSERT_TRUE(pair.Handover());
  EXPECT_EQ(pair.destination().Messages()[0], "device state");
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ERROR));
  ASSERT_TRUE(pair.Close());
  EXPECT_EQ(pair.source().Count(MIG_EVENT_COMMITTED), 1U);
  EXPECT_EQ(pair.destination().Count(MIG_EVENT_HANDOVER), 1U);
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_ERROR));
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ERROR));
}

TEST_F(Handover, Rule12_ThePeersLeavingIsNoErrorAfterwards) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Handover());
  pair.source().Close();
  EXPECT_TRUE(Drive({&pair.source(), &pair.destination()}, [&] {
    return pair.source().Saw(MIG_EVENT_CLOSED) &&
           pair.destination().Saw(MIG_EVENT_PEER_CLOSED);
  })) << pair.Describe();
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ERROR));
  pair.source().Destroy();
  pair.destination().Close();
  EXPECT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_CLOSED); }));
}

TEST_F(Handover, Rule12_MessagesComeBeforeAndAfter) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  std::vector<std::string> sent;
  for (int i = 0; i < 50; ++i) {
    const std::string text = "state " + std::to_string(i);
    if (pair.source().Send(1, text) != MIG_OK) break;
    sent.push_back(text);
  }
  ASSERT_TRUE(pair.Offer());
  const size_t offered = pair.destination().Index(MIG_EVENT_HANDOVER, 0);
  size_t before = 0;
  for (size_t i = 0; i < offered; ++i) {
    before += pair.destination().events()[i].raw.type == MIG_EVENT_MESSAGE;
  }
  EXPECT_EQ(before, sent.size())
      << "rule 12: HANDOVER comes after what was sent before it";
  EXPECT_EQ(pair.destination().Send(2, "loading"), MIG_OK);
  EXPECT_EQ(pair.source().Send(3, "ping"), MIG_OK);
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  ASSERT_TRUE(pair.Pump([&] {
    return pair.source().Saw(MIG_EVENT_COMMITTED) &&
           pair.source().Saw(MIG_EVENT_MESSAGE) &&
           pair.destination().Count(MIG_EVENT_MESSAGE) == sent.size() + 1;
  })) << pair.Describe();
}

TEST_F(Handover, Rule12_OnlyWhenItIsTime) {
  Pair pair;
  EXPECT_EQ(pair.source().Handover(), MIG_E_STATE);
  EXPECT_EQ(pair.destination().Handover(), MIG_E_STATE);
  ASSERT_TRUE(pair.Ready());
  EXPECT_EQ(pair.destination().Handover(), MIG_E_STATE);
  ASSERT_TRUE(pair.Begin());
  EXPECT_EQ(pair.source().Handover(), MIG_E_STATE) << "in a round";
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
  EXPECT_EQ(pair.destination().Handover(), MIG_E_STATE) << "nothing is offered";
  ASSERT_EQ(pair.source().Handover(), MIG_OK);
  EXPECT_EQ(pair.source().Handover(), MIG_E_STATE) << "twice";
  EXPECT_EQ(pair.source().RoundBegin(2), MIG_E_STATE) << "after the offer";
  EXPECT_EQ(pair.source().Exchange(), MIG_E_STATE);
  EXPECT_LT(pair.source().RemoveBlock(pair.block().source_id), 0);
  EXPECT_EQ(pair.destination().Handover(), MIG_E_STATE)
      << "the event HANDOVER was not taken yet";
  ASSERT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_HANDOVER); }));
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  EXPECT_EQ(pair.destination().Handover(), MIG_E_STATE) << "taken before";
  EXPECT_TRUE(
      pair.Pump([&] { return pair.source().Saw(MIG_EVENT_COMMITTED); }));
}

TEST_F(Handover, Rule12_H02_NotBeforeTheLastRoundIsDone) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 4ULL << 20}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Begin(MIG_ROUND_FINAL));
  ASSERT_TRUE(pair.Write({block.Whole()}));
  ASSERT_TRUE(pair.End());
  const int32_t status = pair.source().Handover();
  if (status == MIG_OK) {
    // Only a transport that had it done by then may say so.
    EXPECT_TRUE(block.source.Equals(block.destination));
    pair.source().Progress();
    EXPECT_TRUE(pair.source().Saw(MIG_EVENT_ROUND_DONE));
  } else {
    EXPECT_EQ(StatusName(status), "MIG_E_STATE");
  }
  ASSERT_TRUE(pair.RoundDone());
}

// However the destination says no, the source has its guest again, and both
// sessions are over.
void ExpectRefusal(Pair& pair) {
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_TRUE(pair.source().Saw(MIG_EVENT_HANDOVER_REFUSED)) << pair.Describe();
  EXPECT_LT(pair.source().SessionError().code, 0);
  EXPECT_LT(pair.destination().Handover(), 0) << "it was refused";
  EXPECT_LT(pair.source().RoundBegin(2), 0) << "the session is over";
  ASSERT_TRUE(pair.Close());
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_COMMITTED));
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_ERROR));
}

TEST_F(Handover, Rule12_CloseRefusesIt) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.destination().Close();
  ExpectRefusal(pair);
}

TEST_F(Handover, Rule12_CancelRefusesIt) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.destination().Cancel();
  ExpectRefusal(pair);
}

TEST_F(Handover, Rule12_TheSourceWithdrawsByCancel) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.source().Cancel();
  pair.source().Cancel();
  ExpectRefusal(pair);
}

TEST_F(Handover, Rule12_TheSourceWithdrawsByClose) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.source().Close();
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Saw(MIG_EVENT_CLOSED); }))
      << pair.Describe();
  EXPECT_TRUE(pair.source().Saw(MIG_EVENT_HANDOVER_REFUSED))
      << "the outcome comes before CLOSED: " << pair.Describe();
  EXPECT_LT(pair.destination().Handover(), 0) << "it was withdrawn";
}

TEST_F(Handover, Rule12_C33_CancelAfterItWasTakenIsCommitted) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  pair.source().Cancel();
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_TRUE(pair.source().Saw(MIG_EVENT_COMMITTED)) << pair.Describe();
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(20));
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_ERROR));
}

TEST_F(Handover, Rule12_CancelDoesNothingOnceItIsTaken) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  pair.destination().Cancel();
  EXPECT_TRUE(pair.Pump([&] { return pair.source().Saw(MIG_EVENT_COMMITTED); }))
      << pair.Describe();
  pair.source().Cancel();
  pair.destination().Cancel();
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(20));
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_ERROR)) << pair.Describe();
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ERROR)) << pair.Describe();
  ASSERT_TRUE(pair.Close());
}

TEST_F(Handover, Rule12_NobodyTouchesTheMemoryOfATakenGuest) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  pair.block().destination.Forbid();  // a touch ends this process
  ASSERT_TRUE(
      pair.Pump([&] { return pair.source().Saw(MIG_EVENT_COMMITTED); }));
  ASSERT_TRUE(pair.Close());
}

}  // namespace
}  // namespace mig::conformance
