// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/wire.h"

#include <algorithm>
#include <limits>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/reassembler.h"
#include "rdma/wire_blocks.h"

namespace mig::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMaxMessage = 1u << 20;

// A whole SEND of a header and as many bytes as it says.
std::vector<uint8_t> SendOf(const FrameHeader& header) {
  std::vector<uint8_t> send(kHeaderSize + header.length, 0x5a);
  EncodeHeader(header, std::span<uint8_t, kHeaderSize>(send.data(), 16));
  return send;
}

std::string Refused(const std::vector<uint8_t>& send, bool source = true,
                    uint64_t max_message = kMaxMessage) {
  const auto header = DecodeHeader(send, source, max_message);
  EXPECT_EQ(ErrorCode(header.status()), MIG_E_PEER_PROTOCOL);
  return std::string(header.status().message());
}

TEST(RdmaWire, C23HeaderHasTheseBytes) {
  std::array<uint8_t, kHeaderSize> bytes;
  EncodeHeader({.length = 0x0102,
                .slots = 0x0304,
                .type = FrameType::kAbort,
                .flags = 1,
                .channel = 0,
                .argument = 0x1112131415161718},
               bytes);
  EXPECT_THAT(bytes, ElementsAre(1, 2, 3, 4, 3, 1, 0, 0, 0x11, 0x12, 0x13, 0x14,
                                 0x15, 0x16, 0x17, 0x18));
}

TEST(RdmaWire, HeaderComesBackAsItWas) {
  const auto header = DecodeHeader(SendOf({.length = 16,
                                           .slots = 7,
                                           .type = FrameType::kRoundEnd,
                                           .argument = 9}),
                                   true, kMaxMessage);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->length, 16);
  EXPECT_EQ(header->slots, 7);
  EXPECT_EQ(header->type, FrameType::kRoundEnd);
  EXPECT_EQ(header->argument, 9u);
}

TEST(RdmaWire, C23AByteSwappedHeaderIsRefusedWithAReason) {
  std::vector<uint8_t> send =
      SendOf({.length = 16, .type = FrameType::kRoundEnd});
  std::swap(send[0], send[1]);
  EXPECT_THAT(Refused(send), HasSubstr("16 bytes that claims 4096"));
}

TEST(RdmaWire, C29EveryFrameCutOrLengthenedIsRefused) {
  for (int type = 1; type <= kMaxFrameType; ++type) {
    FrameHeader header{.type = static_cast<FrameType>(type)};
    if (header.type == FrameType::kRoundEnd) header.length = 16;
    if (header.type == FrameType::kBlocks ||
        header.type == FrameType::kMessage) {
      header.length = 40;
      header.argument = LongArgument(40, 1);
    }
    if (header.type == FrameType::kHello) header.length = 144;
    if (header.type == FrameType::kAsk || header.type == FrameType::kKeys ||
        header.type == FrameType::kZero) {
      header.length = 48;
    }
    const std::vector<uint8_t> right = SendOf(header);
    const bool by_source = DecodeHeader(right, true, kMaxMessage).ok();
    const bool by_destination = DecodeHeader(right, false, kMaxMessage).ok();
    EXPECT_TRUE(by_source || by_destination) << FrameName(header.type);
    for (size_t size = 0; size < right.size(); ++size) {
      Refused({right.begin(), right.begin() + static_cast<long>(size)},
              by_source);
    }
    std::vector<uint8_t> longer = right;
    longer.push_back(0);
    Refused(longer, by_source);
  }
}

TEST(RdmaWire, WhatVersionOneDoesNotHaveIsRefused) {
  std::vector<uint8_t> send = SendOf({.type = FrameType::kHeartbeat});
  for (const int type : {0, kMaxFrameType + 1, 255}) {
    send[4] = static_cast<uint8_t>(type);
    Refused(send);
  }
  Refused(SendOf({.type = FrameType::kHeartbeat, .flags = 1}));
  Refused(SendOf({.type = FrameType::kAbort, .flags = 2}));
  Refused(SendOf({.type = FrameType::kHeartbeat, .channel = 1}));
  Refused(SendOf({.length = 1, .type = FrameType::kHeartbeat}));
  Refused(SendOf({.length = 513, .type = FrameType::kAbort}));
  Refused(SendOf({.length = 15, .type = FrameType::kRoundEnd}));
}

TEST(RdmaWire, AFrameOfTheOtherRoleIsRefused) {
  const std::vector<uint8_t> offer = SendOf({.type = FrameType::kOffer});
  EXPECT_TRUE(DecodeHeader(offer, true, kMaxMessage).ok());
  EXPECT_THAT(Refused(offer, false),
              HasSubstr("OFFER, which only a source may send"));
  const std::vector<uint8_t> taken = SendOf({.type = FrameType::kCommitted});
  EXPECT_TRUE(DecodeHeader(taken, false, kMaxMessage).ok());
  Refused(taken, true);
}

