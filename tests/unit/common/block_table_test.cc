// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/block_table.h"

#include <limits>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using ::testing::HasSubstr;

alignas(4096) std::byte memory[16 * 4096];

struct mig_block Ram(uint32_t id = 1, const char* name = "ram") {
  struct mig_block block = {};
  block.size = sizeof(block);
  block.id = id;
  block.name = name;
  block.address = memory;
  block.length = sizeof(memory);
  block.page_size = 4096;
  block.fd = -1;
  return block;
}

TEST(BlockTableTest, RefusesWhatCanNotBeABlock) {
  const std::string long_name(MIG_NAME_MAX + 1, 'n');
  BlockTable table;
  const auto code = [&table](auto change) {
    struct mig_block block = Ram();
    change(&block);
    return ErrorCode(table.Add(block, false));
  };
  EXPECT_EQ(code([](auto* b) { b->name = nullptr; }), MIG_E_BLOCK);
  EXPECT_EQ(code([](auto* b) { b->name = ""; }), MIG_E_BLOCK);
  EXPECT_EQ(code([&](auto* b) { b->name = long_name.c_str(); }), MIG_E_BLOCK);
  for (const uint64_t page : {0, 512, 3000, 4097}) {
    EXPECT_EQ(code([=](auto* b) { b->page_size = page; }), MIG_E_BLOCK);
  }
  EXPECT_EQ(code([](auto* b) { b->page_size = uint64_t{1} << 31; }),
            MIG_E_BLOCK);
  EXPECT_EQ(code([](auto* b) { b->length = 0; }), MIG_E_RANGE);
  EXPECT_EQ(code([](auto* b) { b->length = 4097; }), MIG_E_RANGE);
  EXPECT_EQ(code([](auto* b) { b->length = ~uint64_t{4095}; }), MIG_E_RANGE);
  EXPECT_EQ(code([](auto* b) { b->address = nullptr; }), MIG_E_RANGE);
  EXPECT_EQ(code([](auto* b) { b->address = memory + 1; }), MIG_E_RANGE);
  EXPECT_EQ(code([](auto* b) { b->flags = 1u << 9; }), MIG_E_ARGUMENT);
  EXPECT_EQ(table.size(), 0u);
}

TEST(BlockTableTest, RefusesADiscardableBlockOnlyWherePinned) {
  struct mig_block block = Ram();
  block.flags = MIG_BLOCK_DISCARDABLE;
  BlockTable table;
  EXPECT_EQ(ErrorCode(table.Add(block, true)), MIG_E_BLOCK);  // C34
  EXPECT_TRUE(table.Add(block, false).ok());
}

TEST(BlockTableTest, AnIdAndANameAreUsedOnceUntilRemoved) {
  BlockTable table;
  ASSERT_TRUE(table.Add(Ram(1, "a"), false).ok());
  EXPECT_EQ(ErrorCode(table.Add(Ram(1, "b"), false)), MIG_E_BLOCK);
  EXPECT_EQ(ErrorCode(table.Add(Ram(2, "a"), false)), MIG_E_BLOCK);
  EXPECT_TRUE(table.Remove(1));
  EXPECT_FALSE(table.Remove(1));
  EXPECT_EQ(table.Find(1), nullptr);
  EXPECT_TRUE(table.Add(Ram(1, "a"), false).ok());
}

TEST(BlockTableTest, AgreesByNameAndKnowsThePeersIds) {
  BlockTable table;
  ASSERT_TRUE(table.Add(Ram(1, "a"), false).ok());
  ASSERT_TRUE(table.Add(Ram(2, "b"), false).ok());
  const BlockDescription a{70, 0, sizeof(memory), 4096, "a"};
  const BlockDescription b{80, 0, sizeof(memory), 4096, "b"};
  EXPECT_EQ(table.FindByPeerId(70), nullptr);
  ASSERT_TRUE(table.Agree(std::vector{b, a}).ok());
  EXPECT_EQ(table.FindByPeerId(70)->id, 1u);
  EXPECT_EQ(table.FindByPeerId(80)->id, 2u);
  EXPECT_TRUE(table.NewBlocks().empty());
  table.Remove(1);
  EXPECT_EQ(table.FindByPeerId(70), nullptr);
  EXPECT_EQ(table.FindByPeerId(80)->id, 2u);
}

