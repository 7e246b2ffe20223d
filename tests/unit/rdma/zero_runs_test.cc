// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/zero_runs.h"

#include <algorithm>
#include <array>
#include <vector>

#include "common/error.h"
#include "gtest/gtest.h"
#include "rdma/zero_scan.h"

namespace mig::rdma {
namespace {

constexpr uint64_t kPage = 4096;

struct Memory {
  explicit Memory(uint64_t pages, bool nonzero = true)
      : bytes(pages * kPage, std::byte{0x5a}) {
    block.name = "ram";
    block.base = bytes.data();
    block.length = bytes.size();
    block.page_size = kPage;
    block.page_shift = 12;
    block.maybe_nonzero.Resize(pages, nonzero);
  }
  std::vector<std::byte> bytes;
  Block block;
};

TEST(ZeroList, WhatIsKnownZeroAndWasNeverWrittenCostsNothing) {
  Memory memory(100, false);
  ZeroList list(4);
  uint64_t told = 0;
  EXPECT_EQ(list.Add(&memory.block, 0, 100 * kPage, &told), 100 * kPage);
  EXPECT_EQ(list.size(), 0u);
  EXPECT_EQ(told, 0u);
}

TEST(ZeroList, TellsOnlyWhatMayBeOtherThanZeroAndOnlyOnce) {
  Memory memory(100, false);
  memory.block.maybe_nonzero.Set(10, 5);
  memory.block.maybe_nonzero.Set(50, 1);
  ZeroList list(4);
  uint64_t told = 0;
  EXPECT_EQ(list.Add(&memory.block, 0, 100 * kPage, &told), 100 * kPage);
  EXPECT_EQ(told, 6 * kPage);
  EXPECT_EQ(list.Add(&memory.block, 0, 100 * kPage, &told), 100 * kPage);
  EXPECT_EQ(told, 6 * kPage);
  std::array<ZeroRun, 8> runs;
  ASSERT_EQ(list.Take(runs), 2u);
  EXPECT_EQ(runs[0].offset, 10 * kPage);
  EXPECT_EQ(runs[0].length, 5 * kPage);
  EXPECT_EQ(runs[1].offset, 50 * kPage);
}

TEST(ZeroList, JoinsAdjacentRunsAndStopsAtAPageWhereItIsFull) {
  Memory memory(100);
  ZeroList list(2);
  uint64_t told = 0;
  EXPECT_EQ(list.Add(&memory.block, 0, kPage, &told), kPage);
  EXPECT_EQ(list.Add(&memory.block, kPage, kPage, &told), kPage);
  EXPECT_EQ(list.size(), 1u);
  memory.block.maybe_nonzero.Clear(10, 1);
  EXPECT_EQ(list.Add(&memory.block, 5 * kPage, 20 * kPage, &told), 6 * kPage);
  EXPECT_TRUE(list.Names(&memory.block));
  EXPECT_EQ(list.free(), 0u);
}

TEST(ZeroWriter, WritesWithinTheBudgetUntilAllIsZero) {
  Memory memory(16);
  ZeroWriter writer;
  ASSERT_TRUE(writer.Add(&memory.block, 2 * kPage, 4 * kPage).ok());
  ASSERT_TRUE(writer.Add(&memory.block, 8 * kPage, 0).ok());
  ASSERT_TRUE(writer.Add(&memory.block, 10 * kPage, kPage).ok());
  EXPECT_TRUE(writer.Names(&memory.block));
  EXPECT_FALSE(writer.Write(kPage + 1));
  EXPECT_EQ(writer.bytes_written(), kPage + 1);
  while (!writer.Write(kPage)) {
  }
  EXPECT_FALSE(writer.Names(&memory.block));
  for (uint64_t page = 0; page < 16; ++page) {
    const bool zero = (page >= 2 && page < 6) || page == 10;
    const auto* from = memory.bytes.data() + page * kPage;
    EXPECT_EQ(std::count(from, from + kPage, std::byte{0}) == kPage, zero)
        << page;
  }
}

// C29 (H6)
TEST(ZeroWriter, RefusesRunsOutsideTheBlockOrOffItsPages) {
  Memory memory(16);
  ZeroWriter writer;
  const std::array<std::array<uint64_t, 2>, 6> bad = {
      {{1, kPage},
       {0, 1},
       {16 * kPage, kPage},
       {0, 17 * kPage},
       {UINT64_MAX - 4095, 8192},
       {kPage, UINT64_MAX - 4095}}};
  for (const auto& run : bad) {
    EXPECT_EQ(ErrorCode(writer.Add(&memory.block, run[0], run[1])),
              MIG_E_PEER_PROTOCOL);
  }
  EXPECT_EQ(writer.size(), 0u);
}

TEST(ZeroScan, FindsASingleBitAnywhereInAPage) {
  alignas(64) static std::array<std::byte, 8192> bytes = {};
  EXPECT_TRUE(AllZero(bytes.data(), bytes.size()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{0x80};
    EXPECT_FALSE(AllZero(bytes.data(), bytes.size())) << i;
    EXPECT_EQ(AllZero(bytes.data(), 4096), i >= 4096) << i;
    bytes[i] = std::byte{0};
  }
}

TEST(ZeroScan, RunsEndWhereTheKindOfPageChanges) {
  Memory memory(8);
  std::fill_n(memory.bytes.data() + 2 * kPage, 3 * kPage, std::byte{0});
  bool zero = true;
  EXPECT_EQ(ScanPages(memory.bytes.data(), 8 * kPage, kPage, &zero), 2 * kPage);
  EXPECT_FALSE(zero);
  EXPECT_EQ(ScanPages(memory.bytes.data() + 2 * kPage, 6 * kPage, kPage, &zero),
            3 * kPage);
  EXPECT_TRUE(zero);
  EXPECT_EQ(ScanPages(memory.bytes.data() + 5 * kPage, 2 * kPage, kPage, &zero),
            2 * kPage);
}

}  // namespace
}  // namespace mig::rdma
