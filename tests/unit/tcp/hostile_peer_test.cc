// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A peer that has shaken hands and then says what it may not (H6, C29). The
// session ends with a reason, in bounded work, and writes nothing that it
// should not: guest memory stands between unmapped pages.
#include <functional>
#include <set>

#include "raw_peer.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

enum Stage { kConnectedStage, kReadyStage, kOfferedStage, kTakenStage };

void Bring(RawPair* pair, Stage stage) {
  if (stage == kReadyStage) pair->OneRound();
  if (stage >= kOfferedStage) pair->Offered();
  if (stage != kTakenStage) return;
  if (pair->is_source()) {
    pair->Say(FrameOf(FrameType::kCommitted));
    EXPECT_TRUE(pair->side.Has(MIG_EVENT_COMMITTED));
  } else {
    EXPECT_TRUE(pair->side->Handover().ok());
    pair->Settle();
  }
}

// A frame of the type that is right in itself.
std::string GoodFrame(const RawPair& pair, FrameType type) {
  switch (type) {
    case FrameType::kHello:
      return FrameOf(type, 0, Text(EncodeHello(Hello())));
    case FrameType::kBlocks:
      return FrameOf(type, 0, pair.Table());
    case FrameType::kData:
      return pair.PageOf(2, 1);
    case FrameType::kRoundEnd:
      return FrameOf(type, 2, SumsText(0, 0));
    case FrameType::kRoundAck:
      return FrameOf(type, 2);
    case FrameType::kBlockRemoved:
      return FrameOf(type, 5);
    default:
      return FrameOf(type);
  }
}

// What a peer of either role may say at a stage and go on.
std::set<FrameType> Allowed(bool to_source, Stage stage) {
  std::set<FrameType> allowed = {FrameType::kMessage, FrameType::kCredit,
                                 FrameType::kHeartbeat, FrameType::kBusy,
                                 FrameType::kBlocks};
  if (!to_source && stage == kReadyStage) {
    allowed.insert({FrameType::kData, FrameType::kRoundEnd, FrameType::kOffer,
                    FrameType::kBlockRemoved});
  }
  if (!to_source && stage == kTakenStage) allowed.insert(FrameType::kWithdraw);
  if (to_source && stage == kOfferedStage) {
    allowed.insert(FrameType::kCommitted);
  }
  return allowed;
}

bool Ended(Side* side) {
  return side->Has(MIG_EVENT_ERROR) || side->Has(MIG_EVENT_IN_DOUBT) ||
         side->Has(MIG_EVENT_HANDOVER_REFUSED) ||
         side->Has(MIG_EVENT_PEER_CLOSED);
}

TEST(HostilePeerTest, EveryFrameAtEveryStageIsTakenOrEndsTheSession) {
  for (const uint32_t role : {MIG_ROLE_SOURCE, MIG_ROLE_DESTINATION}) {
    const bool to_source = role == MIG_ROLE_SOURCE;
    for (const Stage stage :
         {kConnectedStage, kReadyStage, kOfferedStage, kTakenStage}) {
      for (int number = 1; number <= kMaxFrameType; ++number) {
        const auto type = static_cast<FrameType>(number);
        SCOPED_TRACE(
            absl::StrCat("role ", role, " stage ", stage, " type ", number));
        RawPair pair(role);
        Bring(&pair, stage);
        pair.Say(GoodFrame(pair, type));
        EXPECT_EQ(Ended(&pair.side), !Allowed(to_source, stage).contains(type))
            << pair.side.ErrorText();
        const bool farewell =
            type == FrameType::kAbort || type == FrameType::kBye ||
            type == FrameType::kRefused || type == FrameType::kWithdraw;
        if (pair.side.FailureCode() != MIG_OK && !farewell) {
          EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_PROTOCOL);
          EXPECT_THAT(pair.side.ErrorText(), HasSubstr("faulty or hostile"));
        }
        if (to_source && stage == kOfferedStage && Ended(&pair.side) &&
            !farewell) {
          EXPECT_TRUE(pair.side.Has(MIG_EVENT_IN_DOUBT));
        }
        // Nothing that came after the first round wrote anything, but data
        // where data may come.
        const bool written =
            stage == kReadyStage && !to_source && type == FrameType::kData;
        EXPECT_EQ(pair.memory.data()[kPage] == std::byte{'p'}, written);
        pair.side->Close();
        pair.Settle();
        pair.host.Advance(2 * kSecond);
        pair.Settle();
        EXPECT_EQ(pair.side.events.back().type, MIG_EVENT_CLOSED);
      }
    }
  }
}

