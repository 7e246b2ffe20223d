// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 12: whatever happens in a handover, two guests never run.
#include <algorithm>
#include <string>

#include "pair.h"

namespace mig::conformance {
namespace {

class HandoverFailures : public Conformance {};

testing::AssertionResult ReadyToHandOver(Pair& pair) {
  testing::AssertionResult result = pair.Ready();
  if (result) result = pair.Round({pair.block().Whole()}, MIG_ROUND_FINAL);
  return result;
}

TEST_F(HandoverFailures, Rule12_BeforeItTheSourceIsNeverInDoubt) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  pair.destination().Destroy();
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_TRUE(pair.source().Saw(MIG_EVENT_ERROR)) << pair.Describe();
  EXPECT_LT(pair.source().Handover(), 0);
}

TEST_F(HandoverFailures, Rule12_WithoutAnOfferTheDestinationNeverSeesOne) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  pair.source().Close();
  ASSERT_TRUE(pair.Pump([&] { return pair.destination().Ended(); }));
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_HANDOVER)) << pair.Describe();
  EXPECT_TRUE(pair.destination().Saw(MIG_EVENT_ERROR)) << pair.Describe();
  EXPECT_LT(pair.destination().Handover(), 0);
}

TEST_F(HandoverFailures, Rule12_H10_TheDestinationVanishesWithTheOffer) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.destination().Destroy();
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_FALSE(pair.source().Saw(MIG_EVENT_COMMITTED)) << pair.Describe();
  EXPECT_EQ(pair.source().Count(MIG_EVENT_IN_DOUBT) +
                pair.source().Count(MIG_EVENT_HANDOVER_REFUSED) +
                pair.source().Count(MIG_EVENT_ERROR),
            1U)
      << pair.Describe();
  EXPECT_LT(pair.source().SessionError().code, 0);
}

TEST_F(HandoverFailures, Rule12_C33_TheDestinationVanishesWithTheGuest) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  pair.destination().Destroy();
  ASSERT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_EQ(pair.source().Count(MIG_EVENT_IN_DOUBT) +
                pair.source().Count(MIG_EVENT_COMMITTED),
            1U)
      << "it was taken, and the source may run it: " << pair.Describe();
}

TEST_F(HandoverFailures, Rule12_C33_TheSourceVanishesAfterItsOffer) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  pair.source().Destroy();
  DriveFor({&pair.destination()}, milliseconds(50));
  EXPECT_EQ(pair.destination().Handover(), MIG_OK)
      << "an offer that was shown and not withdrawn can be taken: "
      << pair.destination().error().message << pair.Describe();
  EXPECT_LT(pair.destination().Handover(), 0) << "once";
}

TEST_F(HandoverFailures, Rule12_C33_TheSourceVanishesAfterItWasTaken) {
  Pair pair;
  ASSERT_TRUE(ReadyToHandOver(pair));
  ASSERT_TRUE(pair.Offer());
  ASSERT_EQ(pair.destination().Handover(), MIG_OK);
  pair.source().Destroy();
  EXPECT_TRUE(pair.Pump([&] {
    return pair.destination().Saw(MIG_EVENT_PEER_CLOSED);
  })) << pair.Describe();
  EXPECT_FALSE(pair.destination().Saw(MIG_EVENT_ERROR))
      << "the guest is here: its loss is no failure: " << pair.Describe();
}

// One handover in which each side does what chance says, in any order.
class Chance {
 public:
  Chance(Pair& pair, uint64_t seed) : pair_(pair), random_(seed * 1000) {}

  void Run() {
    for (int i = 0; i < 40; ++i) Step(Mix(++random_) % 40);
    if (pair_.source().valid()) {
      EXPECT_TRUE(pair_.Pump([&] { return SourceIsOver() || Undecided(); }))
          << pair_.Describe();
    }
  }

  void Check() {
    Session& source = pair_.source();
    const size_t outcomes = source.Count(MIG_EVENT_COMMITTED) +
                            source.Count(MIG_EVENT_HANDOVER_REFUSED) +
                            source.Count(MIG_EVENT_ERROR) +
                            source.Count(MIG_EVENT_IN_DOUBT);
    EXPECT_LE(outcomes, 1U) << pair_.Describe();
    if (taken_) {
      EXPECT_FALSE(source.Saw(MIG_EVENT_HANDOVER_REFUSED) ||
                   source.Saw(MIG_EVENT_ERROR))
          << "two guests run: " << pair_.Describe();
    } else {
      EXPECT_FALSE(source.Saw(MIG_EVENT_COMMITTED))
          << "no guest runs: " << pair_.Describe();
    }
    EXPECT_LE(takes_, 1) << "taken twice";
  }

 private:
  // Twice as likely to go on as to break something.
  void Step(uint64_t choice) {
    Session& source = pair_.source();
    Session& destination = pair_.destination();
    const bool source_lives = source.valid();
    const bool destination_lives = destination.valid();
    if (choice == 0 && source_lives) {
      source.Cancel();
    } else if (choice == 1 && source_lives) {
      source.Close();
    } else if (choice == 2 && source_lives) {
      source.Destroy();
    } else if (choice == 3 && destination_lives) {
      destination.Cancel();
    } else if (choice == 4 && destination_lives) {
      destination.Close();
    } else if (choice == 5 && destination_lives) {
      destination.Destroy();
    } else if (choice < 9 && destination_lives) {
      if (destination.Handover() == MIG_OK) {
        taken_ = true;
        ++takes_;
      }
    } else if (choice < 25 && source_lives) {
      source.Progress(0, 1 + choice % 3);
    } else if (destination_lives) {
      destination.Progress(0, 1 + choice % 3);
    }
  }

  bool SourceIsOver() { return pair_.source().Ended(); }
  // Nobody said anything: the offer stands.
  bool Undecided() {
    Session& destination = pair_.destination();
    return destination.valid() && !taken_ && !destination.Ended() &&
           destination.Saw(MIG_EVENT_HANDOVER);
  }

  Pair& pair_;
  uint64_t random_;
  bool taken_ = false;
  int takes_ = 0;
};

TEST_F(HandoverFailures, Rule12_C33_TwoGuestsNeverRun) {
  const auto seeds =
      static_cast<uint64_t>(std::min(300, GlobalConfig().cycles));
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Pair pair;
    ASSERT_TRUE(ReadyToHandOver(pair));
    ASSERT_EQ(pair.source().Handover(), MIG_OK);
    Chance chance(pair, seed);
    chance.Run();
    chance.Check();
  }
}

}  // namespace
}  // namespace mig::conformance
