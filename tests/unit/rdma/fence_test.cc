// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/fence.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/error.h"
#include "fake_device.h"
#include "gtest/gtest.h"
#include "rdma/wr_id.h"

namespace mig::rdma {
namespace {

// C23
TEST(Fence, HasFixedWidthsInNetworkOrder) {
  std::array<uint8_t, kFenceSize> bytes;
  EncodeFence({0x0102, 0x0304, 0x0506070809000102, 0x1112131415161718,
               0x2122232425262728},
              bytes);
  const std::array<uint8_t, kFenceSize> golden = {
      'M',  'F',  'N',  'C',  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
      0x08, 0x09, 0x00, 0x01, 0x02, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
      0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
  EXPECT_EQ(bytes, golden);
  const auto fence = DecodeFence(bytes);
  ASSERT_TRUE(fence.ok());
  EXPECT_EQ(fence->queue, 0x0102);
  EXPECT_EQ(fence->bytes, 0x2122232425262728u);
}

class FenceReceiverTest : public ::testing::Test {
 protected:
  void Open(size_t queues) {
    receiver = std::make_unique<FenceReceiver>(&device, queues);
    for (size_t i = 0; i < queues; ++i) {
      qps.push_back(device.MakeQp(4));
      ASSERT_TRUE(
          receiver->PostReceives(static_cast<uint16_t>(i), &qps[i]->qp).ok());
    }
  }
  // The bytes land in the oldest receive of that queue pair.
  absl::Status Arrive(size_t queue, std::span<const uint8_t> bytes) {
    FakeQp* const qp = qps[queue];
    if (qp->receives.empty()) {
      ADD_FAILURE() << "no receive posted";
      return absl::OkStatus();
    }
    std::memcpy(At(qp->receive_sges.front().addr), bytes.data(), bytes.size());
    ibv_wc wc = {};
    wc.wr_id = qp->receives.front().wr_id;
    wc.byte_len = static_cast<uint32_t>(bytes.size());
    qp->receives.erase(qp->receives.begin());
    qp->receive_sges.erase(qp->receive_sges.begin());
    EXPECT_TRUE(WrIdIs(wc.wr_id, WrKind::kFenceReceive));
    return receiver->OnCompletion(wc);
  }
  absl::Status Arrive(size_t queue, const Fence& fence) {
    std::array<uint8_t, kFenceSize> bytes;
    EncodeFence(fence, bytes);
    return Arrive(queue, bytes);
  }

  FakeDevice device;
  std::unique_ptr<FenceReceiver> receiver;
  std::vector<FakeQp*> qps;
};

// C24
TEST_F(FenceReceiverTest, ARoundIsWholeOnlyWithTheFencesOfAllQueuePairs) {
  Open(8);
  for (uint64_t round = 1; round <= 5; ++round) {
    EXPECT_EQ(receiver->round(), round);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_FALSE(receiver->Whole());
      const auto queue = static_cast<uint16_t>((i * 5 + round) % 8);
      ASSERT_TRUE(Arrive(queue, {queue, 8, round, 3, 100 + i}).ok());
    }
    EXPECT_TRUE(receiver->Whole());
    EXPECT_EQ(receiver->writes(), 24u);
    EXPECT_EQ(receiver->bytes(), 828u);
    receiver->Next();
  }
  // Posted again each time.
  for (const FakeQp* qp : qps) {
    EXPECT_EQ(qp->receives.size(), FenceReceiver::kReceives);
  }
}

// C29 (H6)
TEST_F(FenceReceiverTest, RefusesWhatIsNotDue) {
  Open(2);
  EXPECT_EQ(ErrorCode(Arrive(0, Fence{0, 2, 2, 0, 0})), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(ErrorCode(Arrive(1, Fence{0, 2, 1, 0, 0})), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(ErrorCode(Arrive(0, Fence{0, 3, 1, 0, 0})), MIG_E_PEER_PROTOCOL);
  ibv_wc wc = {};
  wc.wr_id = MakeWrId(WrKind::kFenceReceive, 2, 0);
  EXPECT_EQ(ErrorCode(receiver->OnCompletion(wc)), MIG_E_DEVICE);
}

TEST_F(FenceReceiverTest, RefusesASecondFenceOfARound) {
  Open(2);
  ASSERT_TRUE(Arrive(0, Fence{0, 2, 1, 0, 0}).ok());
  EXPECT_EQ(ErrorCode(Arrive(0, Fence{0, 2, 1, 0, 0})), MIG_E_PEER_PROTOCOL);
  EXPECT_FALSE(receiver->Whole());
}

TEST_F(FenceReceiverTest, RefusesOtherLengthsAndBytes) {
  Open(1);
  std::array<uint8_t, kFenceSize> bytes;
  EncodeFence({0, 1, 1, 0, 0}, bytes);
  EXPECT_EQ(ErrorCode(Arrive(0, std::span(bytes).first(31))),
            MIG_E_PEER_PROTOCOL);
  bytes[0] ^= 1;
  EXPECT_EQ(ErrorCode(Arrive(0, bytes)), MIG_E_PEER_PROTOCOL);
}

// C06
TEST_F(FenceReceiverTest, AFailedReceiveIsAnError) {
  Open(1);
  ibv_wc wc = {};
  wc.wr_id = MakeWrId(WrKind::kFenceReceive, 0, 0);
  wc.status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_EQ(ErrorCode(receiver->OnCompletion(wc)), MIG_E_PEER_LOST);
}

TEST(FenceSlots, ARegistrationThatFailsSaysWhatToDo) {
  FakeDevice device;
  device.fail_reg_at = 0;
  device.fail_reg_errno = ENOMEM;
  const auto slots = FenceSlots::Create(&device, device.pd(), 0);
  EXPECT_EQ(ErrorCode(slots.status()), MIG_E_MEMORY);
  EXPECT_EQ(ErrorErrno(slots.status()), ENOMEM);
}

TEST(FenceSlots, AreDeregisteredInTheEnd) {
  FakeDevice device;
  { ASSERT_TRUE(FenceSlots::Create(&device, device.pd(), 0).ok()); }
  EXPECT_EQ(device.LiveMrs(), 0u);
}

}  // namespace
}  // namespace mig::rdma
