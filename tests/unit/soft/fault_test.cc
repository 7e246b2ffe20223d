// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the schedule asks for is what happens.
#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FaultTest : public SoftPair {
 protected:
  void Start(const std::string& faults,
             const std::string& target_config = "mlx5,seed=1") {
    Connect("mlx5,seed=1,faults=" + faults, target_config);
  }
  // Zero-length writes: they need no memory.
  int Post(uint64_t id) { return Wr(IBV_WR_RDMA_WRITE, id).Post(source.qp()); }
  std::vector<int> Statuses() {
    std::vector<int> statuses;
    for (const ibv_wc& wc : source.Poll()) statuses.push_back(wc.status);
    return statuses;
  }
  ibv_event_type NextAsync(End* end) {
    NonBlocking(end->id->verbs->async_fd);
    ibv_async_event event = {};
    if (end->verbs->GetAsyncEvent(end->id->verbs, &event) != 0) {
      return IBV_EVENT_WQ_FATAL;  // which never comes
    }
    end->verbs->AckAsyncEvent(&event);
    return event.event_type;
  }
};

TEST_F(FaultTest, ColdCallsFailInTheirOwnWay) {
  Start(
      "call RegMr 2 ENOSPC;call QueryPort 1 EIO;call QueryPort 2 EIO"
      " minus-one;call CmCreateId 2 EMFILE");
  uint8_t byte = 0;
  ASSERT_NE(source.Register(&byte, 1, 0), nullptr);
  EXPECT_EQ(source.Register(&byte, 1, 0), nullptr);
  EXPECT_EQ(errno, ENOSPC);
  ibv_port_attr port = {};
  EXPECT_EQ(source.verbs->QueryPort(source.id->verbs, 1, &port), EIO);
  errno = 0;
  EXPECT_EQ(source.verbs->QueryPort(source.id->verbs, 1, &port), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(source.verbs->QueryPort(source.id->verbs, 1, &port), 0);
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(source.verbs->CmCreateId(source.events, &id, nullptr, RDMA_PS_TCP),
            -1);
  EXPECT_EQ(errno, EMFILE);
}

TEST_F(FaultTest, PostStopsPartWayAndWhatCameBeforeGoesOn) {
  Start("post 2 ENOMEM;post 4 EIO minus-one");
  Wr first(IBV_WR_RDMA_WRITE, 1);
  Wr second(IBV_WR_RDMA_WRITE, 2);
  first.wr.next = &second.wr;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(source.qp(), &first.wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &second.wr);
  EXPECT_EQ(Post(3), 0);
  EXPECT_EQ(Post(4), -1);
  EXPECT_EQ(errno, EIO);
  Drive();
  const std::vector<ibv_wc> done = source.Poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 1u);
  EXPECT_EQ(done[1].wr_id, 3u);
}

TEST_F(FaultTest, C06CompletionWithErrorAtEveryPlaceFlushesTheRest) {
  for (int k = 1; k <= 4; ++k) {
    SoftPair::TearDown();
    source = End();
    target = End();
    listener = nullptr;
    Start("wc " + std::to_string(k) + " REM_OP_ERR");
    for (uint64_t i = 1; i <= 4; ++i) ASSERT_EQ(Post(i), 0);
    Drive();
    const std::vector<ibv_wc> done = source.Poll();
    ASSERT_EQ(done.size(), 4u);
    for (int i = 1; i <= 4; ++i) {
      const ibv_wc& wc = done[static_cast<size_t>(i - 1)];
      EXPECT_EQ(wc.wr_id, static_cast<uint64_t>(i));
      EXPECT_EQ(wc.status, i < k    ? IBV_WC_SUCCESS
                           : i == k ? IBV_WC_REM_OP_ERR
                                    : IBV_WC_WR_FLUSH_ERR);
    }
  }
}

TEST_F(FaultTest, C24DelayedCompletionHoldsUpThoseBehindIt) {
  Start("delay 2 5000;hold 3 9000");
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(Post(i), 0);
  Drive();
  EXPECT_EQ(source.Poll().size(), 1u);
  DriveFor(4999);
  EXPECT_THAT(source.Poll(), IsEmpty());
  DriveFor(1);
  EXPECT_EQ(source.Poll().size(), 1u);
  DriveFor(4000);
  EXPECT_EQ(source.Poll().size(), 1u);
}

