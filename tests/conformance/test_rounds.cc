// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 8: what ROUND_DONE promises.
#include <algorithm>
#include <cstring>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Rounds : public Conformance {};

TEST_F(Rounds, Rule08_EveryRoundIsDoneOnBothSides) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(pair.Round({pair.block().Page(3)}));
  ASSERT_TRUE(pair.Round({}));
  EXPECT_EQ(pair.source().Count(MIG_EVENT_ROUND_DONE), 21U);
  EXPECT_EQ(pair.destination().Count(MIG_EVENT_ROUND_DONE), 21U);
}

// Drives one side a step at a time, and looks at the memory in the very moment
// in which that side is told.
TEST_F(Rounds, Rule08_C24_H02_VisibleBeforeAnySideIsTold) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 4ULL << 20}));
  Block& block = pair.block();
  for (uint64_t round = 1; round <= 20; ++round) {
    block.source.Fill(0, block.spec.length, round);
    ASSERT_TRUE(pair.Begin());
    ASSERT_TRUE(pair.Write({block.Whole()}));
    ASSERT_TRUE(pair.End());
    for (Session* side : {&pair.source(), &pair.destination()}) {
      bool told = false;
      ASSERT_TRUE(pair.Pump([&] {
        const bool now = side->SawNumber(MIG_EVENT_ROUND_DONE, round);
        if (now && !told) {
          EXPECT_TRUE(block.source.Equals(block.destination))
              << "round " << round << " was told done too early";
        }
        told = now;
        return told;
      })) << pair.Describe();
    }
  }
}

TEST_F(Rounds, Rule08_DoneNeedsTheDestination) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 1ULL << 20}));
  Block& block = pair.block();
  block.source.Fill(0, block.spec.length, 1);
  ASSERT_TRUE(pair.Begin());
  ASSERT_TRUE(pair.Write({block.Whole()}));
  ASSERT_TRUE(pair.End());
  DriveFor({&pair.source()}, milliseconds(50));
  if (pair.source().Saw(MIG_EVENT_ROUND_DONE)) {
    EXPECT_TRUE(block.source.Equals(block.destination))
        << "done without the destination's memory";
  }
  ASSERT_TRUE(pair.RoundDone());
}

TEST_F(Rounds, Rule08_TheNextRoundWaitsForTheLast) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Block& block = pair.block();
  ASSERT_TRUE(pair.Begin());
  ASSERT_TRUE(pair.Write({block.Whole()}));
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.Begin()) << "a round may be begun when the last is ended";
  Taken taken;
  ASSERT_EQ(pair.source().Write({{block.Page(0)}}, &taken), MIG_OK);
  if (taken.accepted != 0) {
    pair.source().Progress();
    EXPECT_TRUE(pair.source().SawNumber(MIG_EVENT_ROUND_DONE, 1))
        << "round 2 was taken before round 1 was done";
    return;
  }
  EXPECT_EQ(taken.partial, 0U);
  EXPECT_TRUE(pair.Pump([&] {
    return pair.source().Saw(MIG_EVENT_WRITE_READY);
  })) << pair.Describe();
  EXPECT_TRUE(pair.source().SawNumber(MIG_EVENT_ROUND_DONE, 1));
  ASSERT_TRUE(pair.Write({block.Page(0)}));
  ASSERT_TRUE(pair.End());
  ASSERT_TRUE(pair.RoundDone());
}

TEST_F(Rounds, Rule08_C35_MessagesComeAfterTheRoundsEndedBefore) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 8ULL << 20}));
  for (uint64_t round = 1; round <= 5; ++round) {
    pair.block().source.Fill(0, pair.block().spec.length, round);
    ASSERT_TRUE(pair.Begin());
    ASSERT_TRUE(pair.Write({pair.block().Whole()}));
    ASSERT_TRUE(pair.End());
    ASSERT_EQ(pair.source().Send(1, "state " + std::to_string(round)), MIG_OK);
  }
  ASSERT_TRUE(pair.RoundDone());
  ASSERT_TRUE(pair.Pump(
      [&] { return pair.destination().Count(MIG_EVENT_MESSAGE) == 5; }));
  uint64_t done = 0;
  uint64_t message = 0;
  for (const Event& event : pair.destination().events()) {
    if (event.raw.type == MIG_EVENT_ROUND_DONE) done = event.raw.number;
    if (event.raw.type != MIG_EVENT_MESSAGE) continue;
    ++message;
    EXPECT_EQ(event.data, "state " + std::to_string(message));
    EXPECT_GE(done, message) << "the state came before its round was done";
  }
}

