// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/page_bitmap.h"

#include <algorithm>
#include <random>
#include <vector>

#include "common/zero_pages.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 40;

TEST(PageBitmapTest, BehavesLikeAVectorOfBool) {
  std::mt19937_64 random(1);
  constexpr uint64_t kPages = 333;
  PageBitmap bitmap;
  bitmap.Resize(kPages, false);
  std::vector<bool> reference(kPages, false);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t first = random() % kPages;
    const uint64_t count = random() % (kPages - first + 1);
    const auto begin = reference.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    switch (random() % 4) {
      case 0:
        bitmap.Set(first, count);
        std::fill(begin, end, true);
        break;
      case 1:
        bitmap.Clear(first, count);
        std::fill(begin, end, false);
        break;
      case 2:
        ASSERT_EQ(bitmap.AnySet(first, count),
                  std::find(begin, end, true) != end);
        break;
      default:
        const auto run = std::find(begin, end, !reference[first]);
        if (count > 0) {
          ASSERT_EQ(bitmap.RunEnd(first, first + count),
                    static_cast<uint64_t>(run - reference.begin()));
        }
    }
    ASSERT_EQ(bitmap.Test(first), reference[first]);
  }
}

TEST(PageBitmapTest, ResizingToNothingFreesIt) {
  PageBitmap bitmap;
  bitmap.Resize(100, true);
  EXPECT_FALSE(bitmap.empty());
  EXPECT_TRUE(bitmap.Test(99));
  bitmap.Resize(0, true);
  EXPECT_TRUE(bitmap.empty());
}

struct Guest {
  explicit Guest(uint64_t pages, uint32_t flags, uint64_t page_size = 4096)
      : bytes(pages * page_size, std::byte{7}) {
    block.base = bytes.data();
    block.length = bytes.size();
    block.page_size = page_size;
    block.page_shift = static_cast<uint32_t>(__builtin_ctzll(page_size));
    block.flags = flags;
    TrackNonzero(&block);
  }
  size_t Zeros() const {
    return static_cast<size_t>(
        std::count(bytes.begin(), bytes.end(), std::byte{0}));
  }
  std::vector<std::byte> bytes;
  Block block;
};

// Rule 9.3: memory that reads zero and was never written is not written.
TEST(ZeroPagesTest, NeverWrittenPagesOfAZeroedBlockCostNothing) {
  Guest guest(64, MIG_BLOCK_ZEROED);
  MarkWritten(&guest.block, 5 * 4096, 1);
  ZeroRun run{&guest.block, 0, guest.block.length};
  uint64_t budget = kUnlimited;
  EXPECT_EQ(ZeroPages(&run, &budget), 4096u);
  EXPECT_EQ(run.length, 0u);
  // The rest kept what only this test put there.
  EXPECT_EQ(guest.Zeros(), 4096u);
  EXPECT_EQ(guest.bytes[5 * 4096], std::byte{0});
}

// Rule 9.1: H1. Data, then zero, then data again.
TEST(ZeroPagesTest, WhatWasWrittenAfterZeroingIsZeroedAgain) {
  Guest guest(4, 0);
  uint64_t budget = kUnlimited;
  ZeroRun run{&guest.block, 0, guest.block.length};
  EXPECT_EQ(ZeroPages(&run, &budget), guest.block.length);
  run = {&guest.block, 0, guest.block.length};
  EXPECT_EQ(ZeroPages(&run, &budget), 0u) << "known to be zero";
  MarkWritten(&guest.block, 4095, 2);  // two pages
  guest.bytes[4095] = guest.bytes[4096] = std::byte{1};
  run = {&guest.block, 0, guest.block.length};
  EXPECT_EQ(ZeroPages(&run, &budget), 2u * 4096);
  EXPECT_EQ(guest.Zeros(), guest.bytes.size());
}

TEST(ZeroPagesTest, StopsAtItsBudgetAlsoInsideAPageAndGoesOnExactly) {
  Guest guest(4, 0, 64 << 10);
  ZeroRun run{&guest.block, 64 << 10, 2 * (64 << 10)};
  int slices = 0;
  while (run.length > 0) {
    uint64_t budget = 1000;
    EXPECT_LE(ZeroPages(&run, &budget), 1000u);
    ASSERT_LT(++slices, 1000);
  }
  EXPECT_EQ(guest.Zeros(), 2u * (64 << 10));
  EXPECT_EQ(guest.bytes[(64 << 10) - 1], std::byte{7});
  EXPECT_EQ(guest.bytes[3 * (64 << 10)], std::byte{7});
  run = {&guest.block, 0, guest.block.length};
  uint64_t budget = kUnlimited;
  EXPECT_EQ(ZeroPages(&run, &budget), 2u * (64 << 10))
      << "what was zeroed in slices is known to be zero";
}

// A hostile source may ask for the same huge known-zero run again and again.
TEST(ZeroPagesTest, SkippingKnownZerosSpendsTheBudgetToo) {
  Guest guest(4096, MIG_BLOCK_ZEROED, 1024);
  ZeroRun run{&guest.block, 0, guest.block.length};
  uint64_t budget = 64;
  EXPECT_EQ(ZeroPages(&run, &budget), 0u);
  EXPECT_EQ(budget, 0u);
  EXPECT_GT(run.length, 0u);
  EXPECT_LT(run.length, guest.block.length);
}

}  // namespace
}  // namespace mig
