// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Work requests between two ends: what moves, what is refused, what ends how.
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr unsigned int kRemoteWrite =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

std::vector<int> Statuses(const std::vector<ibv_wc>& completions) {
  std::vector<int> statuses;
  statuses.reserve(completions.size());
  for (const ibv_wc& wc : completions) statuses.push_back(wc.status);
  return statuses;
}

class TransferTest : public SoftPair {
 protected:
  TransferTest() : from(8192), to(8192) {
    std::iota(from.begin(), from.end(), uint8_t{1});
  }
  void Start(const std::string& source_config = "mlx5,seed=1",
             const std::string& target_config = "mlx5,seed=2") {
    Connect(source_config, target_config);
    if (HasFatalFailure()) return;
    source_mr =
        source.Register(from.data(), from.size(), IBV_ACCESS_LOCAL_WRITE);
    target_mr = target.Register(to.data(), to.size(),
                                kRemoteWrite | IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(source_mr, nullptr);
    ASSERT_NE(target_mr, nullptr);
  }
  // Posts a write of `length` bytes at `offset`.
  int Write(uint64_t id, size_t length, size_t offset = 0,
            unsigned int flags = IBV_SEND_SIGNALED) {
    return Wr(IBV_WR_RDMA_WRITE, id)
        .From(from.data() + offset, length, source_mr->lkey)
        .To(to.data() + offset, target_mr->rkey)
        .Flags(flags)
        .Post(source.qp());
  }
  int Send(uint64_t id, size_t length) {
    return Wr(IBV_WR_SEND, id)
        .From(from.data(), length, source_mr->lkey)
        .Post(source.qp());
  }
  int Receive(uint64_t id, size_t length = 256) {
    return PostReceive(target.qp(), to.data(), length, target_mr->lkey, id);
  }

  std::vector<uint8_t> from;
  std::vector<uint8_t> to;
  ibv_mr* source_mr = nullptr;
  ibv_mr* target_mr = nullptr;
};

TEST_F(TransferTest, WriteLandsAndCompletesOnlyAtItsSource) {
  Start();
  ASSERT_EQ(Write(5, 4096), 0);
  EXPECT_THAT(source.Poll(), IsEmpty());
  EXPECT_EQ(source.verbs->NextDueNs(), 0u);
  Drive();
  const std::vector<ibv_wc> done = source.Poll();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].wr_id, 5u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(done[0].qp_num, source.qp()->qp_num);
  EXPECT_THAT(target.Poll(), IsEmpty());
  EXPECT_EQ(std::memcmp(from.data(), to.data(), 4096), 0);
  EXPECT_EQ(to[4096], 0);
}

// A device moves a long write by itself, packet by packet, among other work.
TEST_F(TransferTest, ALongWriteIsMovedInPartsAndArrivesWhole) {
  from.resize(5 * (1 << 20) + 3);
  to.resize(from.size());
  // No part like another.
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<uint8_t>((i * 7 >> 3) + (i >> 20));
  }
  Start();
  ASSERT_EQ(Write(5, from.size()), 0);
  int drives = 0;
  for (; source.Poll().empty() && drives < 100; ++drives) source.verbs->Drive();
  EXPECT_GE(drives, 3);
  EXPECT_LT(drives, 100);
  EXPECT_EQ(from, to);
}

// Its first part is in place when the peer's key goes: the write fails as one.
TEST_F(TransferTest, ALongWriteFailsWhereItsKeyGoesHalfWay) {
  from.resize(5 << 20, 3);
  to.resize(from.size());
  Start();
  ASSERT_EQ(Write(5, from.size()), 0);
  source.verbs->Drive();
  EXPECT_THAT(source.Poll(), IsEmpty());
  ASSERT_EQ(target.verbs->DeregMr(target_mr), 0);
  std::erase(target.mrs, target_mr);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(to.back(), 0);
}

TEST_F(TransferTest, SendTakesAReceiveAndCarriesItsLength) {
  Start();
  ASSERT_EQ(Receive(7), 0);
  ASSERT_EQ(Send(8, 100), 0);
  Drive();
  const std::vector<ibv_wc> received = target.Poll();
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].wr_id, 7u);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[0].byte_len, 100u);
  EXPECT_EQ(std::memcmp(from.data(), to.data(), 100), 0);
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_SUCCESS));
}

