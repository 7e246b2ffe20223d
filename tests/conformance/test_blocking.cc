// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 3: nothing blocks but progress, and destroy is bounded in every state.
// That no call waits is checked in each call of each test; here the peer does
// nothing at all.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pair.h"
#include "states.h"

namespace mig::conformance {
namespace {

class Blocking : public Conformance {};

class EveryState : public Conformance,
                   public testing::WithParamInterface<State> {};

TEST_F(Blocking, Rule03_NoCallWaitsForAPeerThatStandsStill) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 16ULL << 20}));
  Session& source = pair.source();
  Taken taken;
  ASSERT_EQ(source.RoundBegin(1), MIG_OK);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(source.Write({{pair.block().Whole()}}, &taken), MIG_OK);
    ASSERT_EQ(source.Flush(), MIG_OK);
    ASSERT_GE(source.Send(1, std::string(512 * 1024, 'x')), 0);
    source.Progress();
    (void)source.GetStats();
  }
  ASSERT_EQ(source.RoundEnd(1), MIG_OK);
  source.Close();
  DriveFor({&source}, milliseconds(50));
  source.Cancel();
  source.Destroy();
  EXPECT_TRUE(pair.Pump([&] { return pair.destination().Ended(); }));
}

TEST_F(Blocking, Rule03_CloseIsAnsweredByClosed) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  pair.source().Close();
  pair.source().Close();
  EXPECT_TRUE(Drive({&pair.source(), &pair.destination()}, [&] {
    return pair.source().Saw(MIG_EVENT_CLOSED);
  })) << pair.Describe();
  pair.source().Close();
  pair.source().Cancel();
  DriveFor({&pair.source()}, milliseconds(20));
  EXPECT_EQ(pair.source().Count(MIG_EVENT_CLOSED), 1U);
}

// Each side in turn is destroyed in each state, without close, and the other
// learns of it; then a new pair on the same contexts works.
TEST_P(EveryState, Rule03_Rule15_C16_DestroyIsBounded) {
  for (const bool source_first : {true, false}) {
    SCOPED_TRACE(source_first ? "source first" : "destination first");
    Pair pair;
    ASSERT_TRUE(Reach(pair, GetParam()));
    Session& first = source_first ? pair.source() : pair.destination();
    Session& second = source_first ? pair.destination() : pair.source();
    first.Destroy();
    DriveFor({&second}, milliseconds(5));
    second.Destroy();
    pair.Renew();
    ASSERT_TRUE(pair.Connect());
    ASSERT_TRUE(pair.AddBlocksAgain());
    ASSERT_TRUE(pair.Exchange());
    ASSERT_TRUE(pair.Round({}));
  }
}

TEST_P(EveryState, Rule03_CloseEndsInClosed) {
  for (const bool source_closes : {true, false}) {
    Pair pair;
    ASSERT_TRUE(Reach(pair, GetParam()));
    Session& side = source_closes ? pair.source() : pair.destination();
    side.Close();
    EXPECT_TRUE(pair.Pump([&] { return side.Saw(MIG_EVENT_CLOSED); }))
        << "rule 3: no CLOSED; " << pair.Describe();
    EXPECT_EQ(side.Send(1, "x") < 0, true) << "a closed session sends nothing";
  }
}

// The peer stands still: no progress of it, ever.
TEST_P(EveryState, Rule03_CloseEndsAlsoIfThePeerStandsStill) {
  for (const bool source_closes : {true, false}) {
    MIG_NEEDS_SIMULATED_CLOCK();
    Pair pair({.clock = ClockKind::kSimulated});
    ASSERT_TRUE(Reach(pair, GetParam()));
    Session& side = source_closes ? pair.source() : pair.destination();
    side.Close();
    // The close timeout is the plugin's own; an hour is past any of them.
    uint64_t waited = 0;
    EXPECT_TRUE(Drive({&side}, [&] {
      side.host().Advance(100'000'000);
      waited += 100'000'000;
      return side.Saw(MIG_EVENT_CLOSED) || waited > 3'600'000'000'000;
    }));
    EXPECT_TRUE(side.Saw(MIG_EVENT_CLOSED)) << side.Describe();
  }
}

