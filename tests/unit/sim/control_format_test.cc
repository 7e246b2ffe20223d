// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/control_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/state_stream.h"

namespace mig::sim {
namespace {

GuestMessage SomeGuest() {
  GuestMessage message;
  message.proof_follows = true;
  message.seed = 7;
  message.workload = "bank:accounts=10";
  message.machine = "boot";
  message.blocks = {{"ram", 1 << 20, 4096, 0}, {"rom", 8192, 4096, 1}};
  return message;
}

PagesMessage SomePages() { return {{"ram", 0, 8192}, {1, 2}}; }

ResultMessage SomeResult() {
  return {VerifyOutcome::kMismatch, 1, 2, 3, "boot", "page 7 differs"};
}

TEST(ControlFormatTest, EveryMessageReadsBackAsItWas) {
  EXPECT_EQ(*ParseGuest(Encode(SomeGuest())), SomeGuest());
  EXPECT_EQ(*ParsePages(Encode(SomePages())), SomePages());
  const PageQueryMessage query = {"ram", 4096, 2 << 20};
  EXPECT_EQ(*ParsePageQuery(Encode(query)), query);
  EXPECT_EQ(*ParseResult(Encode(SomeResult())), SomeResult());
  const ReasonMessage reason = {"no memory"};
  EXPECT_EQ(*ParseReason(Encode(reason)), reason);
  const PingMessage ping = {0x0102030405060708};
  EXPECT_EQ(*ParsePing(Encode(ping)), ping);
}

// C29: whatever is cut off or added, the message is refused as a whole.
template <typename Parse>
void ExpectOnlyExactLength(const Bytes& good, Parse parse) {
  ASSERT_TRUE(parse(ByteSpan(good)).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse(ByteSpan(good).subspan(0, length)).ok()) << length;
  }
  for (size_t extra = 1; extra <= 16; ++extra) {
    Bytes longer = good;
    longer.resize(good.size() + extra);
    EXPECT_FALSE(parse(ByteSpan(longer)).ok()) << extra;
  }
}

TEST(ControlFormatTest, C29CutOrLengthenedMessagesAreRefused) {
  ExpectOnlyExactLength(Encode(SomeGuest()), ParseGuest);
  ExpectOnlyExactLength(Encode(SomePages()), ParsePages);
  ExpectOnlyExactLength(Encode(PageQueryMessage{"ram", 1, 2}), ParsePageQuery);
  ExpectOnlyExactLength(Encode(SomeResult()), ParseResult);
  ExpectOnlyExactLength(Encode(ReasonMessage{"why"}), ParseReason);
  ExpectOnlyExactLength(Encode(PingMessage{7}), ParsePing);
}

// Any byte may be anything: nothing may crash, and what is accepted must be
// what it says.
TEST(ControlFormatTest, C29AlteredBytesAreRefusedOrReadBack) {
  const Bytes good = Encode(SomeGuest());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      Bytes altered = good;
      altered[at] = static_cast<std::byte>(value);
      const absl::StatusOr<GuestMessage> parsed = ParseGuest(altered);
      if (!parsed.ok()) continue;
      EXPECT_EQ(Encode(*parsed).size(), altered.size());
    }
  }
}

TEST(ControlFormatTest, C29CountsAreCheckedAgainstTheBytesThatAreThere) {
  Bytes pages = Encode(SomePages());
  const size_t count_at = 2 + 3 + 8 + 8;  // behind the region
  ASSERT_EQ(pages.at(count_at + 3), std::byte{2});
  for (const int value : {0, 1, 3, 0xff}) {
    pages[count_at + 3] = static_cast<std::byte>(value);
    EXPECT_FALSE(ParsePages(pages).ok()) << value;
  }
  pages[count_at + 3] = std::byte{2};
  pages[count_at] = std::byte{0x20};  // times 8 this overflows 32 bits
  EXPECT_FALSE(ParsePages(pages).ok());
}