TEST_F(TransferTest, ImmediateDataArrivesWithSendAndWrite) {
  Start();
  ASSERT_EQ(Receive(1), 0);
  ASSERT_EQ(Receive(2), 0);
  Wr send(IBV_WR_SEND_WITH_IMM);
  send.From(from.data(), 8, source_mr->lkey).wr.imm_data = htonl(17);
  ASSERT_EQ(send.Post(source.qp()), 0);
  Wr write(IBV_WR_RDMA_WRITE_WITH_IMM);
  write.From(from.data(), 16, source_mr->lkey)
      .To(to.data() + 1024, target_mr->rkey)
      .wr.imm_data = htonl(18);
  ASSERT_EQ(write.Post(source.qp()), 0);
  Drive();
  const std::vector<ibv_wc> received = target.Poll();
  ASSERT_THAT(received, SizeIs(2));
  EXPECT_EQ(ntohl(received[0].imm_data), 17u);
  EXPECT_EQ(received[1].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received[1].wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(received[1].imm_data), 18u);
  EXPECT_EQ(received[1].byte_len, 16u);
  EXPECT_EQ(std::memcmp(from.data(), to.data() + 1024, 16), 0);
}

TEST_F(TransferTest, ReadBringsTheOtherSidesBytes) {
  Start();
  std::fill(to.begin(), to.end(), 0xab);
  ASSERT_EQ(Wr(IBV_WR_RDMA_READ, 3)
                .From(from.data(), 64, source_mr->lkey)
                .To(to.data() + 128, target_mr->rkey)
                .Post(source.qp()),
            0);
  Drive();
  const std::vector<ibv_wc> done = source.Poll();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(from[63], 0xab);
  EXPECT_NE(from[64], 0xab);
}

TEST_F(TransferTest, C12ZeroLengthWriteNeedsNoKeyAndZeroLengthSendDoes) {
  Start();
  Wr write(IBV_WR_RDMA_WRITE, 1);
  ASSERT_EQ(write.To(nullptr, 0xdead).Post(source.qp()), 0);
  ASSERT_EQ(PostReceive(target.qp(), nullptr, 0, 0, 2), 0);
  ASSERT_EQ(Wr(IBV_WR_SEND, 3).Post(source.qp()), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()),
              ElementsAre(IBV_WC_SUCCESS, IBV_WC_SUCCESS));
  const std::vector<ibv_wc> received = target.Poll();
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].byte_len, 0u);
}

TEST_F(TransferTest, InlineDataIsTakenWhenPostedFromAnywhere) {
  cap.max_inline_data = 56;
  Start();
  uint8_t stack[32] = {9, 9, 9};
  ASSERT_EQ(Receive(1), 0);
  ASSERT_EQ(Wr(IBV_WR_SEND)
                .From(stack, sizeof(stack), 0)
                .Flags(IBV_SEND_INLINE | IBV_SEND_SIGNALED)
                .Post(source.qp()),
            0);
  std::memset(stack, 0, sizeof(stack));
  Drive();
  EXPECT_THAT(target.Poll(), SizeIs(1));
  EXPECT_EQ(to[0], 9);
}

