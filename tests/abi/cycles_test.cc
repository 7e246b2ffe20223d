// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Load, migrate, unload, a thousand times: nothing piles up (C22, H11).
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
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

constexpr int kCycles = 1000;
constexpr int kWarmUp = 100;  // until allocators have what they ever need
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kGrowthKib = 64 * 1024;  // quarantine and shadow
#else
constexpr size_t kGrowthKib = 256;  // a page left in every 16 cycles shows
#endif
constexpr size_t kHeapGrowthBytes = size_t{16} * kCycles;

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
  size_t fds = CountFds();
  size_t threads = CountThreads();
  size_t mappings = CountMappings();
  size_t heap_bytes = HeapBytes();
  size_t peak_kib = 0;
};

// What is held after `cycles`, and the most memory of its own after one: what
// a cycle needs depends on how its threads overlap.
Held HeldAfter(int cycles, const std::function<void()>& cycle) {
  size_t peak_kib = 0;
  for (int i = 0; i < cycles && !::testing::Test::HasFatalFailure(); ++i) {
    cycle();
    peak_kib = std::max(peak_kib, AnonymousKib());
  }
  Held held;
  held.peak_kib = peak_kib;
  return held;
}

void ExpectNothingPilesUp(const std::function<void()>& cycle) {
  HeldAfter(kWarmUp, cycle);
  const Held before = HeldAfter(kWarmUp, cycle);
  const Held after = HeldAfter(kCycles, cycle);
  EXPECT_EQ(after.fds, before.fds);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LE(after.mappings, before.mappings + 8);
  EXPECT_LE(after.heap_bytes, before.heap_bytes + kHeapGrowthBytes);
  EXPECT_LE(after.peak_kib, before.peak_kib + kGrowthKib);
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
