// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Load, migrate, unload, a thousand times: nothing piles up (C22, H11).
#include <gtest/gtest.h>

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
constexpr size_t kGrowthKib = 1024;  // a leak of 1.2 KiB a cycle shows
#endif

class Cycles : public ::testing::TestWithParam<const char*> {};

void Cycle(const char* name) {
  const Loaded loaded(name);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  ASSERT_EQ(Migrate(loaded.ops()), "");
}

TEST_P(Cycles, LoadMigrateUnloadC22) {
  for (int i = 0; i < kWarmUp; ++i) ASSERT_NO_FATAL_FAILURE(Cycle(GetParam()));
  const size_t fds = CountFds();
  const size_t threads = CountThreads();
  const size_t mappings = CountMappings();
  const size_t resident = ResidentKib();
  for (int i = 0; i < kCycles; ++i) ASSERT_NO_FATAL_FAILURE(Cycle(GetParam()));
  EXPECT_EQ(CountFds(), fds);
  EXPECT_EQ(CountThreads(), threads);
  EXPECT_LE(CountMappings(), mappings + 8);
  EXPECT_LE(ResidentKib(), resident + kGrowthKib);
}

TEST_P(Cycles, LoadOnlyC22) {
  ASSERT_TRUE(Loaded(GetParam()).ok());
  const size_t fds = CountFds();
  const size_t mappings = CountMappings();
  const size_t resident = ResidentKib();
  for (int i = 0; i < kCycles; ++i) ASSERT_TRUE(Loaded(GetParam()).ok());
  EXPECT_EQ(CountFds(), fds);
  EXPECT_LE(CountMappings(), mappings + 8);
  EXPECT_LE(ResidentKib(), resident + kGrowthKib);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Cycles, ::testing::Values(MIG_PLUGIN_NAMES),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace mig::abi