// What a migration does: pages change while they are sent, and are sent again.
class ShadowedGuest {
 public:
  ShadowedGuest(Pair& pair, uint64_t seed) : pair_(pair), random_(seed) {}

  // Changes some pages, and answers them as ranges, in random order.
  std::vector<mig_range> Dirty(uint64_t round) {
    Block& block = pair_.block();
    std::vector<uint64_t> pages(block.pages());
    for (uint64_t i = 0; i < pages.size(); ++i) pages[i] = i;
    for (uint64_t i = pages.size() - 1; i > 0; --i) {
      std::swap(pages[i], pages[Next() % (i + 1)]);
    }
    pages.resize(1 + Next() % pages.size());
    std::vector<mig_range> ranges;
    for (const uint64_t page : pages) {
      const bool zero = Next() % 3 == 0;
      if (zero) {
        block.source.Zero(page * kPage, kPage);
      } else {
        block.source.Fill(page * kPage, kPage, round * 1000 + page);
      }
      ranges.push_back(block.Page(page, zero ? MIG_RANGE_ZERO : 0));
    }
    return ranges;
  }

 private:
  uint64_t Next() { return Mix(++random_); }

  Pair& pair_;
  uint64_t random_;
};

TEST_F(Rounds, Rule08_C25_H01_FiftyRoundsLeaveTheSameMemory) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 256 * kPage}));
  ShadowedGuest guest(pair, 11);
  for (uint64_t round = 1; round <= 50; ++round) {
    ASSERT_TRUE(pair.Round(guest.Dirty(round), MIG_ROUND_STRICT));
    ASSERT_TRUE(pair.block().source.Equals(pair.block().destination))
        << "after round " << round;
  }
}

// Rounds follow each other without waiting for the last one's ROUND_DONE, so
// that the source changes pages while they are being read. Nothing of an
// earlier round may land after the last.
TEST_F(Rounds, Rule08_H01_H03_NoOldDataAfterNew) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Pair pair;
    ASSERT_TRUE(pair.Ready({.length = 256 * kPage}));
    ShadowedGuest guest(pair, seed * 77);
    for (uint64_t round = 1; round <= 50; ++round) {
      ASSERT_TRUE(pair.Begin());
      ASSERT_TRUE(pair.Write(guest.Dirty(round)));
      ASSERT_TRUE(pair.End());
    }
    ASSERT_TRUE(pair.RoundDone());
    ASSERT_TRUE(pair.block().source.Equals(pair.block().destination))
        << "seed " << seed;
  }
}

TEST_F(Rounds, Rule08_ProgressMayTakeOneEventAtATime) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pair.Begin());
    ASSERT_TRUE(pair.End());
    ASSERT_EQ(pair.source().Send(1, "x"), MIG_OK);
    for (int spin = 0; spin < 200; ++spin) {
      pair.source().Progress(0, 1);
      pair.destination().Progress(0, 0);
    }
  }
  const auto all = [&] {
    pair.source().Progress(0, 1);
    pair.destination().Progress(0, 1);
    return pair.source().Count(MIG_EVENT_ROUND_DONE) == 5 &&
           pair.destination().Count(MIG_EVENT_ROUND_DONE) == 5 &&
           pair.destination().Count(MIG_EVENT_MESSAGE) == 5;
  };
  EXPECT_TRUE(Drive({}, all)) << pair.Describe();
}

}  // namespace
}  // namespace mig::conformance
