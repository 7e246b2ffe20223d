// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/message_flow.h"

#include <array>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kWindow = 4096;

TEST(MessageFlow, PiecesAreRefusedWhenNullOrTooLong) {
  MessageFlow flow(kWindow);
  flow.Open(kWindow, 10);
  const std::array<struct mig_iov, 2> fits = {{{"abcde", 5}, {"fghij", 5}}};
  const auto pieces = flow.Pieces(fits.data(), 2, sizeof(struct mig_iov));
  ASSERT_TRUE(pieces.ok());
  EXPECT_EQ(pieces->size(), 2u);
  for (const struct mig_iov &bad :
       {mig_iov{nullptr, 1}, mig_iov{"x", 11}, mig_iov{"x", UINT64_MAX}}) {
    EXPECT_EQ(ErrorCode(flow.Pieces(&bad, 1, sizeof(struct mig_iov)).status()),
              MIG_E_ARGUMENT);
  }
}

TEST(MessageFlow, Rule11_4_CreditRunsOutAndComesBack) {
  MessageFlow flow(kWindow);
  flow.Open(2 * MessageCharge(100), 100);
  EXPECT_TRUE(flow.TakeCredit(100));
  EXPECT_TRUE(flow.TakeCredit(100));
  EXPECT_FALSE(flow.SendReadyDue()) << "nobody waits";
  EXPECT_FALSE(flow.TakeCredit(100));
  EXPECT_FALSE(flow.SendReadyDue());
  ASSERT_TRUE(flow.OnCredit(MessageCharge(100)).ok());
  EXPECT_TRUE(flow.SendReadyDue());
  flow.StopWaiting();
  EXPECT_FALSE(flow.SendReadyDue());
  const absl::Status more = flow.OnCredit(10 * MessageCharge(100));
  EXPECT_EQ(ErrorCode(more), MIG_E_PEER_PROTOCOL);
  EXPECT_THAT(std::string(more.message()), HasSubstr("are under way"));
}

TEST(MessageFlow, Rule11_6_WhatIsNotReleasedWithholdsCredit) {
  MessageFlow flow(kWindow);
  ASSERT_TRUE(flow.OnMessage(3000).ok());
  EXPECT_EQ(ErrorCode(flow.OnMessage(3000)), MIG_E_PEER_PROTOCOL);
  const struct mig_event event = flow.Keep(7, std::vector<uint8_t>(3000, 0x5a));
  EXPECT_EQ(event.type, uint32_t{MIG_EVENT_MESSAGE});
  EXPECT_EQ(event.message_type, 7u);
  ASSERT_EQ(event.length, 3000u);
  EXPECT_EQ(static_cast<const uint8_t *>(event.data)[2999], 0x5a);
  EXPECT_FALSE(flow.CreditDue());
  EXPECT_TRUE(flow.Release(event.message));
  EXPECT_FALSE(flow.Release(event.message)) << "twice";
  EXPECT_TRUE(flow.CreditDue());
  EXPECT_EQ(flow.GiveCredit(), MessageCharge(3000));
  EXPECT_FALSE(flow.CreditDue());
  EXPECT_TRUE(flow.OnMessage(3000).ok());
}

}  // namespace
}  // namespace mig