TEST_F(FaultTest, C08DroppedPacketsAreSentAgainOrEndTheConnection) {
  retry_count = 2;
  Start("drop 1 2;drop 2");
  const uint64_t timeout = 4096ull << 14;
  ASSERT_EQ(Post(1), 0);
  DriveFor(2 * timeout - 1);
  EXPECT_THAT(Statuses(), IsEmpty());
  DriveFor(1);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS));
  ASSERT_EQ(Post(2), 0);
  DriveFor(3 * timeout);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

TEST_F(FaultTest, C08SilentDeviceIsFoundOutAndAShortSilenceIsNot) {
  retry_count = 2;
  Start("stop 9 1", "mlx5,faults=stop @1000 100000000;stop @900000000 0");
  clock.now_ns += 1000;
  ASSERT_EQ(Post(1), 0);
  const uint64_t timeout = 4096ull << 14;
  DriveFor(3 * timeout);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS));
  DriveFor(1'000'000'000);
  ASSERT_EQ(Post(2), 0);
  DriveFor(3 * timeout - 1);
  EXPECT_THAT(Statuses(), IsEmpty());
  DriveFor(1);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

TEST_F(FaultTest, BrokenConnectionFailsBothEndsAndTellsThem) {
  Start("disconnect 2");
  ASSERT_EQ(PostReceive(target.qp(), nullptr, 0, 0, 7), 0);
  ASSERT_EQ(Post(1), 0);
  ASSERT_EQ(Post(2), 0);
  Drive();
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR));
  const std::vector<ibv_wc> flushed = target.Poll();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(FaultTest, C20DeadDeviceFlushesAndTheNextConnectionWorks) {
  Start("removal 2");
  ASSERT_EQ(Post(1), 0);
  ASSERT_EQ(Post(2), 0);
  Drive();
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(NextAsync(&source), IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DEVICE_REMOVAL);
  EXPECT_EQ(Post(3), EIO);
  EXPECT_EQ(source.verbs->AllocPd(source.id->verbs), nullptr);
  EXPECT_EQ(errno, EIO);
  source.Close();
  target.Close();
  ASSERT_EQ(target.verbs->CmDestroyId(listener), 0);
  Connect();
  ASSERT_EQ(Post(4), 0);
  Drive();
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS));
}

TEST_F(FaultTest, DeviceFatalAtATimeNeedsNoWorkRequest) {
  Start("fatal @5000");
  EXPECT_EQ(source.verbs->NextDueNs(), clock.now_ns + 5000);
  DriveFor(5000);
  EXPECT_EQ(NextAsync(&source), IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(source.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(target.qp()->state, IBV_QPS_RTS);
}

TEST_F(FaultTest, PortThatGoesDownAndComesBackIsTold) {
  retry_count = 0;
  Start("port-down @10;port-up @20;port-down @30");
  DriveFor(10);
  EXPECT_EQ(NextAsync(&source), IBV_EVENT_PORT_ERR);
  ibv_port_attr port = {};
  ASSERT_EQ(source.verbs->QueryPort(source.id->verbs, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  DriveFor(10);
  EXPECT_EQ(NextAsync(&source), IBV_EVENT_PORT_ACTIVE);
  ASSERT_EQ(Post(1), 0);
  Drive();
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_SUCCESS));
  DriveFor(10);
  ASSERT_EQ(Post(2), 0);
  DriveFor(4096ull << 14);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

TEST_F(FaultTest, FatalQueuePairIsAnEventOfItsOwn) {
  Start("qp-fatal 1");
  ASSERT_EQ(Post(1), 0);
  Drive();
  EXPECT_EQ(NextAsync(&source), IBV_EVENT_QP_FATAL);
  EXPECT_THAT(Statuses(), ElementsAre(IBV_WC_WR_FLUSH_ERR));
}

}  // namespace
}  // namespace mig::soft