// A destination that is told to, ends; its memory stays as it was.
void ExpectRefused(const std::string& bytes, const std::string& reason,
                   const std::function<void(RawPair*)>& bring = {}) {
  RawPair pair(MIG_ROLE_DESTINATION);
  bring ? bring(&pair) : pair.Ready();
  pair.Say(bytes);
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_PROTOCOL) << reason;
  EXPECT_THAT(pair.side.ErrorText(), HasSubstr(reason));
  // The peer is told why as well.
  bool told = false;
  for (const auto& [header, text] : pair.peer.Frames()) {
    told |= header.type == FrameType::kAbort &&
            text.find(reason) != std::string::npos;
  }
  EXPECT_TRUE(told) << reason;
  if (!bring) {
    EXPECT_TRUE(pair.memory.AllAre(2));
  }
}

TEST(HostilePeerTest, C29RangesOutsideTheirBlockWriteNothing) {
  constexpr uint64_t kTop = ~uint64_t{kPage - 1};
  const WireRange kBad[] = {
      {6, 0, 0, kPage},           // no such block
      {9, 0, 0, kPage},           // this side's id, not the peer's
      {5, 2, 0, kPage},           // an unknown flag
      {5, 0, 0, 0},               // nothing
      {5, 0, 1, kPage},           // unaligned
      {5, 0, 0, kPage + 1},       //
      {5, 0, 16 * kPage, kPage},  // just behind
      {5, 0, 0, 17 * kPage},      // too long
      {5, 0, kTop, kPage},        // wraps
      {5, 0, kPage, kTop},        //
      {5, 0, kTop, 2 * kPage},    //
      {5, MIG_RANGE_ZERO, 15 * kPage, 2 * kPage},
      {5, MIG_RANGE_ZERO, kTop, kTop},
  };
  for (const WireRange& bad : kBad) {
    // Behind a good one in the same batch: that must not be written either.
    ExpectRefused(
        FrameOf(FrameType::kData, 1,
                RangeText({5, MIG_RANGE_ZERO, 0, kPage}) + RangeText(bad)) +
            std::string(20 * kPage, 'x'),
        bad.block == 5 ? "outside block 'ram'" : "unknown block");
  }
}

TEST(HostilePeerTest, RoundsAreHeldToTheirNumbersAndSums) {
  ExpectRefused(FrameOf(FrameType::kData, 2, RangeText({5, 0, 0, kPage})),
                "data of round 2");
  ExpectRefused(FrameOf(FrameType::kData, 0, RangeText({5, 0, 0, kPage})),
                "data of round 0");
  ExpectRefused(FrameOf(FrameType::kRoundEnd, 2, SumsText(0, 0)),
                "end of round 2");
  ExpectRefused(FrameOf(FrameType::kRoundEnd, 1, SumsText(kPage, 0)),
                "round 1 with 0 bytes");
  ExpectRefused(FrameOf(FrameType::kRoundEnd, 1, SumsText(0, 1)),
                "says 0 and 1");
  ExpectRefused(FrameOf(FrameType::kRoundEnd, 1, "short"), "round end of 5");
  ExpectRefused(FrameOf(FrameType::kData, 1, ""), "0 bytes of ranges");
  ExpectRefused(FrameOf(FrameType::kData, 1, std::string(25, 'r')),
                "25 bytes of ranges");
  ExpectRefused(FrameOf(FrameType::kOffer), "an offer");  // no round done
  const auto round = [](RawPair* pair) { pair->OneRound(); };
  RawPair pages(MIG_ROLE_DESTINATION);
  ExpectRefused(pages.PageOf(2, 1) + FrameOf(FrameType::kOffer),
                "an offer of the guest inside a round", round);
  ExpectRefused(FrameOf(FrameType::kWithdraw), "did not offer", round);
  ExpectRefused(FrameOf(FrameType::kBlockRemoved, 5 + (uint64_t{1} << 32)),
                "more than 32 bits", round);
  ExpectRefused(FrameOf(FrameType::kBlockRemoved, 9), "unknown block", round);
}

TEST(HostilePeerTest, LengthsThatNoFrameHasAreRefusedUnread) {
  for (int number = 1; number <= kMaxFrameType; ++number) {
    RawPair pair(MIG_ROLE_DESTINATION);
    pair.Ready();
    std::string frame = FrameOf(static_cast<FrameType>(number));
    frame.replace(0, 4, "\xff\xff\xff\xff");
    pair.Say(frame);
    EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_PROTOCOL) << number;
  }
}