FrameHeader Part(uint16_t length, uint64_t total) {
  return {.length = length,
          .type = FrameType::kMessage,
          .argument = LongArgument(total, 3)};
}

TEST(RdmaWire, LongFramesStayWithinTheirTotalAndTheirLimit) {
  constexpr auto kFull = static_cast<uint16_t>(kMaxFragment);
  const auto taken = [](const FrameHeader& header) {
    return DecodeHeader(SendOf(header), true, kMaxMessage).ok();
  };
  EXPECT_TRUE(taken(Part(0, 0)));
  EXPECT_TRUE(taken(Part(100, 100)));
  EXPECT_TRUE(taken(Part(kFull, kMaxMessage)));
  EXPECT_TRUE(taken(Part(1, kMaxFragment + 1)));
  EXPECT_FALSE(taken(Part(kFull, kMaxMessage + 1)));
  EXPECT_FALSE(taken(Part(0, kMaxMessage))) << "parts without end";
  EXPECT_FALSE(taken(Part(99, 100)));
  EXPECT_FALSE(taken(Part(101, 100)));
  EXPECT_FALSE(taken(Part(kFull + 1, kMaxMessage)));
  // Nothing of a message before it is known how long one may be.
  EXPECT_FALSE(DecodeHeader(SendOf(Part(1, 1)), true, 0).ok());
}

std::vector<uint8_t> Bytes(size_t size, uint8_t value) {
  return std::vector<uint8_t>(size, value);
}

TEST(RdmaWire, LongFramesArePutTogether) {
  const size_t total = 2 * kMaxFragment + 5;
  Reassembler parts;
  std::vector<uint8_t> whole;
  const FrameHeader header = Part(0, total);
  EXPECT_FALSE(*parts.Add(header, Bytes(kMaxFragment, 1), &whole));
  EXPECT_TRUE(parts.in_frame());
  EXPECT_FALSE(*parts.Add(header, Bytes(kMaxFragment, 2), &whole));
  EXPECT_TRUE(*parts.Add(header, Bytes(5, 3), &whole));
  ASSERT_EQ(whole.size(), total);
  EXPECT_EQ(whole[0], 1);
  EXPECT_EQ(whole[kMaxFragment], 2);
  EXPECT_EQ(whole[total - 1], 3);
  EXPECT_FALSE(parts.in_frame());
  // And the next one, empty.
  EXPECT_TRUE(*parts.Add(Part(0, 0), {}, &whole));
  EXPECT_TRUE(whole.empty());
}

TEST(RdmaWire, C29APartOfAnotherFrameOrLengthIsRefused) {
  const FrameHeader header = Part(0, 2 * kMaxFragment);
  const FrameHeader other_total = Part(0, 3 * kMaxFragment);
  FrameHeader other_type = header;
  other_type.type = FrameType::kBlocks;
  std::vector<uint8_t> whole;
  for (const FrameHeader& second : {other_total, other_type}) {
    Reassembler parts;
    EXPECT_TRUE(parts.Add(header, Bytes(kMaxFragment, 1), &whole).ok());
    EXPECT_EQ(
        ErrorCode(parts.Add(second, Bytes(kMaxFragment, 1), &whole).status()),
        MIG_E_PEER_PROTOCOL);
  }
  Reassembler parts;
  EXPECT_FALSE(parts.Add(header, Bytes(7, 1), &whole).ok()) << "a short part";
}

TEST(RdmaWire, C23ListsHaveTheseBytes) {
  EXPECT_THAT(EncodeZeroRuns(std::vector<WireZeroRun>{{1, 0x200, 0x3000}}),
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 0,  //
                          0, 0, 0, 0, 0, 0, 2, 0,  //
                          0, 0, 0, 0, 0, 0, 0x30, 0));
  EXPECT_THAT(EncodeChunkSpans(std::vector<ChunkSpan>{{1, 2, 3}}),
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0));
  EXPECT_THAT(EncodeChunkKeys(std::vector<ChunkKey>{{1, 2, 3, 0x04050607}}),
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 4, 5, 6, 7));
  EXPECT_THAT(EncodeSums({.data_bytes = 0x102, .zero_bytes = 3}),
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3));
}

TEST(RdmaWire, ListsComeBackAsTheyWere) {
  const auto keys = DecodeChunkKeys(
      EncodeChunkKeys(std::vector<ChunkKey>{{1, 2, 3, 0}, {4, 5, 6, 7}}));
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].rkey, 0u) << "0 is a key like any other";
  EXPECT_EQ((*keys)[1].rkey, 7u);
  const auto runs = DecodeZeroRuns(
      EncodeZeroRuns(std::vector<WireZeroRun>{{1, uint64_t{5} << 32, 4096}}));
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ((*runs)[0].offset, uint64_t{5} << 32);
  const auto sums = DecodeSums(EncodeSums({uint64_t{1} << 40, 2}));
  EXPECT_EQ(sums.data_bytes, uint64_t{1} << 40);
  EXPECT_EQ(sums.zero_bytes, 2u);
}

