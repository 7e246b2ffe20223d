// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Pages cost no allocation: whoever counts those of a plugin counts the
// device's too.
#include <atomic>
#include <cstdlib>
#include <new>

#include "soft_pair.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// Not inlined: the compiler would see free() meet operator new.
__attribute__((noinline)) void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
  std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory,
                                               std::size_t) noexcept {
  std::free(memory);
}

namespace mig::soft {
namespace {

class AllocationTest : public SoftPair {};

TEST_F(AllocationTest, PagesAndMessagesAllocateNothing) {
  cap.max_send_wr = 64;
  Connect("mlx5,seed=1", "mlx5,seed=1");
  static uint8_t from[4096];
  static uint8_t to[4096];
  ibv_mr* source_mr = source.Register(from, sizeof(from), 0);
  ibv_mr* target_mr = target.Register(
      to, sizeof(to), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  const auto batch = [&] {
    for (int i = 0; i < 63; ++i) {
      Wr(IBV_WR_RDMA_WRITE)
          .From(from, sizeof(from), source_mr->lkey)
          .To(to, target_mr->rkey)
          .Flags(0)
          .Post(source.qp());
    }
    ibv_req_notify_cq(target.cq, 0);
    PostReceive(target.qp(), to, 64, target_mr->lkey, 1);
    Wr(IBV_WR_SEND).From(from, 64, source_mr->lkey).Post(source.qp());
    source.verbs->Drive();
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    ASSERT_EQ(target.verbs->GetCqEvent(target.channel, &cq, &user), 0);
    target.verbs->AckCqEvents(cq, 1);
    ibv_wc wc[4];
    ASSERT_EQ(ibv_poll_cq(source.cq, 4, wc), 1);
    ASSERT_EQ(ibv_poll_cq(target.cq, 4, wc), 1);
  };
  batch();
  const uint64_t before = allocations.load();
  for (int i = 0; i < 100; ++i) batch();
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace mig::soft
