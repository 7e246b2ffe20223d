// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 15: whatever fails, both sides learn of it, once, and are bounded.
#include <string>
#include <vector>

#include "pair.h"
#include "states.h"

namespace mig::conformance {
namespace {

class Failures : public Conformance {};

class PeerVanishes : public Conformance,
                     public testing::WithParamInterface<State> {};

// After its end a session only answers.
void ExpectOnlyAnswers(Pair& pair, Session& side) {
  const size_t events = side.events().size();
  const std::vector<uint64_t> before = side.GetStats();
  Taken taken;
  const mig_range page = {0, kPage, 7, 0, 0};
  EXPECT_LT(side.Exchange(), 0);
  EXPECT_LT(side.RoundBegin(pair.round() + 1), 0);
  EXPECT_LT(side.Write({{page}}, &taken), 0);
  EXPECT_LT(side.RoundEnd(pair.round()), 0);
  EXPECT_LT(side.Send(1, "x"), 0);
  EXPECT_LT(side.RemoveBlock(7), 0);
  EXPECT_LT(side.AddBlock(pair.SpareBlock({}, 30).OfSource()), 0);
  EXPECT_LT(side.Listen(NextListenUri()), 0);
  EXPECT_LT(side.Connect(NextListenUri()), 0);
  side.Cancel();
  DriveFor({&side}, milliseconds(5));
  for (size_t i = events; i < side.events().size(); ++i) {
    EXPECT_EQ(EventName(side.events()[i].raw.type), "FDS_CHANGED");
  }
  side.Close();
  EXPECT_TRUE(Drive({&side}, [&] { return side.Saw(MIG_EVENT_CLOSED); }))
      << side.Describe();
}

// Whether the other side can only learn of it by a failure.
bool Connected(State state) {
  return state != State::kNew && state != State::kConnecting &&
         state != State::kFailed && state != State::kClosing;
}

TEST_P(PeerVanishes, Rule15_C08_TheOtherSideLearnsOfIt) {
  const State state = GetParam();
  if (!Connected(state)) GTEST_SKIP() << "there is no peer, or it is known";
  for (const bool source_vanishes : {true, false}) {
    SCOPED_TRACE(source_vanishes ? "the source" : "the destination");
    Pair pair;
    ASSERT_TRUE(Reach(pair, state));
    Session& gone = source_vanishes ? pair.source() : pair.destination();
    Session& left = source_vanishes ? pair.destination() : pair.source();
    gone.Destroy();
    const bool taken = state == State::kTaken;
    EXPECT_TRUE(
        Drive({&left},
              [&] { return left.Ended() || left.Saw(MIG_EVENT_PEER_CLOSED); }))
        << "it never learns: " << left.Describe();
    if (taken && source_vanishes) {
      EXPECT_FALSE(left.Saw(MIG_EVENT_ERROR)) << left.Describe();
      continue;
    }
    if (taken && left.Saw(MIG_EVENT_COMMITTED)) continue;
    EXPECT_LT(left.SessionError().code, 0);
    EXPECT_GE(left.SessionError().code, -899) << "a peer's death is no bug";
    if (state != State::kOffered) ExpectOnlyAnswers(pair, left);
    if (state == State::kInRound) {
      EXPECT_FALSE(left.Saw(MIG_EVENT_ROUND_DONE)) << "the round was not whole";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(States, PeerVanishes, testing::ValuesIn(kAllStates),
                         [](const testing::TestParamInfo<State>& info) {
                           return StateName(info.param);
                         });

TEST_F(Failures, Rule15_CloseBeforeTheEndIsAFailureForThePeer) {
  for (const bool source_closes : {true, false}) {
    Pair pair;
    ASSERT_TRUE(Reach(pair, State::kRoundDone));
    Session& closing = source_closes ? pair.source() : pair.destination();
    Session& other = source_closes ? pair.destination() : pair.source();
    closing.Close();
    EXPECT_TRUE(pair.Pump([&] {
      return closing.Saw(MIG_EVENT_CLOSED) && other.Saw(MIG_EVENT_ERROR);
    })) << pair.Describe();
    EXPECT_EQ(StatusName(other.SessionError().code), "MIG_E_PEER_CLOSED");
    EXPECT_FALSE(closing.Saw(MIG_EVENT_ERROR));
  }
}

TEST_F(Failures, Rule15_H07_NoMemoryIsTouchedAfterDestroy) {
  for (const bool source_first : {true, false}) {
    Pair pair;
    ASSERT_TRUE(Reach(pair, State::kInRound));
    DriveFor({&pair.source()}, milliseconds(2));
    Session& first = source_first ? pair.source() : pair.destination();
    Session& second = source_first ? pair.destination() : pair.source();
    first.Destroy();
    (source_first ? pair.block().source : pair.block().destination).Forbid();
    EXPECT_TRUE(Drive({&second}, [&] { return second.Ended(); }));
    second.Destroy();
    (source_first ? pair.block().destination : pair.block().source).Forbid();
  }
}

TEST_F(Failures, Rule15_NoMemoryIsTouchedAfterClosed) {
  Pair pair;
  ASSERT_TRUE(Reach(pair, State::kRoundEnded));
  ASSERT_TRUE(pair.Close());
  pair.block().source.Forbid();
  pair.block().destination.Forbid();
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(5));
}

TEST_F(Failures, Rule15_C07_CutInTheMiddleOfARound) {
  for (int moment = 0; moment < 30; ++moment) {
    SCOPED_TRACE(testing::Message() << "after " << moment << " steps");
    Pair pair;
    ASSERT_TRUE(pair.Ready({.length = 8ULL << 20}));
    ASSERT_TRUE(pair.Begin());
    Taken taken;
    ASSERT_EQ(pair.source().Write({{pair.block().Whole()}}, &taken), MIG_OK);
    if (moment % 3 == 0) {
      ASSERT_EQ(pair.source().RoundEnd(1), MIG_OK);
    }
    for (int i = 0; i < moment; ++i) {
      pair.source().Progress();
      pair.destination().Progress();
    }
    Session& gone = moment % 2 == 0 ? pair.source() : pair.destination();
    Session& left = moment % 2 == 0 ? pair.destination() : pair.source();
    gone.Destroy();
    EXPECT_TRUE(Drive({&left}, [&] { return left.Ended(); }));
    EXPECT_EQ(left.Count(MIG_EVENT_ERROR), 1U) << left.Describe();
    EXPECT_TRUE(moment % 3 == 0 || !left.Saw(MIG_EVENT_ROUND_DONE))
        << "a round that was not ended is done";
  }
}

TEST_F(Failures, Rule15_ANewSessionWorksAfterAFailure) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 1 << 20}));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.Begin());
    ASSERT_TRUE(pair.Write({pair.block().Whole()}));
    if (i % 2 == 0) {
      pair.source().Cancel();
    } else {
      pair.destination().Destroy();
    }
    ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
    pair.Renew();
    ASSERT_TRUE(pair.Connect());
    ASSERT_TRUE(pair.AddBlocksAgain());
    ASSERT_TRUE(pair.Exchange());
    pair.block().source.Fill(0, 1 << 20, static_cast<uint64_t>(i) + 1);
    ASSERT_TRUE(pair.Round({pair.block().Whole()}));
    ASSERT_TRUE(pair.block().source.Equals(pair.block().destination));
  }
  ASSERT_TRUE(pair.Handover());
}