TEST(HostilePeerTest, BlockTablesAreHeldAgainstEachOther) {
  const auto table = [](std::vector<BlockDescription> blocks) {
    return FrameOf(FrameType::kBlocks, 0, Text(EncodeBlocks(blocks)));
  };
  const auto exchange = [](RawPair* pair) {
    EXPECT_TRUE(pair->side->AddBlock(BlockOf(pair->memory, 9)).ok());
    EXPECT_TRUE(pair->side->Exchange().ok());
    pair->Settle();
  };
  const BlockDescription ram{5, 0, 16 * kPage, kPage, "ram"};
  ExpectRefused(table({ram, ram}), "twice", exchange);
  ExpectRefused(FrameOf(FrameType::kBlocks, 0, "abc"), "without a count",
                exchange);
  ExpectRefused(FrameOf(FrameType::kBlocks, 0, "\xff\xff\xff\xff"),
                "claims 4294967295", exchange);
  // The most that a table may hold, of blocks that are not there.
  std::vector<BlockDescription> many(kMaxBlocks, ram);
  for (uint32_t i = 0; i < kMaxBlocks; ++i) {
    many[i].id = i;
    many[i].name = absl::StrCat("b", i);
  }
  RawPair pair(MIG_ROLE_DESTINATION);
  exchange(&pair);
  const std::string frame = table(many);
  for (size_t at = 0; at < frame.size(); at += 50000) {
    pair.Say(frame.substr(at, 50000));
  }
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_MISMATCH);
  EXPECT_THAT(pair.side.ErrorText(), HasSubstr("block 'b0'"));
  // A second table before ours.
  ExpectRefused(table({ram}) + table({ram}), "before the last was answered",
                [](RawPair*) {});
}

TEST(HostilePeerTest, CreditIsNotTheirsToInvent) {
  ExpectRefused(FrameOf(FrameType::kCredit, 1), "credit of 1 bytes");
  ExpectRefused(FrameOf(FrameType::kMessage, uint64_t{1} << 32),
                "more than 32 bits");
  RawPair pair(MIG_ROLE_DESTINATION);
  pair.side.release = false;
  pair.Settle();
  const std::string message =
      FrameOf(FrameType::kMessage, 1, std::string(60000, 'm'));
  for (int i = 0; i < 100 && !Ended(&pair.side); ++i) pair.Say(message);
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_PROTOCOL);
  EXPECT_THAT(pair.side.ErrorText(), HasSubstr("beyond its credit"));
  EXPECT_LE(pair.side.messages.size(), (4u << 20) / 60000);
  // They stay the host's until it gives them back (rule 11.5).
  for (const auto& event : pair.side.events) {
    if (event.type == MIG_EVENT_MESSAGE) {
      EXPECT_EQ(static_cast<const char*>(event.data)[59999], 'm');
      pair.side->MessageRelease(event.message);
    }
  }
}

// A peer that never reads can't make the session's own words pile up.
TEST(HostilePeerTest, APeerThatReadsNothingIsNotReadForEver) {
  RawPair pair(MIG_ROLE_DESTINATION);
  pair.Ready();
  pair.peer.received.clear();
  uint64_t round = 0;
  const auto flood = [&pair, &round] {
    std::string ends;
    for (int i = 0; i < 500; ++i) {
      ends += FrameOf(FrameType::kRoundEnd, ++round, SumsText(0, 0));
    }
    return pair.peer.Send(ends);
  };
  const auto work_off = [&pair] {
    pair.side.Step();
    for (int i = 0; i < 2000 && pair.side.Busy(); ++i) pair.side.Step();
  };
  // Acknowledgements fill the socket, then the queue, then reading stops.
  int sent = 0;
  while (flood()) {
    work_off();
    ASSERT_LT(++sent, 400) << "it takes rounds without end";
  }
  work_off();
  EXPECT_FALSE(pair.side.Busy()) << "and does not spin meanwhile";
  pair.host.Advance(11 * kSecond);
  pair.side.Step();
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_TIMEOUT);
}

