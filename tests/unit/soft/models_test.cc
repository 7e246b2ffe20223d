// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What each model grants, and what its send queue takes.
#include "soft-verbs/models.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace mig::soft {
namespace {

constexpr uint64_t kOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;

// Asks for caps; 0 or the errno, with what was granted in *cap.
int Ask(const char* name, bool extended, ibv_qp_cap* cap) {
  const Model* model = FindModel(name);
  CapsRequest request = {*cap, extended, extended ? kOps : 0};
  const int error = GrantCaps(*model, model->limits, &request);
  *cap = request.cap;
  return error;
}

int AskInline(const char* name, uint32_t inline_data, uint32_t* granted,
              uint32_t sge = 1) {
  ibv_qp_cap cap = {64, 64, sge, 1, inline_data};
  const int error = Ask(name, false, &cap);
  *granted = cap.max_inline_data;
  return error;
}

uint64_t Mlx5Bytes(bool extended, uint32_t depth, uint32_t sge,
                   uint32_t inline_data) {
  ibv_qp_cap cap = {depth, 16, sge, 1, inline_data};
  EXPECT_EQ(Ask("mlx5", extended, &cap), 0);
  EXPECT_GE(cap.max_send_wr, depth);
  EXPECT_GE(cap.max_inline_data, inline_data);
  return SendQueueBytes(*FindModel("mlx5"), cap, extended);
}

TEST(ModelsTest, Mlx5SendQueuesAreThoseOfTheDesignsTable) {
  EXPECT_EQ(Mlx5Bytes(false, 512, 1, 0), 128u << 10);
  EXPECT_EQ(Mlx5Bytes(false, 512, 1, 512), 512u << 10);
  EXPECT_EQ(Mlx5Bytes(true, 512, 1, 0), 32u << 10);
  EXPECT_EQ(Mlx5Bytes(true, 32, 2, 56), 4u << 10);
}

TEST(ModelsTest, Mlx5RefusesDescriptorsOver1024Bytes) {
  uint32_t granted = 0;
  EXPECT_EQ(AskInline("mlx5", 828, &granted), 0);
  EXPECT_EQ(granted, 828u);
  EXPECT_EQ(AskInline("mlx5", 829, &granted), EINVAL);
  ibv_qp_cap cap = {64, 64, 1, 1, 988};
  EXPECT_EQ(Ask("mlx5", true, &cap), 0);
  cap = {64, 64, 1, 1, 989};
  EXPECT_EQ(Ask("mlx5", true, &cap), EINVAL);
}

TEST(ModelsTest, Mlx4RefusesOverItsDescriptorAndGrantsWhatIsLeft) {
  uint32_t granted = 0;
  EXPECT_EQ(AskInline("mlx4", 1025, &granted), EINVAL);
  ASSERT_EQ(AskInline("mlx4", 100, &granted), 0);
  // A descriptor of 256: 224 for data, less 4 a block of 64.
  EXPECT_EQ(granted, 208u);
  ibv_qp_cap cap = {64, 64, 1, 1, 0};
  ASSERT_EQ(Ask("mlx4", false, &cap), 0);
  EXPECT_EQ(cap.max_send_wr, 128u - 33u);  // the read-ahead stays free
  EXPECT_EQ(SendQueueBytes(*FindModel("mlx4"), cap, false), 128u * 64);
}

TEST(ModelsTest, C01IrdmaTakesUpTo101Inline) {
  uint32_t granted = 0;
  EXPECT_EQ(AskInline("irdma", 101, &granted), 0);
  EXPECT_EQ(granted, 101u);
  EXPECT_EQ(AskInline("irdma", 102, &granted), EINVAL);
  const ibv_qp_cap cap = {64, 64, 1, 1, 101};
  EXPECT_EQ(SendQueueBytes(*FindModel("irdma"), cap, false), 1024u * 32);
}

TEST(ModelsTest, C02RxeGrantsTheLargerOfGatherAndInline) {
  uint32_t granted = 0;
  EXPECT_EQ(AskInline("rxe", 0, &granted, 2), 0);
  EXPECT_EQ(granted, 32u);
  EXPECT_EQ(AskInline("rxe", 512, &granted), 0);
  EXPECT_EQ(granted, 512u);
  EXPECT_EQ(AskInline("rxe", 513, &granted), EINVAL);
  ibv_qp_cap cap = {64, 64, 1, 1, 100};
  ASSERT_EQ(Ask("rxe", false, &cap), 0);
  EXPECT_EQ(cap.max_send_sge, 6u);
  EXPECT_EQ(FindModel("rxe")->limits.max_msg_size, 8u << 20);
}

TEST(ModelsTest, SiwGrantsAsAskedUpTo80) {
  uint32_t granted = 0;
  EXPECT_EQ(AskInline("siw", 33, &granted), 0);
  EXPECT_EQ(granted, 33u);
  EXPECT_EQ(AskInline("siw", 80, &granted), 0);
  EXPECT_EQ(AskInline("siw", 81, &granted), EINVAL);
  EXPECT_EQ(AskInline("siw", 0, &granted, 7), EINVAL);
}

TEST(ModelsTest, MoreThanTheLimitsIsRefused) {
  ibv_qp_cap cap = {1048577, 1, 1, 1, 0};
  EXPECT_EQ(Ask("rxe", false, &cap), EINVAL);
  cap = {64, 64, 33, 1, 0};
  EXPECT_EQ(Ask("rxe", false, &cap), EINVAL);
}

TEST(ModelsTest, GrantedCapsAreGrantedAgain) {
  for (const char* name : {"mlx5", "mlx4", "irdma", "rxe", "siw"}) {
    for (uint32_t inline_data : {0u, 28u, 56u, 80u}) {
      ibv_qp_cap cap = {32, 32, 2, 1, inline_data};
      ASSERT_EQ(Ask(name, false, &cap), 0) << name;
      const uint64_t bytes = SendQueueBytes(*FindModel(name), cap, false);
      ibv_qp_cap again = cap;
      again.max_send_wr = 32;
      ASSERT_EQ(Ask(name, false, &again), 0) << name;
      EXPECT_EQ(SendQueueBytes(*FindModel(name), again, false), bytes) << name;
      EXPECT_EQ(again.max_inline_data, cap.max_inline_data) << name;
    }
  }
}

}  // namespace
}  // namespace mig::soft