TEST(RdmaWire, C29ListsThatAreEmptyCutOrOverflowAreRefused) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr uint32_t kMost32 = std::numeric_limits<uint32_t>::max();
  EXPECT_FALSE(DecodeZeroRuns({}).ok());
  EXPECT_FALSE(DecodeZeroRuns(Bytes(23, 0)).ok());
  EXPECT_FALSE(DecodeZeroRuns(Bytes(24, 0)).ok()) << "length 0";
  EXPECT_FALSE(
      DecodeZeroRuns(EncodeZeroRuns(std::vector<WireZeroRun>{{1, kMost, 2}}))
          .ok());
  EXPECT_FALSE(DecodeChunkSpans(Bytes(15, 0)).ok());
  EXPECT_FALSE(DecodeChunkSpans(
                   EncodeChunkSpans(std::vector<ChunkSpan>{{1, 1, kMost32}}))
                   .ok());
  EXPECT_FALSE(
      DecodeChunkSpans(EncodeChunkSpans(std::vector<ChunkSpan>{{1, 1, 0}}))
          .ok());
  EXPECT_FALSE(DecodeChunkKeys({}).ok());
  EXPECT_FALSE(DecodeChunkKeys(Bytes(17, 0)).ok());
}

TEST(RdmaWire, AFullListFillsOneFrame) {
  EXPECT_LE(kMaxZeroRuns * kZeroRunSize, kMaxFragment);
  EXPECT_GT((kMaxZeroRuns + 1) * kZeroRunSize, kMaxFragment);
  EXPECT_LE(kMaxChunkKeys * kChunkKeySize, kMaxFragment);
}

WireBlock BlockOf(const std::string& name) {
  WireBlock block;
  block.description = {
      .id = 7, .flags = 1, .length = 0x2000, .page_size = 0x1000, .name = name};
  block.address = 0x7f0000000000;
  return block;
}

TEST(RdmaWire, C23BlockTableHasTheseBytes) {
  EXPECT_THAT(EncodeBlocks(std::vector<WireBlock>{BlockOf("ab")}),
              ElementsAre(0, 0, 0, 1,                 // count
                          0, 0, 0, 7, 0, 0, 0, 1,     // id, flags
                          0, 0, 0, 0, 0, 0, 0x20, 0,  // length
                          0, 0, 0, 0, 0, 0, 0x10, 0,  // page size
                          0, 0, 0x7f, 0, 0, 0, 0, 0,  // address
                          0, 0, 0, 2, 'a', 'b'));
}

TEST(RdmaWire, BlockTablesComeBackAsTheyWere) {
  const auto blocks = DecodeBlocks(EncodeBlocks(
      std::vector<WireBlock>{BlockOf("ram"), BlockOf(std::string(255, 'x'))}));
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_EQ(blocks->size(), 2u);
  EXPECT_EQ((*blocks)[0].description.name, "ram");
  EXPECT_EQ((*blocks)[0].address, 0x7f0000000000u);
  EXPECT_EQ((*blocks)[1].description.name.size(), 255u);
  EXPECT_TRUE(DecodeBlocks(EncodeBlocks({}))->empty());
}

TEST(RdmaWire, C29EveryBlockTableCutOrLengthenedIsRefused) {
  const std::vector<uint8_t> right =
      EncodeBlocks(std::vector<WireBlock>{BlockOf("ram"), BlockOf("rom")});
  for (size_t size = 0; size < right.size(); ++size) {
    EXPECT_FALSE(DecodeBlocks(std::span(right.data(), size)).ok()) << size;
  }
  std::vector<uint8_t> longer = right;
  longer.push_back(0);
  EXPECT_FALSE(DecodeBlocks(longer).ok());
  for (const uint8_t count : {0, 1, 3, 255}) {
    std::vector<uint8_t> other = right;
    other[3] = count;
    EXPECT_FALSE(DecodeBlocks(other).ok()) << int{count};
  }
}

TEST(RdmaWire, C29BlocksThatWrapAroundOrHaveNoNameAreRefused) {
  WireBlock wrapping = BlockOf("ram");
  wrapping.address = std::numeric_limits<uint64_t>::max() - 0x1000;
  EXPECT_FALSE(
      DecodeBlocks(EncodeBlocks(std::vector<WireBlock>{wrapping})).ok());
  EXPECT_FALSE(
      DecodeBlocks(EncodeBlocks(std::vector<WireBlock>{BlockOf("")})).ok());
  EXPECT_FALSE(DecodeBlocks(EncodeBlocks(std::vector<WireBlock>{
                                BlockOf(std::string(256, 'x'))}))
                   .ok());
}

}  // namespace
}  // namespace mig::rdma
