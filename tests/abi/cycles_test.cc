// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Load, migrate, unload, a thousand times: nothing piles up (C22, H11).
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "loaded.h"
#include "migrate.h"

#if defined(__SANITIZE_ADDRESS__)
// What is freed stays in quarantine, up to 256 MiB: that is no leak.
extern "C" __attribute__((visibility("default"))) const char*
__asan_default_options() {
  return "quarantine_size_mb=1";
}
#endif

namespace mig::abi {
namespace {

constexpr int kWarmUp = 100;  // until allocators have what they ever need
constexpr int kStretches = 4;
constexpr int kCycles = 250;  // of a stretch
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMostKib = 64 * 1024;  // quarantine and shadow
#else
constexpr size_t kMostKib = kCycles;  // a page left by every fourth cycle
#endif
constexpr size_t kMostHeapBytes = size_t{16} * kCycles;

class Cycles : public ::testing::TestWithParam<const char*> {};

void Cycle(const char* name) {
  const Loaded loaded(name);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  ASSERT_EQ(Migrate(loaded.ops()), "");
}

// Bytes the process holds of its allocator; 0 where a sanitizer replaces it.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Held {
  size_t fds = 0;
  size_t threads = 0;
  size_t mappings = 0;
  size_t heap_bytes = 0;
  size_t peak_kib = 0;  // the most memory of its own after one of the cycles
};

Held HeldAfter(int cycles, const std::function<void()>& cycle) {
  Held held;
  for (int i = 0; i < cycles && !::testing::Test::HasFatalFailure(); ++i) {
    cycle();
    held.peak_kib = std::max(held.peak_kib, AnonymousKib());
  }
  held.fds = CountFds();
  held.threads = CountThreads();
  held.mappings = CountMappings();
  held.heap_bytes = HeapBytes();
  return held;
}

size_t Growth(size_t before, size_t after) {
  return after > before ? after - before : 0;
}

// Threads that overlap as never before need more memory, and the allocator
// keeps that: such a step is in one stretch, but what piles up is in each.
void ExpectNothingPilesUp(const std::function<void()>& cycle) {
  const Held first = HeldAfter(kWarmUp, cycle);
  Held last = first;
  size_t least_kib = SIZE_MAX;
  size_t least_heap_bytes = SIZE_MAX;
  for (int i = 0; i < kStretches; ++i) {
    const Held next = HeldAfter(kCycles, cycle);
    least_kib = std::min(least_kib, Growth(last.peak_kib, next.peak_kib));
    least_heap_bytes =
        std::min(least_heap_bytes, Growth(last.heap_bytes, next.heap_bytes));
    last = next;
  }
  EXPECT_EQ(last.fds, first.fds);
  EXPECT_EQ(last.threads, first.threads);
  EXPECT_LE(last.mappings, first.mappings + 8);
  EXPECT_LE(least_heap_bytes, kMostHeapBytes);
  EXPECT_LE(least_kib, kMostKib);
}

TEST_P(Cycles, LoadMigrateUnloadC22) {
  ExpectNothingPilesUp([] { Cycle(GetParam()); });
}

TEST_P(Cycles, LoadOnlyC22) {
  ExpectNothingPilesUp([] { ASSERT_TRUE(Loaded(GetParam()).ok()); });
}

INSTANTIATE_TEST_SUITE_P(Plugins, Cycles, ::testing::Values(MIG_PLUGIN_NAMES),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace mig::abi