TEST(ControlFormatTest, ImplausibleBlocksAreRefused) {
  GuestMessage message = SomeGuest();
  message.blocks[0].length = 4097;
  EXPECT_FALSE(ParseGuest(Encode(message)).ok());
  message.blocks[0] = {"", 4096, 4096, 0};
  EXPECT_FALSE(ParseGuest(Encode(message)).ok());
  message.blocks[0] = {"ram", 4096, 0, 0};
  EXPECT_FALSE(ParseGuest(Encode(message)).ok());
  message.blocks.clear();
  EXPECT_FALSE(ParseGuest(Encode(message)).ok());
  message.blocks.assign(kMaxBlocks + 1, {"ram", 4096, 4096, 0});
  EXPECT_FALSE(ParseGuest(Encode(message)).ok());
}

TEST(ControlFormatTest, TextsOfThePeerCarryNoControlCharacters) {
  const ReasonMessage reason = {"a\033[2Jb\n"};
  EXPECT_EQ(ParseReason(Encode(reason))->text, "a?[2Jb?");
}

StateSections SomeSections() {
  return {{kSectionGuest, {std::byte{1}, std::byte{2}}},
          {kSectionExpected, {}},
          {kSectionFiller, Bytes(100, std::byte{9})}};
}

TEST(StateStreamTest, SectionsReadBack) {
  EXPECT_EQ(*ParseState(EncodeState(SomeSections())), SomeSections());
  EXPECT_TRUE(ParseState(EncodeState({})).ok());
}

TEST(StateStreamTest, C29AlteredCutOrLengthenedStateIsRefused) {
  const Bytes good = EncodeState(SomeSections());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ParseState(ByteSpan(good).subspan(0, length)).ok());
  }
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes altered = good;
    altered[at] ^= std::byte{1};
    EXPECT_FALSE(ParseState(altered).ok()) << at;
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(ParseState(longer).ok());
}

Bytes Reassemble(const Bytes& whole, uint64_t max_message) {
  PieceAssembler assembler("state");
  for (uint64_t at = 0; at < whole.size(); at += PieceBytes(max_message)) {
    EXPECT_FALSE(assembler.complete());
    EXPECT_TRUE(assembler.Add(EncodePiece(whole, at, max_message)).ok());
  }
  EXPECT_TRUE(assembler.complete());
  return assembler.whole();
}

TEST(PieceAssemblerTest, PutsPiecesOfAnySizeTogether) {
  const Bytes whole = EncodeState(SomeSections());
  for (const uint64_t max : {17, 24, 100, 4096}) {
    EXPECT_EQ(Reassemble(whole, max), whole) << max;
  }
}

TEST(PieceAssemblerTest, RefusesWhatDoesNotFollow) {
  const Bytes whole(100, std::byte{5});
  PieceAssembler assembler("state");
  EXPECT_FALSE(assembler.Add(EncodePiece(whole, 20, 36)).ok()) << "not first";
  ASSERT_TRUE(assembler.Add(EncodePiece(whole, 0, 36)).ok());
  EXPECT_FALSE(assembler.Add(EncodePiece(whole, 0, 36)).ok()) << "twice";
  EXPECT_FALSE(assembler.Add(EncodePiece(whole, 40, 36)).ok()) << "a gap";
  const Bytes other(99, std::byte{5});
  EXPECT_FALSE(assembler.Add(EncodePiece(other, 20, 36)).ok()) << "total";
  EXPECT_FALSE(assembler.Add(EncodePiece(whole, 20, 16)).ok()) << "empty";
  EXPECT_FALSE(assembler.Add(Bytes(15)).ok()) << "no header";
  EXPECT_TRUE(assembler.Add(EncodePiece(whole, 20, 36)).ok());
  EXPECT_FALSE(assembler.complete());
}

TEST(PieceAssemblerTest, RefusesMoreThanTheLimit) {
  Bytes message(17);
  message[3] = std::byte{1};  // a total of 2^32
  PieceAssembler assembler("state");
  EXPECT_FALSE(assembler.Add(message).ok());
}

}  // namespace
}  // namespace mig::sim
