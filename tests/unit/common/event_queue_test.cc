// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/event_queue.h"

#include <array>

#include "gtest/gtest.h"

namespace mig {
namespace {

TEST(EventQueue, HandsOutInOrderWhatWasNotWithdrawn) {
  EventQueue queue;
  for (const uint32_t type :
       {MIG_EVENT_ROUND_DONE, MIG_EVENT_HANDOVER, MIG_EVENT_ERROR}) {
    struct mig_event event = {};
    event.type = type;
    queue.Push(event);
  }
  std::array<struct mig_event, 4> out;
  bool shown = false;
  ASSERT_EQ(queue.Take(out.data(), 1, sizeof(out[0]), &shown), 1u);
  EXPECT_EQ(out[0].type, uint32_t{MIG_EVENT_ROUND_DONE});
  queue.Withdraw(MIG_EVENT_HANDOVER);
  ASSERT_EQ(queue.Take(out.data(), 4, sizeof(out[0]), &shown), 1u);
  EXPECT_EQ(out[0].type, uint32_t{MIG_EVENT_ERROR});
  EXPECT_FALSE(shown);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace mig
