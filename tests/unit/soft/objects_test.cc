// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Devices, memory, queues: limits, references, and what creation answers.
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

// One device, opened by its user.
class ObjectsTest : public ::testing::Test {
 protected:
  void Open(const std::string& config) {
    auto made = MakeSoftVerbs(config, clock.host(), std::make_shared<Fabric>());
    ASSERT_TRUE(made.ok()) << made.status();
    verbs = *std::move(made);
    int count = 0;
    ibv_device** list = verbs->GetDeviceList(&count);
    ASSERT_GE(count, 1);
    context = verbs->OpenDevice(list[0]);
    verbs->FreeDeviceList(list);
    ASSERT_NE(context, nullptr);
    pd = verbs->AllocPd(context);
    cq = verbs->CreateCq(context, 16, nullptr, nullptr, 0);
  }
  ibv_qp* MakeQp(uint32_t inline_data, uint32_t depth = 16,
                 ibv_qp_cap* granted = nullptr) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {depth, 16, 1, 1, inline_data};
    errno = 0;
    ibv_qp* qp = verbs->CreateQp(pd, &attr);
    if (granted != nullptr) *granted = attr.cap;
    return qp;
  }
  ibv_qp* MakeQpEx(uint32_t comp_mask) {
    ibv_qp_init_attr_ex attr = {};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {16, 16, 1, 1, 0};
    attr.pd = pd;
    attr.comp_mask = comp_mask;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
    errno = 0;
    return verbs->CreateQpEx(context, &attr);
  }

  FakeHost clock;
  std::unique_ptr<SoftVerbs> verbs;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
};

TEST_F(ObjectsTest, C19HiddenDevicesAreNotListed) {
  Open("rxe,devices=3");
  int count = 0;
  ibv_device** list = verbs->GetDeviceList(&count);
  ASSERT_EQ(count, 3);
  EXPECT_STREQ(verbs->GetDeviceName(list[2]), "rxe2");
  EXPECT_EQ(list[3], nullptr);
  verbs->FreeDeviceList(list);
  auto hidden = MakeSoftVerbs("rxe,hidden=on", clock.host());
  ASSERT_TRUE(hidden.ok());
  list = (*hidden)->GetDeviceList(&count);
  EXPECT_EQ(count, 0);
  (*hidden)->FreeDeviceList(list);
}

TEST_F(ObjectsTest, QueriesTellTheLimits) {
  Open("rxe,max-msg-size=1M,odp=on");
  ibv_device_attr_ex attr = {};
  ASSERT_EQ(verbs->QueryDeviceEx(context, &attr), 0);
  EXPECT_EQ(attr.orig_attr.max_qp_wr, 1048576);
  EXPECT_EQ(attr.orig_attr.max_cqe, 32767);
  EXPECT_EQ(attr.orig_attr.max_sge, 32);
  EXPECT_NE(attr.odp_caps.general_caps & IBV_ODP_SUPPORT, 0u);
  ibv_port_attr port = {};
  ASSERT_EQ(verbs->QueryPort(context, 1, &port), 0);
  EXPECT_EQ(port.max_msg_sz, 1u << 20);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(verbs->QueryPort(context, 2, &port), EINVAL);
}