TEST_F(TransferTest, FullSendQueueSaysEnomemAndNamesTheRest) {
  Start();
  const uint32_t depth = 16;
  std::vector<ibv_send_wr> wrs(depth + 2);
  for (size_t i = 0; i < wrs.size(); ++i) {
    wrs[i].opcode = IBV_WR_RDMA_WRITE;
    wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(source.qp(), wrs.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &wrs[depth]);
}

TEST_F(TransferTest, C05UnsignalledSlotsComeBackOnlyWithALaterSignalledOne) {
  Start();
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(Write(i, 8, 0, 0), 0);
  Drive();
  // All have been executed, and still the queue is full.
  EXPECT_THAT(source.Poll(), IsEmpty());
  EXPECT_EQ(Write(16, 8), ENOMEM);
}

TEST_F(TransferTest, SignalledCompletionFreesAllSlotsBeforeItWhenPolled) {
  Start();
  for (uint64_t i = 0; i < 15; ++i) ASSERT_EQ(Write(i, 8, 0, 0), 0);
  ASSERT_EQ(Write(15, 8), 0);
  Drive();
  EXPECT_EQ(Write(16, 8), ENOMEM);  // completed, but not polled
  EXPECT_THAT(source.Poll(), SizeIs(1));
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(Write(i, 8, 0, 0), 0);
  EXPECT_EQ(Write(17, 8), ENOMEM);
}

TEST_F(TransferTest, TooManyGatherEntriesOrTooMuchInlineIsRefused) {
  cap.max_inline_data = 40;
  Start("rxe,seed=1", "rxe,seed=1");
  Wr many(IBV_WR_SEND);
  std::vector<ibv_sge> sges(33);
  many.wr.sg_list = sges.data();
  many.wr.num_sge = 33;
  EXPECT_EQ(many.Post(source.qp()), EINVAL);
  EXPECT_EQ(Wr(IBV_WR_SEND)
                .From(from.data(), 41, 0)
                .Flags(IBV_SEND_INLINE)
                .Post(source.qp()),
            EINVAL);
}

TEST_F(TransferTest, C14LocalKeyIsNoRemoteKey) {
  Start();
  EXPECT_NE(target_mr->lkey, target_mr->rkey);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(from.data(), 8, source_mr->lkey)
                .To(to.data(), target_mr->lkey)
                .Post(source.qp()),
            0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(to[0], 0);
}

TEST_F(TransferTest, RemoteKeyOfZeroWorks) {
  Start("mlx5,seed=1", "mlx5,rkey-zero=on");
  EXPECT_EQ(target_mr->rkey, 0u);
  ASSERT_EQ(Write(1, 8), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_SUCCESS));
}

TEST_F(TransferTest, C29WriteOutsideARegionFailsBothEndsAndWritesNothing) {
  Start();
  ASSERT_EQ(Receive(1), 0);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE, 1)
                .From(from.data(), 16, source_mr->lkey)
                .To(to.data() + to.size() - 8, target_mr->rkey)
                .Post(source.qp()),
            0);
  ASSERT_EQ(Write(2, 8), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()),
              ElementsAre(IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(Statuses(target.Poll()), ElementsAre(IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(to[to.size() - 8], 0);
  EXPECT_EQ(to[0], 0);
  NonBlocking(target.id->verbs->async_fd);
  ibv_async_event event = {};
  ASSERT_EQ(target.verbs->GetAsyncEvent(target.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, target.qp());
  // Until it is acknowledged the queue pair can't go.
  EXPECT_EQ(target.verbs->DestroyQp(target.qp()), EBUSY);
  target.verbs->AckAsyncEvent(&event);
}

TEST_F(TransferTest, AddressesThatWrapAreOutsideEveryRegion) {
  Start();
  Wr write(IBV_WR_RDMA_WRITE);
  write.From(from.data(), 4096, source_mr->lkey);
  write.wr.wr.rdma.remote_addr = UINT64_MAX - 100;
  write.wr.wr.rdma.rkey = target_mr->rkey;
  ASSERT_EQ(write.Post(source.qp()), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
}

TEST_F(TransferTest, RegionWithoutTheRightOrOfAnotherDomainIsRefused) {
  Start();
  ibv_mr* read_only = target.Register(to.data(), 64, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(from.data(), 8, source_mr->lkey)
                .To(to.data(), read_only->rkey)
                .Post(source.qp()),
            0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
}

TEST_F(TransferTest, ControlQueuePairCannotReachMemoryOfAnotherDomain) {
  Start();
  ibv_pd* other = target.verbs->AllocPd(target.id->verbs);
  ibv_mr* guest = target.verbs->RegMr(other, to.data(), 64, kRemoteWrite);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(from.data(), 8, source_mr->lkey)
                .To(to.data(), guest->rkey)
                .Post(source.qp()),
            0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(target.verbs->DeallocPd(other), EBUSY);
  EXPECT_EQ(target.verbs->DeregMr(guest), 0);
  EXPECT_EQ(target.verbs->DeallocPd(other), 0);
}

TEST_F(TransferTest, WrongLocalKeyIsALocalProtectionError) {
  Start();
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(from.data(), 8, source_mr->rkey)
                .To(to.data(), target_mr->rkey)
                .Post(source.qp()),
            0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_LOC_PROT_ERR));
  EXPECT_EQ(source.qp()->state, IBV_QPS_ERR);
}

TEST_F(TransferTest, KeyOfADeregisteredRegionStaysDead) {
  Start();
  const uint32_t rkey = target_mr->rkey;
  ASSERT_EQ(target.verbs->DeregMr(target_mr), 0);
  target.mrs.clear();
  target_mr = target.Register(to.data(), to.size(), kRemoteWrite);
  EXPECT_NE(target_mr->rkey, rkey);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(from.data(), 8, source_mr->lkey)
                .To(to.data(), rkey)
                .Post(source.qp()),
            0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
}

TEST_F(TransferTest, C12MessageOverTheLimitIsALengthError) {
  Start("mlx5,max-msg-size=4K", "mlx5");
  ASSERT_EQ(Write(1, 4096), 0);
  ASSERT_EQ(Write(2, 4097), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()),
              ElementsAre(IBV_WC_SUCCESS, IBV_WC_LOC_LEN_ERR));
}

TEST_F(TransferTest, ReceiveThatIsTooSmallFailsBothEnds) {
  Start();
  ASSERT_EQ(Receive(1, 16), 0);
  ASSERT_EQ(Send(2, 17), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_REM_INV_REQ_ERR));
  EXPECT_THAT(Statuses(target.Poll()), ElementsAre(IBV_WC_LOC_LEN_ERR));
  EXPECT_EQ(target.qp()->state, IBV_QPS_ERR);
}

TEST_F(TransferTest, C09MissingReceiveWaitsForTheTimerAndThenGoesOn) {
  Start();
  ASSERT_EQ(Send(1, 8), 0);
  Drive();
  EXPECT_THAT(source.Poll(), IsEmpty());
  EXPECT_EQ(source.verbs->SeenMishaps().not_ready, 1u);
  ASSERT_EQ(Receive(2), 0);
  // min_rnr_timer 0 is 655.36 ms, however early the receive is there.
  DriveFor(655'359'999);
  EXPECT_THAT(source.Poll(), IsEmpty());
  DriveFor(1);
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_SUCCESS));
}

