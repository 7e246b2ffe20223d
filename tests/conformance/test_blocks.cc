// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rules 14 and 15: what both sides must agree on, and blocks that come and go.
#include <cstring>
#include <string>

#include "pair.h"

namespace mig::conformance {
namespace {

class Blocks : public Conformance {};

// Both sides exchange, disagree, and are told so with both values.
void ExpectMismatch(Pair& pair, const std::vector<std::string>& named) {
  ASSERT_EQ(pair.source().Exchange(), MIG_OK);
  ASSERT_EQ(pair.destination().Exchange(), MIG_OK);
  EXPECT_TRUE(pair.Pump([&] {
    return pair.source().Ended() && pair.destination().Ended();
  })) << "rule 15: one side waits for ever: "
      << pair.Describe();
  bool said = false;
  for (Session* side : {&pair.source(), &pair.destination()}) {
    EXPECT_TRUE(side->Saw(MIG_EVENT_ERROR)) << side->Describe();
    EXPECT_FALSE(side->Saw(MIG_EVENT_BLOCKS_READY)) << side->Describe();
    const CallError error = side->SessionError();
    EXPECT_TRUE(error.code == MIG_E_PEER_MISMATCH ||
                error.code == MIG_E_PEER_FAILED)
        << StatusName(error.code) << ": " << error.message;
    said = said || error.code == MIG_E_PEER_MISMATCH;
    for (const std::string& value : named) {
      EXPECT_NE(error.message.find(value), std::string::npos)
          << "'" << value << "' is not in: " << error.message;
    }
  }
  EXPECT_TRUE(said) << "no side says MIG_E_PEER_MISMATCH";
}

void Add(Session& side, const mig_block& block) {
  ASSERT_EQ(side.AddBlock(block), MIG_OK) << side.error().message;
}

TEST_F(Blocks, Rule15_C27_LengthsDiffer) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block& block = pair.SpareBlock({}, 0);
  mig_block shorter = block.OfDestination();
  shorter.length = 48 * kPage;
  Add(pair.source(), block.OfSource());
  Add(pair.destination(), shorter);
  ExpectMismatch(pair, {"ram0", "262144", "196608"});
}

TEST_F(Blocks, Rule15_C27_PageSizesDiffer) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block& block = pair.SpareBlock({}, 0);
  mig_block finer = block.OfDestination();
  finer.page_size = 2048;
  Add(pair.source(), block.OfSource());
  Add(pair.destination(), finer);
  ExpectMismatch(pair, {"ram0", "4096", "2048"});
}

TEST_F(Blocks, Rule15_C30_OnlyTheSourceHasIt) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block& shared = pair.SpareBlock({}, 0);
  Block& extra = pair.SpareBlock({}, 1);
  Add(pair.source(), shared.OfSource());
  Add(pair.destination(), shared.OfDestination());
  Add(pair.source(), extra.OfSource());
  ExpectMismatch(pair, {"ram1"});
}

TEST_F(Blocks, Rule15_C30_OnlyTheDestinationHasIt) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block& shared = pair.SpareBlock({}, 0);
  Block& extra = pair.SpareBlock({}, 1);
  Add(pair.source(), shared.OfSource());
  Add(pair.destination(), shared.OfDestination());
  Add(pair.destination(), extra.OfDestination());
  ExpectMismatch(pair, {"ram1"});
}

TEST_F(Blocks, Rule15_C27_NamesDiffer) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block& block = pair.SpareBlock({}, 0);
  mig_block other = block.OfDestination();
  other.name = "vram";
  Add(pair.source(), block.OfSource());
  Add(pair.destination(), other);
  ExpectMismatch(pair, {});
}

void ExpectRefused(Session& side, const mig_block& block, int32_t status) {
  EXPECT_EQ(StatusName(side.AddBlock(block)), StatusName(status))
      << "id " << block.id << " length " << block.length << " page size "
      << block.page_size;
}

TEST_F(Blocks, Rule15_UnusableBlocksAreRefused) {
  Pair pair;
  Session& side = pair.source();
  Block& block = pair.SpareBlock({}, 0);
  const mig_block good = block.OfSource();
  mig_block bad = good;
  bad.name = nullptr;
  ExpectRefused(side, bad, MIG_E_BLOCK);
  bad.name = "";
  ExpectRefused(side, bad, MIG_E_BLOCK);
  const std::string long_name(MIG_NAME_MAX + 1, 'n');
  bad.name = long_name.c_str();
  ExpectRefused(side, bad, MIG_E_BLOCK);
  const std::string longest(MIG_NAME_MAX, 'n');
  bad = good;
  bad.id = 50;
  bad.name = longest.c_str();
  ExpectRefused(side, bad, MIG_OK);
  for (const uint64_t page_size :
       {uint64_t{0}, uint64_t{512}, uint64_t{4095}, uint64_t{6144},
        uint64_t{2} << 30, uint64_t{1} << 63}) {
    bad = good;
    bad.page_size = page_size;
    const int32_t status = side.AddBlock(bad);
    EXPECT_TRUE(status == MIG_E_BLOCK || status == MIG_E_RANGE) << page_size;
  }
}