TEST(HostilePeerTest, AHostThatTakesNoEventsStopsTheReading) {
  RawPair pair(MIG_ROLE_DESTINATION);
  pair.Ready();
  const auto step_without_taking = [&pair] {
    size_t count = 0;
    EXPECT_TRUE(pair.side->Progress(nullptr, 0, 64, 0, &count).ok());
    pair.peer.Receive();
  };
  uint64_t round = 0;
  for (int i = 0; i < 100; ++i) {
    std::string ends;
    for (int k = 0; k < 200; ++k) {
      ends += FrameOf(FrameType::kRoundEnd, ++round, SumsText(0, 0));
    }
    if (!pair.peer.Send(ends)) break;
    step_without_taking();
    pair.host.Advance(3 * kSecond);  // its slowness is not the peer's silence
  }
  EXPECT_LT(round, 100u * 200);
  EXPECT_TRUE(pair.side->error().ok()) << pair.side.ErrorText();
}

TEST(HostilePeerTest, WordsOfThePeerCanNotDriveATerminal) {
  RawPair pair(MIG_ROLE_DESTINATION);
  pair.Ready();
  pair.Say(FrameOf(FrameType::kAbort, static_cast<uint64_t>(int64_t{-300}),
                   "\x1b[2Jgone\n\x07"));
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_FAILED);
  struct mig_error error = {};
  error.size = sizeof(error);
  FillError(pair.side->error(), &error);
  EXPECT_THAT(error.message, HasSubstr("the peer gave up:  [2Jgone"));
  for (const char* c = error.message; *c != '\0'; ++c) {
    EXPECT_GE(static_cast<unsigned char>(*c), 0x20);
  }
}

TEST(HostilePeerTest, ABusyTimeIsCutToTheMostThatAHostMayAskFor) {
  RawPair pair(MIG_ROLE_SOURCE);
  pair.Say(FrameOf(FrameType::kBusy, ~uint64_t{0}));  // rule 13.6
  EXPECT_EQ(pair.side.FailureCode(), MIG_OK);
  pair.host.Advance(MIG_HOST_BUSY_MAX_NS + 11 * kSecond);
  pair.side.Step();
  EXPECT_EQ(pair.side.FailureCode(), MIG_E_PEER_TIMEOUT);
}

// C10: nothing is read while a large zeroing is worked off.
TEST(HostilePeerTest, ALongZeroingIsNotSilence) {
  RawPair pair(MIG_ROLE_DESTINATION, 32768);  // 128 MiB: several steps
  pair.Ready();
  pair.peer.Send(FrameOf(FrameType::kData, 1,
                         RangeText({5, MIG_RANGE_ZERO, 0, 32768 * kPage})));
  int steps = 0;
  for (pair.side.Step(); pair.side.Busy() && ++steps < 100; pair.side.Step()) {
    pair.host.Advance(9 * kSecond);
  }
  EXPECT_GT(steps, 3);
  EXPECT_EQ(pair.side.FailureCode(), MIG_OK) << pair.side.ErrorText();
  EXPECT_TRUE(pair.memory.AllAre(0));
}

// A source answers to what an ABORT says of the guest.
TEST(HostilePeerTest, AnAbortTellsTheSourceWhoHasTheGuest) {
  for (const bool renounced : {false, true}) {
    RawPair pair(MIG_ROLE_SOURCE);
    pair.Offered();
    pair.Say(FrameOf(FrameType::kAbort, 0, "why",
                     renounced ? kAbortGuestNotTaken : 0));
    EXPECT_EQ(pair.side.Has(MIG_EVENT_HANDOVER_REFUSED), renounced);
    EXPECT_EQ(pair.side.Has(MIG_EVENT_IN_DOUBT), !renounced);
    EXPECT_FALSE(pair.side.Has(MIG_EVENT_ERROR));
  }
}

// ... and a destination says so when it fails, but only if that is certain.
TEST(HostilePeerTest, AFailingDestinationSaysWhetherItMayStillTake) {
  for (const Stage stage : {kReadyStage, kOfferedStage}) {
    for (const bool cancel : {false, true}) {
      RawPair pair(MIG_ROLE_DESTINATION);
      Bring(&pair, stage);
      pair.peer.Frames();
      if (cancel) {
        pair.side->Cancel();
        pair.Settle();
      } else {
        pair.Say(FrameOf(FrameType::kRoundAck, 1));
      }
      const auto frames = pair.peer.Frames();
      ASSERT_FALSE(frames.empty());
      EXPECT_EQ(frames.back().first.type, FrameType::kAbort);
      const bool may_take = stage == kOfferedStage && !cancel;
      EXPECT_EQ(frames.back().first.flags, may_take ? 0 : kAbortGuestNotTaken);
      EXPECT_EQ(pair.side->Handover().ok(), may_take);
    }
  }
}

}  // namespace
}  // namespace mig::tcp
