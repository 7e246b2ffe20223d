// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/control_channel.h"

#include <string>

#include "common/error.h"
#include "control_pair.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

TEST_F(ControlChannelTest, WhatFitsGoesInlineAndIsNotCopied) {
  Open();
  for (const size_t size : {0u, 1u, 40u}) {
    s->Send(FrameType::kMessage, 7, Bytes(Text(size, 'a')));
  }
  s->Send(FrameType::kHeartbeat);
  Settle();
  ASSERT_EQ(d.got.size(), 4u);
  EXPECT_EQ(d.got[2].payload, Text(40, 'a'));
  EXPECT_EQ(LongValue(d.got[2].argument), 7u);
  EXPECT_EQ(d.got[3].type, FrameType::kHeartbeat);
  EXPECT_EQ(s->counts().inline_sends, 4u);
  EXPECT_EQ(s->counts().slot_sends, 0u);
}

TEST_F(ControlChannelTest, WhatDoesNotFitGoesByASlot) {
  Open();
  s->Send(FrameType::kMessage, 7, Bytes(Text(41, 'a')));
  Settle();
  ASSERT_EQ(d.got.size(), 1u);
  EXPECT_EQ(d.got[0].payload, Text(41, 'a'));
  EXPECT_EQ(s->counts().slot_sends, 1u);
}

// C02: the caps that came back rule every send.
TEST_F(ControlChannelTest, C02WithoutInlineRoomAllGoesBySlots) {
  cap.max_inline_data = 0;
  Open("mlx5,seed=1", "mlx5,seed=2", {kDepth, 2, 0});
  for (int i = 0; i < 50; ++i) {
    s->Send(FrameType::kRoundEnd, 1, Bytes(Text(16, 'a')));
    d->Send(FrameType::kHeartbeat);
  }
  Settle();
  EXPECT_EQ(d.got.size(), 50u);
  EXPECT_EQ(s.got.size(), 50u);
  EXPECT_EQ(s->counts().inline_sends, 0u);
}

TEST_F(ControlChannelTest, C02WithOneSgeAFixedFrameIsGatheredInline) {
  cap.max_send_sge = 1;
  Open("mlx5,seed=1", "mlx5,seed=2", {kDepth, 1, 56});
  s->Send(FrameType::kRoundEnd, 1, Bytes(Text(16, 'a')));
  s->Send(FrameType::kMessage, 1, Bytes(Text(40, 'b')));
  Settle();
  ASSERT_EQ(d.got.size(), 2u);
  EXPECT_EQ(d.got[1].payload, Text(40, 'b'));
  EXPECT_EQ(s->counts().inline_sends, 2u);
}