// C27: both values are named, and nothing is agreed.
TEST(BlockTableTest, EveryDifferenceIsRefusedWithBothValues) {
  const auto agree = [](std::vector<BlockDescription> theirs, Block** ours) {
    static BlockTable* table = nullptr;
    delete table;
    table = new BlockTable;
    EXPECT_TRUE(table->Add(Ram(), false).ok());
    *ours = table->Find(1);
    return table->Agree(theirs);
  };
  const BlockDescription same{7, 0, sizeof(memory), 4096, "ram"};
  BlockDescription shorter = same, paged = same, other = same, twin = same;
  shorter.length = 4096;
  paged.page_size = 8192;
  other.name = "rom";
  other.id = twin.id = 8;
  const std::tuple<std::vector<BlockDescription>, int, const char*> kCases[] = {
      {{shorter}, MIG_E_PEER_MISMATCH, "65536 here and 4096"},
      {{paged}, MIG_E_PEER_MISMATCH, "4096 here and 8192"},
      {{}, MIG_E_PEER_MISMATCH, "the peer has none"},
      {{other}, MIG_E_PEER_MISMATCH, "'rom'"},
      {{same, other}, MIG_E_PEER_MISMATCH, "'rom'"},
      {{same, twin}, MIG_E_PEER_PROTOCOL, "twice"},
      {{same, same}, MIG_E_PEER_PROTOCOL, "twice"}};
  for (const auto& [theirs, code, text] : kCases) {
    Block* ours = nullptr;
    const absl::Status status = agree(theirs, &ours);
    EXPECT_EQ(ErrorCode(status), code) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_FALSE(ours->agreed);
  }
}

// Rules 1.6, 1.7 and 6.4, C29.
TEST(BlockTableTest, ChecksRangesWithoutOverflow) {
  BlockTable table;
  ASSERT_TRUE(table.Add(Ram(), false).ok());
  Block* block = nullptr;
  struct mig_range range = {0, 4096, 1, 0, 0};
  EXPECT_EQ(ErrorCode(table.CheckRange(range, &block)), MIG_E_BLOCK);
  ASSERT_TRUE(table
                  .Agree(std::vector<BlockDescription>{
                      {7, 0, sizeof(memory), 4096, "ram"}})
                  .ok());
  EXPECT_TRUE(table.CheckRange(range, &block).ok());
  constexpr uint64_t kTop = ~uint64_t{4095};
  const struct mig_range kGood[] = {{0, sizeof(memory), 1, 0, 0},
                                    {sizeof(memory), 0, 1, 0, 0},
                                    {0, 0, 1, MIG_RANGE_ZERO, 0}};
  for (const auto& good : kGood) {
    EXPECT_TRUE(table.CheckRange(good, &block).ok());
  }
  const std::pair<struct mig_range, int> kBad[] = {
      {{1, 4096, 1, 0, 0}, MIG_E_RANGE},
      {{0, 4095, 1, 0, 0}, MIG_E_RANGE},
      {{sizeof(memory), 4096, 1, 0, 0}, MIG_E_RANGE},
      {{sizeof(memory) + 4096, 0, 1, 0, 0}, MIG_E_RANGE},
      {{4096, kTop, 1, 0, 0}, MIG_E_RANGE},
      {{kTop, 4096, 1, 0, 0}, MIG_E_RANGE},
      {{kTop, kTop, 1, 0, 0}, MIG_E_RANGE},
      {{0, 4096, 2, 0, 0}, MIG_E_BLOCK},
      {{0, 4096, 1, 2, 0}, MIG_E_ARGUMENT},
      {{0, 4096, 1, 0, 1}, MIG_E_ARGUMENT}};
  for (const auto& [bad, code] : kBad) {
    EXPECT_EQ(ErrorCode(table.CheckRange(bad, &block)), code)
        << bad.offset << "+" << bad.length;
  }
  table.Find(1)->removing = true;
  EXPECT_EQ(ErrorCode(table.CheckRange(range, &block)), MIG_E_BLOCK);
}

}  // namespace
}  // namespace mig
