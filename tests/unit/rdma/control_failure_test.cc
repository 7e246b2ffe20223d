// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A control channel whose device, link or peer fails.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "control_pair.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/control_channel.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

// Whichever work request fails: never "not yet", and nothing goes afterwards.
TEST_F(ControlChannelTest, C06C32AFailedCompletionIsStickyAndEndsPosting) {
  Open("mlx5,seed=1,faults=wc 3 REM_OP_ERR");
  for (int i = 0; i < 5; ++i) s->Send(FrameType::kHeartbeat);
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    Drive();
    status = s.Poll();
  }
  EXPECT_EQ(ErrorCode(status), MIG_E_PEER_LOST) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a control"));
  const uint64_t sends = s->counts().sends;
  s->Send(FrameType::kHeartbeat);
  EXPECT_EQ(s.Poll(), status);
  EXPECT_EQ(s->counts().sends, sends);
  EXPECT_FALSE(s->HasStarted(s->Send(FrameType::kOffer)));
}

TEST_F(ControlChannelTest, C07EverythingPostedCompletesOnceAfterACut) {
  Open();
  for (int i = 0; i < 5; ++i) {
    s->Send(FrameType::kMessage, 1, Bytes(Text(1000, 'a')));
  }
  EXPECT_GT(s->outstanding(), uint64_t{kReceives});
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(source.verbs->ModifyQp(source.qp(), &attr, IBV_QP_STATE), 0);
  for (int i = 0; i < 10; ++i) {
    Drive();
    EXPECT_FALSE(i > 0 && s.Poll().ok());
  }
  EXPECT_EQ(s->outstanding(), 0u);
  EXPECT_EQ(ErrorCode(s->status()), MIG_E_PEER_LOST);
}

// ENOMEM may mean too much inline, whatever was granted; told by an errno or by
// -1 with errno (H4).
TEST_F(ControlChannelTest, H04APostThatFailsInlineIsTriedFromASlot) {
  for (const char* fault : {"post 2 ENOMEM", "post 2 EINVAL minus-one"}) {
    Open(absl::StrCat("mlx5,seed=1,faults=", fault));
    s->Send(FrameType::kHeartbeat);
    EXPECT_EQ(s->inline_bytes(), 56u);
    s->Send(FrameType::kRoundEnd, 1, Bytes(Text(16, 'a')));
    EXPECT_EQ(s->inline_bytes(), 0u);
    Settle();
    ASSERT_EQ(d.got.size(), 2u) << fault;
    EXPECT_EQ(d.got[1].payload, Text(16, 'a'));
    TearDown();
    listener = nullptr;
    source = soft::End();
    target = soft::End();
    s.got.clear();
    d.got.clear();
  }
}

// Both completions may come out of one poll; seen on soft-RoCE.
TEST_F(ControlChannelTest, ARefusalComesBeforeTheEndOfItsConnection) {
  Open();
  d.answer = MakeError(MIG_E_PEER_MISMATCH, "the peer refused");
  s->Send(FrameType::kHeartbeat);
  Drive();
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(target.verbs->ModifyQp(target.qp(), &attr, IBV_QP_STATE), 0);
  Drive();
  EXPECT_EQ(ErrorCode(d.Poll()), MIG_E_PEER_MISMATCH);
  EXPECT_EQ(ErrorCode(d.Poll()), MIG_E_PEER_LOST);
}

TEST_F(ControlChannelTest, H04APostThatFailsTwiceEndsTheChannel) {
  Open("mlx5,seed=1,faults=post 1 ENOMEM;post 2 EIO minus-one");
  s->Send(FrameType::kHeartbeat);
  EXPECT_EQ(ErrorErrno(s->status()), EIO);
  EXPECT_THAT(std::string(s->status().message()),
              HasSubstr("can't post a HEARTBEAT frame of 0 bytes"));
  EXPECT_FALSE(s.Poll().ok());
}

// A peer that keeps to no rule: posts what it likes.
class HostilePeer : public ControlChannelTest {
 protected:
  void Raw(FrameHeader header, size_t payload) {
    header.length = static_cast<uint16_t>(payload);
    raw_.resize(kHeaderSize + payload);
    EncodeHeader(header, std::span<uint8_t, kHeaderSize>(raw_.data(), 16));
    RawBytes();
  }
  void RawBytes() {
    ibv_mr* const mr =
        source.Register(raw_.data(), raw_.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_sge sge = {reinterpret_cast<uintptr_t>(raw_.data()),
                   static_cast<uint32_t>(raw_.size()), mr->lkey};
    ibv_send_wr wr = {};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(source.qp(), &wr, &bad), 0);
    Drive();
  }
  std::vector<uint8_t> raw_;
};

TEST_F(HostilePeer, WhatItMayNotSendIsAnErrorOnceAndCanBeAnswered) {
  const std::pair<FrameHeader, size_t> cases[] = {
      {{.type = static_cast<FrameType>(99)}, 0},
      {{.type = FrameType::kHeartbeat}, 1},
      {{.type = FrameType::kHeartbeat, .channel = 3}, 0},
      {{.type = FrameType::kCommitted}, 0},
      {{.slots = 1, .type = FrameType::kHeartbeat}, 0},
      {{.type = FrameType::kMessage, .argument = LongArgument(2u << 20, 1)},
       100},
      {{.type = FrameType::kMessage, .argument = LongArgument(100'000, 1)},
       100},
  };
  for (const auto& [header, payload] : cases) {
    Open();
    Raw(header, payload);
    EXPECT_EQ(ErrorCode(d.Poll()), MIG_E_PEER_PROTOCOL);
    EXPECT_TRUE(d->status().ok());
    Raw({.type = FrameType::kHeartbeat}, 0);
    EXPECT_TRUE(d.Poll().ok()) << "told once";
    EXPECT_TRUE(d.got.empty()) << "and nothing is handed on";
    d->Send(FrameType::kAbort, 1, Bytes("faulty"));
    Drive();
    EXPECT_TRUE(d.Poll().ok());
    EXPECT_TRUE(d->Settled()) << "it was not told";
    TearDown();
    listener = nullptr;
    source = soft::End();
    target = soft::End();
    s.got.clear();
    d.got.clear();
  }
}

TEST_F(HostilePeer, C29AShortSendIsRefused) {
  Open();
  raw_.resize(15);
  RawBytes();
  EXPECT_EQ(ErrorCode(d.Poll()), MIG_E_PEER_PROTOCOL);
}

TEST_F(HostilePeer, AMessageBeforeTheAgreementIsRefused) {
  Open();
  d->SetMaxMessage(0);
  Raw({.type = FrameType::kMessage, .argument = LongArgument(1, 1)}, 1);
  EXPECT_EQ(ErrorCode(d.Poll()), MIG_E_PEER_PROTOCOL);
}

TEST_F(ControlChannelTest, AHandlersErrorEndsTheReading) {
  Open();
  d.answer = MakeError(MIG_E_PEER_PROTOCOL, "not now");
  s->Send(FrameType::kHeartbeat);
  s->Send(FrameType::kHeartbeat);
  Drive();
  EXPECT_EQ(d.Poll(), d.answer);
  EXPECT_EQ(d.got.size(), 1u);
}

}  // namespace
}  // namespace mig::rdma
