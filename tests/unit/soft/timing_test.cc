// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The fabric model: when things happen, to the nanosecond.
#include "soft-verbs/timing.h"

#include <sys/mman.h>

#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

using testing::SizeIs;

constexpr uint64_t kPage = 4096;
constexpr size_t kBytes = size_t{1} << 20;

class TimingTest : public SoftPair {
 protected:
  void Start(const std::string& source_config) {
    Connect(source_config, "mlx5,landing=none,latency=1us");
    if (HasFatalFailure()) return;
    memory_.assign(kBytes, std::byte{1});
    from_ = source.Register(memory_.data(), kBytes, 0);
    to_ = target.Register(memory_.data(), kBytes,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(from_, nullptr);
    ASSERT_NE(to_, nullptr);
    start_ns_ = clock.now_ns;
  }
  int Write(size_t bytes, unsigned int flags = IBV_SEND_SIGNALED) {
    return Wr(IBV_WR_RDMA_WRITE)
        .From(memory_.data(), bytes, from_->lkey)
        .To(memory_.data(), to_->rkey)
        .Flags(flags)
        .Post(source.qp());
  }
  int Send(size_t bytes, unsigned int flags = IBV_SEND_SIGNALED) {
    return Wr(IBV_WR_SEND)
        .From(memory_.data(), bytes, from_->lkey)
        .Flags(flags)
        .Post(source.qp());
  }
  int Receive() {
    return PostReceive(target.qp(), memory_.data(), kBytes, to_->lkey, 1);
  }
  // When `end` has its next completion, from the start on; UINT64_MAX: never.
  uint64_t CompletionNs(End* end) {
    for (;;) {
      Drive();
      if (!end->Poll().empty()) return clock.now_ns - start_ns_;
      const uint64_t due = source.verbs->NextDueNs();
      if (due == UINT64_MAX) return due;
      clock.now_ns = due;
    }
  }

  std::vector<std::byte> memory_;
  ibv_mr* from_ = nullptr;
  ibv_mr* to_ = nullptr;
  uint64_t start_ns_ = 0;
};

TEST_F(TimingTest, AWriteTakesItsTransferAndALatencyEachWay) {
  Start("mlx5,landing=none,latency=1us,bandwidth=1000000000,wr-cost=10ns");
  ASSERT_EQ(Write(5000), 0);
  EXPECT_EQ(CompletionNs(&source), 5000u + 10 + 1000 + 1000);
}

TEST_F(TimingTest, AMessageIsThereOneLatencyAfterItsTransfer) {
  Start("mlx5,landing=none,latency=1us,bandwidth=1000000000");
  ASSERT_EQ(Receive(), 0);
  ASSERT_EQ(Send(300), 0);
  EXPECT_EQ(CompletionNs(&target), 300u + 1000);
  EXPECT_EQ(CompletionNs(&source), 300u + 1000 + 1000);
}

TEST_F(TimingTest, LargeMessagesFollowEachOther) {
  Start("mlx5,landing=none,latency=1us,bandwidth=1000000000");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Write(100'000), 0);
  for (const uint64_t end : {100'000u, 200'000u, 300'000u}) {
    EXPECT_EQ(CompletionNs(&source), end + 2000);
  }
}

// Else each of a batch would wake whoever waits for the last.
TEST_F(TimingTest, UnsignalledWritesAreDueWithTheSignalledOneBehindThem) {
  Start("mlx5,landing=none,latency=1us,bandwidth=1000000000");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Write(100'000, 0), 0);
  ASSERT_EQ(Write(100'000), 0);
  Drive();
  EXPECT_EQ(source.verbs->NextDueNs(), start_ns_ + 400'000 + 1000);
}

TEST_F(TimingTest, DoorbellsAndPostingDelayWhatIsPosted) {
  Start("mlx5,landing=none,latency=1us,doorbell-cost=500ns,post-cost=60ns");
  ASSERT_EQ(Write(8), 0);
  ASSERT_EQ(Write(8), 0);
  EXPECT_EQ(CompletionNs(&source), 560u + 2000);
  EXPECT_EQ(CompletionNs(&source), 1120u + 2000);
}

TEST_F(TimingTest, PollingDelaysWhatIsPostedNext) {
  Start("mlx5,landing=none,latency=1us,poll-cost=200ns");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Write(8), 0);
  DriveFor(2000);
  ASSERT_THAT(source.Poll(), SizeIs(4));
  ASSERT_EQ(Write(8), 0);
  EXPECT_EQ(CompletionNs(&source), 2000u + 800 + 2000);
}

TEST_F(TimingTest, WhoSleepsForACompletionWakesLate) {
  Start("mlx5,landing=none,latency=1us,wake-cost=8us");
  ASSERT_EQ(ibv_req_notify_cq(source.cq, 0), 0);
  ASSERT_EQ(Write(8), 0);
  ASSERT_EQ(CompletionNs(&source), 2000u);
  ASSERT_EQ(Write(8), 0);
  EXPECT_EQ(CompletionNs(&source), 2000u + 8000 + 2000);
  // It was not armed again.
  ASSERT_EQ(Write(8), 0);
  EXPECT_EQ(CompletionNs(&source), 12'000u + 2000);
}

TEST_F(TimingTest, AnInlinePayloadIsNotFetched) {
  cap.max_inline_data = 64;
  Start("mlx5,landing=none,latency=1us,fetch-cost=300ns");
  ASSERT_EQ(Receive(), 0);
  ASSERT_EQ(Receive(), 0);
  ASSERT_EQ(Send(40, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
  EXPECT_EQ(CompletionNs(&target), 1000u);
  DriveFor(9000);
  ASSERT_THAT(source.Poll(), SizeIs(1));
  ASSERT_EQ(Send(40), 0);
  EXPECT_EQ(CompletionNs(&target), 10'000u + 1300);
}

TEST_F(TimingTest, ARegistrationTakesTimeByItsPages) {
  Start(
      "mlx5,register-cost=8us,pin-page-cost=100ns,fault-page-cost=400ns,"
      "register-threads=4");
  EXPECT_EQ(source.verbs->RegistrationNs(10 * kPage, 0), (8000u + 1000) / 4);
  EXPECT_EQ(source.verbs->RegistrationNs(10 * kPage, IBV_ACCESS_LOCAL_WRITE),
            (8000u + 5000) / 4);
  EXPECT_EQ(source.verbs->RegistrationNs(10 * kPage, IBV_ACCESS_ON_DEMAND), 0u);
}

TEST_F(TimingTest, NoLandingTouchesNoGuestMemory) {
  Start("mlx5,landing=none");
  void* const nothing =
      mmap(nullptr, kBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  from_ = source.Register(nothing, kBytes, 0);
  to_ = target.Register(nothing, kBytes,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(nothing, kBytes, from_->lkey)
                .To(nothing, to_->rkey)
                .Post(source.qp()),
            0);
  Drive();
  ASSERT_THAT(source.Poll(), SizeIs(1));
  // Bounds hold all the same.
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(nothing, kBytes, from_->lkey)
                .To(static_cast<std::byte*>(nothing) + 1, to_->rkey)
                .Post(source.qp()),
            0);
  Drive();
  const std::vector<ibv_wc> refused = source.Poll();
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(munmap(nothing, kBytes), 0);
}

// A device takes turns between its queue pairs.
TEST_F(TimingTest, AShortMessageOfAnIdleQueuePairWaitsForNoOther) {
  const Config config = *ParseConfig("mlx5,latency=1us,bandwidth=1000000000");
  Fabric fabric;
  Node node(config, clock.host(), &fabric, 1);
  Qp bulk;
  Qp control;
  bulk.device = control.device = node.devices[0].get();
  EXPECT_EQ(AdmitToPort(&bulk, 1'000'000, false) - clock.now_ns, 1'001'000u);
  EXPECT_EQ(AdmitToPort(&control, 100, false) - clock.now_ns, 1'100u);
  // It took its share of the port.
  ++bulk.posted;
  EXPECT_EQ(AdmitToPort(&bulk, 100, false) - clock.now_ns, 1'001'200u);
  // Behind its own it waits.
  ++control.posted;
  EXPECT_EQ(AdmitToPort(&control, 100, false) - clock.now_ns, 1'001'300u);
}

}  // namespace
}  // namespace mig::soft