// Connect, migrate, close: a thousand times, on the same contexts.
TEST_F(Failures, Rule15_C22_AThousandMigrationsLeaveNothing) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  size_t fds = 0;
  size_t threads = 0;
  for (int i = 1; i <= GlobalConfig().cycles; ++i) {
    ASSERT_TRUE(pair.Round({pair.block().Whole()}));
    ASSERT_TRUE(pair.Handover());
    ASSERT_TRUE(pair.Close());
    pair.Renew();
    if (i == 10) {
      fds = CountFds();
      threads = CountThreads();
    }
    ASSERT_TRUE(pair.Connect());
    ASSERT_TRUE(pair.AddBlocksAgain());
    ASSERT_TRUE(pair.Exchange());
  }
  ASSERT_TRUE(pair.Close());
  pair.Renew();
  if (fds == 0) return;
  EXPECT_LE(CountFds(), fds);
  EXPECT_LE(CountThreads(), threads);
}

TEST_F(Failures, Rule15_OneContextServesBothSides) {
  Pair pair({.one_context = true});
  ASSERT_TRUE(pair.Ready());
  pair.block().source.Fill(0, pair.block().spec.length, 1);
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  EXPECT_TRUE(pair.block().source.Equals(pair.block().destination));
  ASSERT_TRUE(pair.Handover());
  ASSERT_TRUE(pair.Close());
}

}  // namespace
}  // namespace mig::conformance