TEST_P(EveryState, Rule02_CancelEndsIt) {
  for (const bool source_cancels : {true, false}) {
    SCOPED_TRACE(source_cancels ? "source" : "destination");
    Pair pair;
    ASSERT_TRUE(Reach(pair, GetParam()));
    Session& side = source_cancels ? pair.source() : pair.destination();
    const bool over = side.Ended() || GetParam() == State::kTaken ||
                      GetParam() == State::kClosing;
    side.Cancel();
    side.Cancel();
    if (over) {
      DriveFor({&pair.source(), &pair.destination()}, milliseconds(5));
      continue;
    }
    EXPECT_TRUE(pair.Pump([&] { return side.Ended(); })) << pair.Describe();
    if (GetParam() == State::kOffered && source_cancels) {
      EXPECT_TRUE(side.Saw(MIG_EVENT_HANDOVER_REFUSED)) << pair.Describe();
      continue;
    }
    EXPECT_TRUE(side.Saw(MIG_EVENT_ERROR)) << pair.Describe();
    EXPECT_EQ(StatusName(side.SessionError().code), "MIG_E_CANCELLED");
  }
}

using S = State;

// One call of one side, and the states in which it is legal, or in which the
// plugin may know more than the test.
struct Op {
  const char* name;
  bool source;
  std::function<int32_t(Session&)> call;
  std::set<State> legal;
};

std::vector<Op> AllOps() {
  const auto write = [](Session& side) {
    Taken taken;
    return side.Write({{{0, 0, 7, 0, 0}}}, &taken);
  };
  const auto begin = [](Session& side) { return side.RoundBegin(2); };
  const auto end = [](Session& side) { return side.RoundEnd(1); };
  const auto exchange = [](Session& side) { return side.Exchange(); };
  const auto listen = [](Session& side) {
    return side.Listen(NextListenUri());
  };
  const auto connect = [](Session& side) {
    return side.Connect(NextListenUri());
  };
  const auto handover = [](Session& side) { return side.Handover(); };
  const auto send = [](Session& side) { return side.Send(1, "x"); };
  const std::set<State> may_be_connected = {
      S::kConnecting, S::kConnected, S::kExchanging, S::kReady, S::kInRound,
      S::kRoundEnded, S::kRoundDone, S::kOffered,    S::kTaken};
  return {
      {"connect", true, connect, {S::kNew}},
      {"listen", true, listen, {}},
      {"exchange",
       true,
       exchange,
       {S::kConnecting, S::kConnected, S::kReady, S::kRoundEnded,
        S::kRoundDone}},
      {"round_begin", true, begin, {S::kReady, S::kRoundEnded, S::kRoundDone}},
      {"write", true, write, {S::kInRound}},
      {"round_end", true, end, {S::kInRound}},
      {"handover", true, handover, {S::kRoundEnded, S::kRoundDone}},
      {"send", true, send, may_be_connected},
      {"listen", false, listen, {S::kNew}},
      {"connect", false, connect, {}},
      {"exchange",
       false,
       exchange,
       {S::kConnecting, S::kConnected, S::kExchanging, S::kReady, S::kInRound,
        S::kRoundEnded, S::kRoundDone, S::kClosing}},
      {"round_begin", false, begin, {}},
      {"write", false, write, {}},
      {"round_end", false, end, {}},
      {"handover", false, handover, {S::kOffered}},
  };
}

// What is illegal in a state answers so, and changes nothing.
TEST_P(EveryState, Rule07_Rule15_CallsOutOfOrderAreRefused) {
  const State state = GetParam();
  Pair pair;
  ASSERT_TRUE(Reach(pair, state));
  const bool failed = pair.source().Saw(MIG_EVENT_ERROR);
  for (const Op& op : AllOps()) {
    if (op.legal.count(state) != 0) continue;
    Session& side = op.source ? pair.source() : pair.destination();
    const int32_t status = op.call(side);
    // The plugin may know of a failure whose event was not taken yet.
    const bool may_have_failed = side.Ended() || state == S::kClosing;
    EXPECT_TRUE(status == MIG_E_STATE ||
                (may_have_failed && status == MIG_E_FAILED))
        << (op.source ? "source " : "destination ") << op.name << " answers "
        << StatusName(status) << ": " << side.error().message;
  }
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(5));
  EXPECT_EQ(pair.source().Saw(MIG_EVENT_ERROR), failed)
      << "a refused call ended the session: " << pair.Describe();
}

INSTANTIATE_TEST_SUITE_P(States, EveryState, testing::ValuesIn(kAllStates),
                         [](const testing::TestParamInfo<State>& info) {
                           return StateName(info.param);
                         });

}  // namespace
}  // namespace mig::conformance