TEST_F(Blocks, Rule15_H05_UnusableMemoryIsRefused) {
  Pair pair;
  Session& side = pair.source();
  Block& block = pair.SpareBlock({}, 0);
  const mig_block good = block.OfSource();
  const auto add = [&](void* address, uint64_t length) {
    mig_block bad = good;
    bad.address = address;
    bad.length = length;
    const int32_t status = side.AddBlock(bad);
    EXPECT_TRUE(status == MIG_E_BLOCK || status == MIG_E_RANGE)
        << StatusName(status) << " for " << address << " + " << length;
  };
  auto* const address = static_cast<uint8_t*>(good.address);
  add(address, 0);
  add(address, kPage + 1);
  add(address, ~uint64_t{0} - kPage + 1);
  add(address + 16, kPage);
  add(nullptr, kPage);
  ExpectRefused(side, good, MIG_OK);
}

TEST_F(Blocks, Rule15_NamesAndIdsAreUsedOnce) {
  Pair pair;
  Session& side = pair.destination();
  Block& block = pair.SpareBlock({}, 0);
  Block& other = pair.SpareBlock({}, 1);
  ExpectRefused(side, block.OfDestination(), MIG_OK);
  ExpectRefused(side, block.OfDestination(), MIG_E_BLOCK);
  mig_block same_id = other.OfDestination();
  same_id.id = block.destination_id;
  ExpectRefused(side, same_id, MIG_E_BLOCK);
  mig_block same_name = other.OfDestination();
  same_name.name = block.name.c_str();
  ExpectRefused(side, same_name, MIG_E_BLOCK);
  ExpectRefused(side, other.OfDestination(), MIG_OK);
}

TEST_F(Blocks, Rule15_IdsAreTheHostsOwnAndNamesAreCopied) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Block* const blocks[] = {&pair.SpareBlock({}, 0), &pair.SpareBlock({}, 1)};
  const uint32_t ids[] = {0, ~0U};
  for (int i = 0; i < 2; ++i) {
    char name[] = "crossed0";
    name[7] = static_cast<char>('0' + i);
    mig_block source = blocks[i]->OfSource();
    mig_block destination = blocks[i]->OfDestination();
    source.name = destination.name = name;
    source.id = ids[i];
    destination.id = ids[1 - i];  // the same numbers, the other way round
    Add(pair.source(), source);
    Add(pair.destination(), destination);
    memset(name, 'x', 8);
    blocks[i]->source.Fill(0, blocks[i]->spec.length, 10 + ids[i]);
  }
  ASSERT_TRUE(pair.Exchange());
  ASSERT_TRUE(pair.Round(
      {{0, 64 * kPage, ids[0], 0, 0}, {0, 64 * kPage, ids[1], 0, 0}}));
  for (const Block* block : blocks) {
    EXPECT_TRUE(block->source.Equals(block->destination)) << block->name;
  }
}

TEST_F(Blocks, Rule15_BlocksMayBeAddedBeforeConnecting) {
  Pair pair;
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.Connect());
  ASSERT_TRUE(pair.AddBlock());
  ASSERT_TRUE(pair.Exchange());
  pair.block(0).source.Fill(0, 64 * kPage, 1);
  pair.block(1).source.Fill(0, 64 * kPage, 2);
  ASSERT_TRUE(pair.Round({pair.block(0).Whole(), pair.block(1).Whole()}));
  EXPECT_TRUE(pair.block(0).source.Equals(pair.block(0).destination));
  EXPECT_TRUE(pair.block(1).source.Equals(pair.block(1).destination));
}

TEST_F(Blocks, Rule15_TheOrderOfExchangesIsFree) {
  for (const bool source_first : {true, false}) {
    Pair pair;
    ASSERT_TRUE(pair.Connect());
    ASSERT_TRUE(pair.AddBlock());
    Session& first = source_first ? pair.source() : pair.destination();
    Session& second = source_first ? pair.destination() : pair.source();
    ASSERT_EQ(first.Exchange(), MIG_OK);
    DriveFor({&first, &second}, milliseconds(20));
    EXPECT_FALSE(first.Saw(MIG_EVENT_BLOCKS_READY));
    EXPECT_FALSE(second.Saw(MIG_EVENT_BLOCKS_READY));
    ASSERT_EQ(second.Exchange(), MIG_OK);
    EXPECT_TRUE(pair.Pump([&] {
      return first.Saw(MIG_EVENT_BLOCKS_READY) &&
             second.Saw(MIG_EVENT_BLOCKS_READY);
    })) << pair.Describe();
  }
}

}  // namespace
}  // namespace mig::conformance
