// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a page costs: doorbells, completions, allocations; and what is in
// flight.
#include <atomic>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "writer_fixture.h"

namespace {

std::atomic<uint64_t> allocations = 0;

}  // namespace

// The allocator hook: every allocation of this test program.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new[](size_t size) {
  return operator new(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}

namespace mig::rdma {
namespace {

struct Shape {
  size_t queues;
  uint32_t depth;
  uint64_t chunk;
  uint64_t page_size = kPage;
};

class CountsTest : public ::testing::TestWithParam<Shape> {};

// One range a write, and a flush every 1,000: the worst that a host does.
TEST_P(CountsTest, DoorbellsAndCompletionsAPageStayBelowOneIn32) {
  constexpr uint64_t kBlockPages = uint64_t{1} << 19;
  const Shape& shape = GetParam();
  WriterFixture at({.queues = shape.queues,
                    .depth = shape.depth,
                    .length = kBlockPages * shape.page_size,
                    .page_size = shape.page_size,
                    .chunk = shape.chunk});
  for (const uint64_t pages :
       {uint64_t{4096}, uint64_t{5000}, uint64_t{65536}}) {
    for (const uint64_t stride : {uint64_t{2}, uint64_t{257}}) {
      const WriteStats before = at.stats.writes;
      at.Begin();
      for (uint64_t i = 0; i < pages; ++i) {
        at.WriteAll(i * stride % kBlockPages * shape.page_size,
                    shape.page_size);
        if (i % 1000 == 999) at.writer->Flush();
      }
      at.EndRound();
      const WriteStats& after = at.stats.writes;
      EXPECT_EQ(after.writes - before.writes, pages);
      EXPECT_LE((after.doorbells - before.doorbells) * 32, pages);
      EXPECT_LE((after.cqes - before.cqes) * 32, pages);
    }
  }
  EXPECT_TRUE(at.device.faults.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CountsTest,
    ::testing::Values(Shape{1, 512, kMiB}, Shape{1, 512, 32 * kMiB},
                      Shape{1, 512, kGiB}, Shape{2, 512, 32 * kMiB},
                      Shape{8, 512, 32 * kMiB}, Shape{16, 512, kMiB},
                      Shape{16, 128, kGiB}, Shape{1, 128, 32 * kMiB},
                      Shape{8, 256, kMiB, 65536},
                      Shape{4, 512, kGiB, 2 * kMiB}));

TEST(Counts, ManyNonAdjacentPagesOfOneChunkAreInFlightAtOnce) {
  for (const size_t queues : {1u, 2u, 8u}) {
    for (const uint64_t chunk : {kMiB, 32 * kMiB, kGiB}) {
      WriterFixture at({.queues = queues, .length = 2 * kGiB, .chunk = chunk});
      at.Begin();
      for (uint64_t i = 0; i < 32; ++i) at.Write(i * 2 * kPage, kPage);
      at.writer->Flush();
      EXPECT_EQ(at.stats.writes.peak_per_chunk, 32u);
      // As many as the queues have room for.
      for (uint64_t i = 32; at.Write(i * 2 * kPage, kPage) > 0; ++i) {
      }
      at.writer->Flush();
      const uint64_t depth = 512 * queues;
      EXPECT_GE(at.stats.writes.peak_in_flight, depth - 64 * queues);
      if (chunk == kGiB) {
        EXPECT_EQ(at.stats.writes.peak_per_chunk,
                  at.stats.writes.peak_in_flight);
      }
      at.EndRound();
    }
  }
}

uint64_t AllocationsOfARound(WriterFixture* at, uint64_t pages) {
  at->Begin(/*strict=*/false);
  // The test's own carrying out allocates nothing (fake_device.h).
  const uint64_t before = allocations.load();
  for (uint64_t i = 0; i < pages; ++i) {
    at->WriteAll(i * 3 * kPage, kPage);
    if (i % 5 == 0) at->WriteAll((i * 3 + 1) * kPage, kPage, MIG_RANGE_ZERO);
    if (i % 100 == 0) {
      std::array<ZeroRun, 64> runs;
      at->writer->TakeZeroRuns(runs);
    }
    if (i % 1000 == 0) at->writer->Flush();
  }
  at->writer->RoundEnd();
  at->Settle();
  at->writer->Acknowledged(at->round);
  return allocations.load() - before;
}

TEST(Counts, ARoundOfTwiceThePagesAllocatesNoMore) {
  for (const size_t queues : {1u, 8u}) {
    WriterFixture at({.queues = queues, .length = 8 * kGiB, .zeroed = false});
    AllocationsOfARound(&at, 100);
    const uint64_t once = AllocationsOfARound(&at, 20'000);
    const uint64_t twice = AllocationsOfARound(&at, 40'000);
    EXPECT_EQ(once, twice);
    EXPECT_EQ(twice, 0u);
  }
}

// The same where keys come late.
TEST(Counts, SettingAsideAllocatesNothingInTheSteadyState) {
  WriterFixture at({.length = 8 * kGiB, .chunk = 32 * kMiB, .keys = false});
  std::array<ChunkRequest, 64> wanted;
  uint64_t counts[2] = {0, 0};
  for (int half = 0; half < 2; ++half) {
    at.Begin();
    const uint64_t before = allocations.load();
    for (uint64_t i = 0; i < 128; ++i) {
      const uint64_t chunk = static_cast<uint64_t>(half) * 128 + i;
      for (uint64_t page = 0; page < 5; ++page) {
        at.WriteAll(chunk * 32 * kMiB + page * 2 * kPage, kPage);
      }
      const size_t count = at.writer->TakeRequests(wanted);
      for (size_t k = 0; k < count; ++k) at.GiveKeys(wanted[k].chunk);
    }
    at.writer->RoundEnd();
    at.Settle();
    at.writer->Acknowledged(at.round);
    counts[half] = allocations.load() - before;
  }
  EXPECT_EQ(counts[1], 0u);
  EXPECT_EQ(at.stats.chunks_asked, 256u);
}

}  // namespace
}  // namespace mig::rdma