TEST_F(ObjectsTest, WhatIsInUseCannotBeDestroyed) {
  Open("mlx5");
  ibv_qp* qp = MakeQp(0);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(verbs->DestroyCq(cq), EBUSY);
  EXPECT_EQ(verbs->DeallocPd(pd), EBUSY);
  EXPECT_EQ(verbs->CloseDevice(context), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(verbs->LiveObjects(), "contexts=1 pds=1 cqs=1 qps=1");
  EXPECT_EQ(verbs->DestroyQp(qp), 0);
  EXPECT_EQ(verbs->DestroyCq(cq), 0);
  EXPECT_EQ(verbs->DeallocPd(pd), 0);
  EXPECT_EQ(verbs->CloseDevice(context), 0);
  EXPECT_EQ(verbs->LiveObjects(), "");
}

TEST_F(ObjectsTest, C11MemoryLockLimitCountsWholePages) {
  Open("mlx5,memlock=64K");
  static uint8_t memory[256 << 10];
  ibv_mr* most = verbs->RegMr(pd, memory, 48 << 10, 0);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(verbs->RegMr(pd, memory, 64 << 10, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(verbs->DeregMr(most), 0);
  EXPECT_EQ(verbs->RegMr(pd, memory, 256 << 10, 0), nullptr);
  EXPECT_NE(verbs->RegMr(pd, memory, 32 << 10, 0), nullptr);
}

TEST_F(ObjectsTest, PopulatesWhatItPinsWhereAsked) {
  constexpr size_t kPages = 4;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<std::byte*>(
      mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto resident = [memory, page] {
    std::array<unsigned char, kPages> in = {};
    EXPECT_EQ(mincore(memory, kPages * page, in.data()), 0);
    return std::count_if(in.begin(), in.end(),
                         [](unsigned char of) { return (of & 1) != 0; });
  };
  Open("rxe,populate=on,odp=on");
  ASSERT_NE(verbs->RegMr(pd, memory, page, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(resident(), 0);
  // From the last byte of one page to the first of the next but one.
  ASSERT_NE(verbs->RegMr(pd, memory + page - 1, page + 2,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
            nullptr);
  EXPECT_EQ(resident(), 3);
  ASSERT_EQ(munmap(memory + 3 * page, page), 0);
  EXPECT_EQ(verbs->RegMr(pd, memory, kPages * page,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
            nullptr);
  EXPECT_EQ(errno, EFAULT);
  munmap(memory, 3 * page);
}

TEST_F(ObjectsTest, RegistrationsHaveLimitsAndRules) {
  Open("mlx5,max-mr=2,max-mr-size=8K");
  static uint8_t memory[16 << 10];
  EXPECT_EQ(verbs->RegMr(pd, memory, (8 << 10) + 1, 0), nullptr);
  EXPECT_EQ(verbs->RegMr(pd, memory, 0, 0), nullptr);
  EXPECT_EQ(verbs->RegMr(pd, memory, 8, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs->RegMr(pd, memory, 8, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_NE(verbs->RegMr(pd, memory, 8, IBV_ACCESS_RELAXED_ORDERING), nullptr);
  EXPECT_NE(verbs->RegMr(pd, memory, 8, 0), nullptr);
  EXPECT_EQ(verbs->RegMr(pd, memory, 8, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(ObjectsTest, C01InlineLimitFailsWithTheErrnoThatWasAskedFor) {
  Open("mlx5,max-inline=40,inline-errno=ENOSPC");
  EXPECT_EQ(MakeQp(41), nullptr);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_NE(MakeQp(40), nullptr);
}

TEST_F(ObjectsTest, C02GrantsMayDifferFromWhatWasAsked) {
  ibv_qp_cap granted = {};
  Open("mlx5,inline-grant=none");
  EXPECT_NE(MakeQp(56, 16, &granted), nullptr);
  EXPECT_EQ(granted.max_inline_data, 0u);
  Open("mlx5,inline-grant=half");
  EXPECT_NE(MakeQp(56, 16, &granted), nullptr);
  EXPECT_EQ(granted.max_inline_data, 28u);
  Open("mlx5,inline-grant=more");
  EXPECT_NE(MakeQp(56, 16, &granted), nullptr);
  EXPECT_GT(granted.max_inline_data, 56u);
}

TEST_F(ObjectsTest, C03DepthTimesRequestOverTheLimitIsEnomem) {
  Open("mlx5,max-queue-bytes=64K");
  EXPECT_EQ(MakeQp(0, 512), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_NE(MakeQp(0, 256), nullptr);
}

TEST_F(ObjectsTest, ExtendedCreationIsWhereTheModelHasIt) {
  constexpr uint32_t kMask =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  Open("mlx5");
  EXPECT_NE(MakeQpEx(kMask), nullptr);
  EXPECT_EQ(MakeQpEx(kMask | IBV_QP_INIT_ATTR_CREATE_FLAGS), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  Open("mlx5,create-ex=off");
  EXPECT_EQ(MakeQpEx(kMask), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_NE(MakeQpEx(IBV_QP_INIT_ATTR_PD), nullptr);
  Open("mlx4");
  EXPECT_EQ(MakeQpEx(kMask), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// As siw on Linux 6.1 does: who makes the queue pair does not matter, only who
// connects it.
TEST_F(ObjectsTest, IwarpQueuePairsAreConnectedByRdmaCmAlone) {
  Open("siw");
  EXPECT_EQ(MakeQpEx(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
            nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_qp* const qp = MakeQp(0);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_EQ(verbs->ModifyQp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  EXPECT_EQ(
      verbs->ModifyQp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                          IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
      EINVAL);
}

TEST_F(ObjectsTest, QueuePairIsConnectedByHandThroughItsStates) {
  Open("mlx5");
  ibv_qp* one = MakeQp(0);
  ibv_qp* two = MakeQp(0);
  Wr send(IBV_WR_SEND, 1);
  EXPECT_EQ(send.Post(one), EINVAL);
  for (ibv_qp* qp : {one, two}) {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(verbs->ModifyQp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(verbs->ModifyQp(qp, &attr, IBV_QP_STATE), EINVAL);
    ASSERT_EQ(verbs->ModifyQp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                  IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = (qp == one ? two : one)->qp_num;
    ASSERT_EQ(
        verbs->ModifyQp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
        0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    ASSERT_EQ(verbs->ModifyQp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  ASSERT_EQ(PostReceive(two, nullptr, 0, 0, 2), 0);
  ASSERT_EQ(send.Post(one), 0);
  verbs->Drive();
  ibv_wc wc[4];
  EXPECT_EQ(ibv_poll_cq(cq, 4, wc), 2);
}

TEST_F(ObjectsTest, DescriptorsArePollable) {
  Open("mlx5,faults=port-down @100");
  pollfd poller = {context->async_fd, POLLIN, 0};
  EXPECT_EQ(poll(&poller, 1, 0), 0);
  clock.now_ns += 100;
  verbs->Drive();
  EXPECT_EQ(poll(&poller, 1, 0), 1);
  ibv_async_event event = {};
  ASSERT_EQ(verbs->GetAsyncEvent(context, &event), 0);
  EXPECT_STREQ(verbs->EventTypeText(event.event_type), "port down");
  verbs->AckAsyncEvent(&event);
  EXPECT_EQ(poll(&poller, 1, 0), 0);
}

TEST_F(ObjectsTest, OtherProcessesNeedARealClock) {
  const auto made = MakeSoftVerbs("mlx5,other-processes=on", clock.host());
  EXPECT_FALSE(made.ok());
}

TEST_F(ObjectsTest, DestroyedDeviceFreesWhatItsUserLeft) {
  Open("mlx5");
  ASSERT_NE(MakeQp(0), nullptr);
  verbs.reset();  // under asan nothing is left, and nothing freed twice
}

}  // namespace
}  // namespace mig::soft