TEST_F(TransferTest, C09TimerThatWasSetIsShort) {
  Start();
  ibv_qp_attr attr = {};
  attr.min_rnr_timer = 1;  // 10 us
  ASSERT_EQ(target.verbs->ModifyQp(target.qp(), &attr, IBV_QP_MIN_RNR_TIMER),
            0);
  ASSERT_EQ(Send(1, 8), 0);
  Drive();
  ASSERT_EQ(Receive(2), 0);
  DriveFor(10'000);
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_SUCCESS));
}

TEST_F(TransferTest, ReceiverThatIsNeverReadyEndsTheRetries) {
  rnr_retry = 2;
  Start();
  ASSERT_EQ(Send(1, 8), 0);
  DriveFor(2 * 655'360'000ull - 1);
  EXPECT_THAT(source.Poll(), IsEmpty());
  DriveFor(1);
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR));
}

TEST_F(TransferTest, RnrRetrySevenIsForEver) {
  rnr_retry = 7;
  Start();
  ASSERT_EQ(Send(1, 8), 0);
  DriveFor(100'000'000'000);
  EXPECT_THAT(source.Poll(), IsEmpty());
  EXPECT_EQ(source.qp()->state, IBV_QPS_RTS);
}

TEST_F(TransferTest, WriteBehindAWaitingSendWaitsToo) {
  Start();
  ASSERT_EQ(Send(1, 8), 0);
  ASSERT_EQ(Write(2, 8, 4096), 0);
  Drive();
  EXPECT_EQ(to[4096], 0);
  ASSERT_EQ(Receive(3), 0);
  DriveFor(655'360'000);
  EXPECT_NE(to[4096], 0);
}

TEST_F(TransferTest, PeerWithoutItsQueuePairIsFoundOutByRetries) {
  retry_count = 2;
  Start();
  target.verbs->CmDestroyQp(target.id);
  ASSERT_EQ(Write(1, 8), 0);
  const uint64_t timeout = 4096ull << 14;
  DriveFor(3 * timeout - 1);
  EXPECT_THAT(source.Poll(), IsEmpty());
  DriveFor(1);
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

TEST_F(TransferTest, C07QueuePairMovedToErrorFlushesBothQueues) {
  Start();
  ASSERT_EQ(PostReceive(source.qp(), from.data(), 8, source_mr->lkey, 1), 0);
  ASSERT_EQ(Write(2, 8, 0, 0), 0);
  ASSERT_EQ(Write(3, 8), 0);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(source.verbs->ModifyQp(source.qp(), &attr, IBV_QP_STATE), 0);
  EXPECT_THAT(source.Poll(), IsEmpty());
  Drive();
  // Unsignalled ones show too when they end with an error.
  EXPECT_THAT(Statuses(source.Poll()),
              ElementsAre(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR,
                          IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(to[0], 0);
  // What is posted afterwards is flushed as well.
  ASSERT_EQ(Write(4, 8, 0, 0), 0);
  Drive();
  EXPECT_THAT(Statuses(source.Poll()), ElementsAre(IBV_WC_WR_FLUSH_ERR));
}

TEST_F(TransferTest, C04OverrunKillsTheQueueAndItsQueuePairs) {
  cqe = 4;
  Start();
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(Write(i, 8), 0);
  Drive();
  EXPECT_EQ(source.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(source.verbs->SeenMishaps().cq_overruns, 1u);
  NonBlocking(source.id->verbs->async_fd);
  ibv_async_event event = {};
  ASSERT_EQ(source.verbs->GetAsyncEvent(source.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, source.cq);
  source.verbs->AckAsyncEvent(&event);
  ASSERT_EQ(source.verbs->GetAsyncEvent(source.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  source.verbs->AckAsyncEvent(&event);
  EXPECT_EQ(source.verbs->GetAsyncEvent(source.id->verbs, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(TransferTest, ArmedQueueWakesOnceAndNotForWhatWasThere) {
  Start();
  ASSERT_EQ(Write(1, 8), 0);
  Drive();
  ASSERT_EQ(ibv_req_notify_cq(source.cq, 0), 0);
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  EXPECT_EQ(source.verbs->GetCqEvent(source.channel, &cq, &user), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(Write(2, 8), 0);
  ASSERT_EQ(Write(3, 8), 0);
  Drive();
  ASSERT_EQ(source.verbs->GetCqEvent(source.channel, &cq, &user), 0);
  EXPECT_EQ(cq, source.cq);
  EXPECT_EQ(user, &source);
  EXPECT_EQ(source.verbs->GetCqEvent(source.channel, &cq, &user), -1);
  EXPECT_EQ(source.verbs->DestroyCq(source.cq), EBUSY);
  source.verbs->AckCqEvents(cq, 1);
}

TEST_F(TransferTest, SolicitedArmingIgnoresOrdinaryMessages) {
  Start();
  ASSERT_EQ(Receive(1), 0);
  ASSERT_EQ(Receive(2), 0);
  ASSERT_EQ(ibv_req_notify_cq(target.cq, 1), 0);
  ASSERT_EQ(Send(1, 8), 0);
  Drive();
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  EXPECT_EQ(target.verbs->GetCqEvent(target.channel, &cq, &user), -1);
  ASSERT_EQ(Wr(IBV_WR_SEND).Flags(IBV_SEND_SOLICITED).Post(source.qp()), 0);
  Drive();
  ASSERT_EQ(target.verbs->GetCqEvent(target.channel, &cq, &user), 0);
  target.verbs->AckCqEvents(cq, 1);
}

TEST_F(TransferTest, ThroughputFollowsWhatIsInFlightAndTheLimit) {
  cap.max_send_wr = 32;
  Start("mlx5,wr-delay=50us,bandwidth=4000000000", "mlx5");
  // One in flight: a page each 50 us and its transfer. 32: the limit.
  for (const uint64_t in_flight : {1u, 4u, 32u}) {
    const uint64_t start = clock.now_ns;
    const uint64_t pages = 256;
    uint64_t posted = 0;
    uint64_t done = 0;
    while (done < pages) {
      while (posted < pages && posted - done < in_flight) {
        ASSERT_EQ(Write(posted++, 4096), 0);
      }
      Drive();
      const uint64_t before = done;
      done += source.Poll().size();
      if (done == before) clock.now_ns = source.verbs->NextDueNs();
    }
    const double took = static_cast<double>(clock.now_ns - start);
    const double rate = 256 * 4096 / took;  // bytes a ns
    const double by_delay = static_cast<double>(in_flight) * 4096 / 51'024;
    EXPECT_NEAR(rate, std::min(4.0, by_delay), 0.15 * rate) << in_flight;
  }
}

}  // namespace
}  // namespace mig::soft
