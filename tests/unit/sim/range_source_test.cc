// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/range_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "engine/rate_limiter.h"

namespace mig::sim {
namespace {

constexpr uint64_t kPage = kPageSize;

GuestMemory MakeMemory(
    const std::vector<std::pair<std::string, uint64_t>>& blocks,
    Backing backing = Backing::kAnon) {
  std::vector<BlockSpec> specs;
  for (const auto& [name, pages] : blocks) {
    BlockSpec spec;
    spec.name = name;
    spec.size = pages * kPage;
    spec.backing = backing;
    specs.push_back(spec);
  }
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(specs);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *std::move(memory);
}

void Dirty(const GuestMemory& memory, uint32_t block, uint64_t page) {
  memory.blocks()[block].base[page * kPage + 77] = std::byte{1};
}

std::vector<mig_range> All(RangeSource* source, size_t max_ranges,
                           uint64_t max_bytes) {
  std::vector<mig_range> all, batch;
  for (;;) {
    source->Next(max_ranges, max_bytes, &batch);
    if (batch.empty()) return all;
    EXPECT_LE(batch.size(), max_ranges);
    all.insert(all.end(), batch.begin(), batch.end());
  }
}

struct Expected {
  uint32_t block;
  uint64_t page, pages;
  bool zero;
};

void ExpectRanges(const std::vector<mig_range>& ranges,
                  const std::vector<Expected>& expected) {
  ASSERT_EQ(ranges.size(), expected.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].block, expected[i].block) << i;
    EXPECT_EQ(ranges[i].offset, expected[i].page * kPage) << i;
    EXPECT_EQ(ranges[i].length, expected[i].pages * kPage) << i;
    EXPECT_EQ(ranges[i].flags, expected[i].zero ? MIG_RANGE_ZERO : 0U) << i;
    EXPECT_EQ(ranges[i].reserved, 0U) << i;
  }
}

TEST(RangeSourceTest, MergesAdjacentPagesAndKeepsBlocksApart) {
  const GuestMemory memory = MakeMemory({{"a", 10}, {"b", 5}});
  PageSet pages(memory);
  pages.blocks[0].SetRange(2, 3);
  pages.blocks[0].Set(9);
  pages.blocks[1].SetAll();
  RangeSource source(memory, pages, nullptr);
  ExpectRanges(All(&source, 512, UINT64_MAX),
               {{0, 2, 3, false}, {0, 9, 1, false}, {1, 0, 5, false}});
  EXPECT_EQ(source.pages(), 9U);
  EXPECT_EQ(source.zero_pages(), 0U);
  EXPECT_EQ(source.data_bytes(), 9 * kPage);
}

TEST(RangeSourceTest, MarksZeroPagesOfEitherBacking) {
  for (const Backing backing : {Backing::kAnon, Backing::kMemfd}) {
    const GuestMemory memory = MakeMemory({{"a", 20000}}, backing);
    Dirty(memory, 0, 3);
    Dirty(memory, 0, 4);
    Dirty(memory, 0, 19999);
    memory.blocks()[0].base[7 * kPage] = std::byte{1};
    memory.blocks()[0].base[7 * kPage] = std::byte{0};  // there, and zero
    PageSet pages(memory);
    pages.SetAll();
    ZeroScanner scanner;
    RangeSource source(memory, pages, &scanner);
    ExpectRanges(All(&source, 512, UINT64_MAX), {{0, 0, 3, true},
                                                 {0, 3, 2, false},
                                                 {0, 5, 19994, true},
                                                 {0, 19999, 1, false}});
    EXPECT_EQ(source.zero_pages(), 19997U);
    EXPECT_EQ(source.data_bytes(), 3 * kPage);
  }
}

TEST(RangeSourceTest, LooksOnlyAtPagesOfTheSet) {
  const GuestMemory memory = MakeMemory({{"a", 64}});
  Dirty(memory, 0, 10);
  PageSet pages(memory);
  pages.blocks[0].SetRange(9, 3);
  ZeroScanner scanner;
  RangeSource source(memory, pages, &scanner);
  ExpectRanges(All(&source, 512, UINT64_MAX),
               {{0, 9, 1, true}, {0, 10, 1, false}, {0, 11, 1, true}});
}

TEST(RangeSourceTest, ObeysBothLimitsOfABatch) {
  const GuestMemory memory = MakeMemory({{"a", 100}});
  PageSet pages(memory);
  for (uint64_t page = 0; page < 100; page += 2) pages.blocks[0].Set(page);
  RangeSource few(memory, pages, nullptr);
  EXPECT_EQ(All(&few, 3, UINT64_MAX).size(), 50U);
  pages.SetAll();
  RangeSource small(memory, pages, nullptr);
  const std::vector<mig_range> ranges = All(&small, 512, 3 * kPage);
  EXPECT_EQ(ranges.size(), 34U);
  EXPECT_EQ(ranges.front().length, 3 * kPage);
  RangeSource tiny(memory, pages, nullptr);
  EXPECT_EQ(All(&tiny, 512, 1).size(), 100U) << "at least a page at a time";
}

// H5, C13: nothing is cut to 32 bits.
TEST(RangeSourceTest, C13OffsetsAndLengthsPastFourGiB) {
  const uint64_t four_gib = (uint64_t{4} << 30) / kPage;
  const GuestMemory memory = MakeMemory({{"a", four_gib + 262144}});
  PageSet pages(memory);
  pages.blocks[0].SetRange(0, four_gib + 1);
  pages.blocks[0].Set(four_gib + 262143);
  RangeSource source(memory, pages, nullptr);
  ExpectRanges(All(&source, 512, UINT64_MAX),
               {{0, 0, four_gib + 1, false}, {0, four_gib + 262143, 1, false}});
}

TEST(RangeSourceTest, ASparseGuestStaysSparse) {
  const GuestMemory memory = MakeMemory({{"a", 262144}}, Backing::kMemfd);
  PageSet pages(memory);
  pages.SetAll();
  ZeroScanner scanner;
  RangeSource source(memory, pages, &scanner);
  All(&source, 512, UINT64_MAX);
  EXPECT_EQ(source.zero_pages(), 262144U);
  EXPECT_EQ(lseek(memory.blocks()[0].fd, 0, SEEK_DATA), -1)
      << "looking must not allocate";
}

TEST(ZeroMemoryTest, FindsASingleByteAnywhere) {
  alignas(64) std::byte page[kPage] = {};
  EXPECT_TRUE(IsZeroMemory(page, kPage));
  for (size_t at = 0; at < kPage; ++at) {
    page[at] = std::byte{0x80};
    EXPECT_FALSE(IsZeroMemory(page, kPage)) << at;
    page[at] = std::byte{0};
  }
}

TEST(RateLimiterTest, KeepsTheRateOverASecond) {
  RateLimiter limiter(100 << 20);
  uint64_t now = 1'000'000'000, sent = 0;
  while (now < 2'000'000'000) {
    const uint64_t allowed = limiter.Allowed(now);
    limiter.Take(allowed);
    sent += allowed;
    now += limiter.WaitNs(now) + 1'000'000;
  }
  EXPECT_NEAR(static_cast<double>(sent), 100 << 20, 2 << 20);
}

TEST(RateLimiterTest, ZeroIsNoLimitAndAPauseGivesNoBurst) {
  RateLimiter none(0);
  EXPECT_EQ(none.Allowed(0), UINT64_MAX);
  RateLimiter limiter(1000);
  limiter.Take(limiter.Allowed(1'000'000'000));
  EXPECT_EQ(limiter.Allowed(100'000'000'000), 10U);
}

}  // namespace
}  // namespace mig::sim