TEST_F(ControlChannelTest, LargeMessagesOfSeveralPiecesArriveWholeAndInOrder) {
  Open();
  const std::string one = Text(512u << 10, 'a');
  const std::string other = Text(300'000, 'A');
  const mig_iov pieces[] = {{other.data(), 1},
                            {nullptr, 0},
                            {other.data() + 1, 200'000},
                            {other.data() + 200'001, 99'999}};
  s->Send(FrameType::kMessage, 1, Bytes(one));
  s->Send({.type = FrameType::kMessage, .argument = 2}, pieces);
  s->Send(FrameType::kMessage, 3);
  Settle();
  ASSERT_EQ(d.got.size(), 3u);
  EXPECT_EQ(d.got[0].payload, one);
  EXPECT_EQ(d.got[1].payload, other);
  EXPECT_EQ(LongValue(d.got[1].argument), 2u);
  EXPECT_EQ(d.got[2].payload, "");
  EXPECT_EQ(s->unsent_bytes(), 0u);
}

// Both at once, without a wait for each other's answer or each SEND's end.
TEST_F(ControlChannelTest, C09BothSidesSendWithoutEnd) {
  Open();
  for (int i = 0; i < 200; ++i) {
    s->Send(FrameType::kMessage, 1,
            Bytes(Text(331 * static_cast<size_t>(i), 'a')));
    d->Send(FrameType::kMessage, 1,
            Bytes(Text(131 * static_cast<size_t>(i), 'b')));
    d->Send(FrameType::kHeartbeat);
  }
  Settle();
  ASSERT_EQ(d.got.size(), 200u);
  ASSERT_EQ(s.got.size(), 400u);
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(d.got[i].payload, Text(i * 331, 'a'));
  }
}

TEST_F(ControlChannelTest, SeveralFramesAreUnderWayBeforeAnyCompletion) {
  Open();
  for (int i = 0; i < 7; ++i) s->Send(FrameType::kHeartbeat);
  EXPECT_EQ(s->counts().sends, 7u) << "all but the peer's last receive";
  EXPECT_EQ(s->unsent_frames(), 0u);
}

TEST_F(ControlChannelTest, C09APeerThatDoesNotPollIsNotOverrun) {
  Open();
  for (int i = 0; i < 100; ++i) {
    s->Send(FrameType::kMessage, 1, Bytes(Text(30, 'a')));
  }
  for (int i = 0; i < 50; ++i) {
    Drive();
    ASSERT_TRUE(s.Poll().ok()) << s->status();
  }
  EXPECT_EQ(s->counts().sends, kReceives - 1u);
  EXPECT_EQ(s->unsent_frames(), 100u - (kReceives - 1u));
  Settle();
  EXPECT_EQ(d.got.size(), 100u);
  EXPECT_GT(d->counts().slots_frames, 0u);
}

// Each has used what the other has; neither may wait for the other.
TEST_F(ControlChannelTest, BothOutOfReceivesFindOutOfIt) {
  Open();
  for (int i = 0; i < 60; ++i) {
    s->Send(FrameType::kHeartbeat);
    d->Send(FrameType::kHeartbeat);
  }
  Drive();
  EXPECT_GT(s->unsent_frames(), 0u);
  EXPECT_GT(d->unsent_frames(), 0u);
  Settle();
  EXPECT_EQ(s.got.size(), 60u);
  EXPECT_EQ(d.got.size(), 60u);
  EXPECT_EQ(s->unsent_frames(), 0u);
}

// Where the two are idle, giving receives back comes to an end.
TEST_F(ControlChannelTest, SlotsFramesDoNotAnswerEachOtherForEver) {
  Open();
  for (int i = 0; i < 40; ++i) s->Send(FrameType::kHeartbeat);
  Settle();
  const uint64_t sends = s->counts().sends + d->counts().sends;
  Settle();
  EXPECT_EQ(s->counts().sends + d->counts().sends, sends);
}

// The completion queue has just the size that is needed, and an overrun kills.
TEST_F(ControlChannelTest, C04MixedSendsNeverOverrunTheCompletionQueue) {
  Open();
  uint64_t random = 1;
  const auto next = [&random](uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % below;
  };
  size_t sent = 0;
  size_t answered = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (next(2) == 0 && s->unsent_frames() < 8) {
      const size_t size = next(8) == 0 ? next(60'000) : next(60);
      s->Send(FrameType::kMessage, 1, Bytes(Text(size, 'a')));
      ++sent;
    }
    if (next(3) == 0 && d->unsent_frames() < 8) {
      d->Send(FrameType::kHeartbeat);
      ++answered;
    }
    if (next(4) == 0) Drive();
    if (next(3) == 0) {
      ASSERT_TRUE(s.Poll(1 + static_cast<int>(next(20))).ok()) << s->status();
    }
    if (next(3) == 0) {
      ASSERT_TRUE(d.Poll(1 + static_cast<int>(next(20))).ok()) << d->status();
    }
  }
  Settle();
  EXPECT_EQ(d.got.size(), sent);
  EXPECT_EQ(s.got.size(), answered);
}

TEST_F(ControlChannelTest, C05TheUnsignalledTailIsRetired) {
  Open();
  for (int round = 0; round < 200; ++round) {
    s->Send(FrameType::kHeartbeat);
    Drive();
    ASSERT_TRUE(s.Poll().ok());
    ASSERT_TRUE(d.Poll().ok());
  }
  EXPECT_EQ(s->counts().sends, 200u);
  // Those of its own SENDs: the rest are the peer's frames.
  const uint64_t own = s->counts().completions - d->counts().sends;
  EXPECT_GE(own, 200u / (kDepth / 4) - 1);
  EXPECT_LE(own, 200u / 2) << "not each of them";
}

TEST_F(ControlChannelTest, ALastWordIsSettledWhenThePeersDeviceHasIt) {
  Open();
  EXPECT_TRUE(s->Settled());
  s->Send(FrameType::kBye);
  EXPECT_FALSE(s->Settled());
  Drive();
  ASSERT_TRUE(s.Poll().ok());
  EXPECT_TRUE(s->Settled());
}

TEST_F(ControlChannelTest, WhatIsSentBeforeItIsOpenGoesWhenItIs) {
  Open();
  // A second channel object is not needed: a closed one only queues.
  Channel closed;
  closed.channel =
      std::make_unique<ControlChannel>(source.verbs.get(), s.slots.get());
  const uint64_t place = closed->Send(FrameType::kHeartbeat);
  EXPECT_FALSE(closed->HasStarted(place));
  EXPECT_EQ(closed->unsent_frames(), 1u);
}

TEST_F(ControlChannelTest, C33WhatWasDroppedNeverCountsAsStarted) {
  Open();
  uint64_t last_out = 0;
  while (s->unsent_frames() == 0) {
    const uint64_t place = s->Send(FrameType::kHeartbeat);
    if (s->unsent_frames() == 0) last_out = place;
  }
  const uint64_t offer = s->Send(FrameType::kOffer);
  EXPECT_TRUE(s->HasStarted(last_out));
  EXPECT_TRUE(s->HasFinished(last_out));
  EXPECT_FALSE(s->HasStarted(offer));
  s->DropUnsent();
  const uint64_t abort = s->Send(FrameType::kAbort, 1, Bytes("why"));
  Settle();
  EXPECT_TRUE(s->HasFinished(abort));
  EXPECT_FALSE(s->HasStarted(offer)) << "no byte of it left";
  EXPECT_TRUE(s->HasStarted(last_out));
  EXPECT_EQ(d.got.back().type, FrameType::kAbort);
  EXPECT_EQ(d.got.size(), last_out + 1);
}

TEST_F(ControlChannelTest, C33ALongFrameThatWasBegunMayBeCutByAnAbort) {
  Open();
  const uint64_t place =
      s->Send(FrameType::kMessage, 1, Bytes(Text(500'000, 'a')));
  EXPECT_TRUE(s->HasStarted(place));
  EXPECT_FALSE(s->HasFinished(place));
  s->DropUnsent();
  s->Send(FrameType::kAbort, 1, Bytes("why"));
  Settle();
  ASSERT_EQ(d.got.size(), 1u);
  EXPECT_EQ(d.got[0].type, FrameType::kAbort);
}

TEST_F(ControlChannelTest, SlotsThatCantBeRegisteredSayWhatToDo) {
  Make("mlx5,seed=1,memlock=4K", "mlx5,seed=2");
  MakeListener();
  Resolve();
  source.MakeObjects(cqe);
  const auto slots =
      ControlSlots::Create(source.verbs.get(), source.pd, kReceives, kSends);
  ASSERT_FALSE(slots.ok());
  EXPECT_THAT(std::string(slots.status().message()), HasSubstr("ulimit -l"));
}

}  // namespace
}  // namespace mig::rdma
