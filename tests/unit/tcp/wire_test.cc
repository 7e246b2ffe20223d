// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The wire format byte by byte (C23), and what decoders do with less, more and
// other than was sent (C29).
#include "tcp/wire.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "common/error.h"
#include "common/message_credit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tcp/handshake.h"
#include "tcp/uri.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

template <typename Bytes>
std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(std::data(bytes)), std::size(bytes)));
}
std::string Packed(absl::string_view hex) {
  return absl::StrReplaceAll(hex, {{" ", ""}});
}

std::array<uint8_t, kHeaderSize> Header(FrameType type) {
  FrameHeader header;
  header.length = 0x01020304;
  header.type = type;
  header.argument = 0x1122334455667788;
  std::array<uint8_t, kHeaderSize> bytes;
  EncodeHeader(header, bytes);
  return bytes;
}

TEST(WireTest, C23EveryFrameHeaderHasItsGoldenBytes) {
  for (int type = 1; type <= kMaxFrameType; ++type) {
    const auto bytes = Header(static_cast<FrameType>(type));
    const std::string expected = Packed("01020304 ") +
                                 Hex(std::array{static_cast<uint8_t>(type)}) +
                                 Packed("00 0000 1122334455667788");
    EXPECT_EQ(Hex(bytes), expected);
    const auto back = DecodeHeader(bytes);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->length, 0x01020304u);
    EXPECT_EQ(back->argument, 0x1122334455667788u);
  }
}

TEST(WireTest, FrameTypesKeepTheirNumbers) {
  const FrameType kInOrder[] = {
      FrameType::kHello,     FrameType::kAuth,    FrameType::kAbort,
      FrameType::kBlocks,    FrameType::kData,    FrameType::kRoundEnd,
      FrameType::kRoundAck,  FrameType::kMessage, FrameType::kCredit,
      FrameType::kHeartbeat, FrameType::kBusy,    FrameType::kOffer,
      FrameType::kCommitted, FrameType::kRefused, FrameType::kWithdraw,
      FrameType::kBye,       FrameType::kByeAck,  FrameType::kBlockRemoved};
  int number = 0;
  for (const FrameType type : kInOrder) {
    EXPECT_EQ(static_cast<int>(type), ++number);
  }
  EXPECT_EQ(number, kMaxFrameType);
}

TEST(WireTest, UnknownTypesFlagsAndChannelsAreRefused) {
  auto bytes = Header(FrameType::kMessage);
  for (const uint8_t type : {0, 19, 255}) {
    bytes[4] = type;
    EXPECT_EQ(ErrorCode(DecodeHeader(bytes).status()), MIG_E_PEER_PROTOCOL);
  }
  bytes = Header(FrameType::kMessage);
  bytes[5] = 1;
  EXPECT_FALSE(DecodeHeader(bytes).ok());
  bytes = Header(FrameType::kMessage);
  bytes[7] = 1;
  EXPECT_FALSE(DecodeHeader(bytes).ok());
  bytes = Header(FrameType::kAbort);
  bytes[5] = kAbortGuestNotTaken;
  EXPECT_TRUE(DecodeHeader(bytes).ok());
  bytes[5] = 2;
  EXPECT_FALSE(DecodeHeader(bytes).ok());
}

TEST(WireTest, C23RangesAndSumsHaveTheirGoldenBytes) {
  std::array<uint8_t, kWireRangeSize> bytes;
  EncodeRange({7, MIG_RANGE_ZERO, 0x123456789000, 0x2000}, bytes);
  EXPECT_EQ(Hex(bytes),
            Packed("00000007 00000001 0000123456789000 0000000000002000"));
  const WireRange back = DecodeRange(bytes);
  EXPECT_EQ(back.block, 7u);
  EXPECT_EQ(back.flags, MIG_RANGE_ZERO);
  EXPECT_EQ(back.offset, 0x123456789000u);
  EXPECT_EQ(back.length, 0x2000u);
  const auto sums = EncodeSums({0x0102, 0x0304});
  EXPECT_EQ(Hex(sums), Packed("0000000000000102 0000000000000304"));
  for (size_t size = 0; size < 40; ++size) {
    EXPECT_EQ(DecodeSums(std::vector<uint8_t>(size)).ok(), size == 16);
  }
}

Hello SampleHello() {
  Hello hello;
  hello.wire_min = 1;
  hello.wire_max = 2;
  hello.role = MIG_ROLE_DESTINATION;
  hello.auth = 1;
  for (size_t i = 0; i < 16; ++i) hello.uuid[i] = static_cast<uint8_t>(i);
  hello.attempt = 0x0a;
  hello.nonce.fill(0xee);
  hello.max_message = 0x100000;
  hello.window = 0x400000;
  hello.peer_timeout_ns = 10'000'000'000;
  hello.connections = 1;
  hello.connection_index = 0;
  hello.features = 0x80;
  hello.extensions = "x-a?";
  return hello;
}

TEST(WireTest, C23AHelloHasItsGoldenBytes) {
  const std::vector<uint8_t> bytes = EncodeHello(SampleHello());
  EXPECT_EQ(Hex(bytes),
            Packed("4d49475443500d0a 00000001 00000002 00000002 00000001"
                   "000102030405060708090a0b0c0d0e0f 000000000000000a") +
                std::string(64, 'e') +
                Packed("0000000000100000 0000000000400000 00000002540be400"
                       "00000001 00000000 0000000000000080 00000004 00000000"
                       "782d613f"));
  const auto back = DecodeHello(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(EncodeHello(*back), bytes);
}

TEST(WireTest, C29AHelloOfAnotherLengthOrMagicIsRefused) {
  const std::vector<uint8_t> good = EncodeHello(SampleHello());
  for (size_t size = 0; size < good.size() + 8; ++size) {
    std::vector<uint8_t> bytes = good;
    bytes.resize(size);
    EXPECT_EQ(DecodeHello(bytes).ok(), size == good.size()) << size;
  }
  for (size_t i = 0; i < 8; ++i) {
    std::vector<uint8_t> bytes = good;
    bytes[i] ^= 0x20;
    EXPECT_FALSE(DecodeHello(bytes).ok()) << i;
  }
  std::vector<uint8_t> bytes = good;
  bytes[120] = 0xff;  // an extension length near 2^32
  EXPECT_FALSE(DecodeHello(bytes).ok());
  bytes = good;
  bytes.back() = 0x1b;
  EXPECT_FALSE(DecodeHello(bytes).ok());
}

TEST(WireTest, C23AByteSwappedHelloIsRefusedWithBothVersions) {
  std::vector<uint8_t> bytes = EncodeHello(SampleHello());
  std::reverse(bytes.begin() + 8, bytes.begin() + 12);
  std::reverse(bytes.begin() + 12, bytes.begin() + 16);
  const auto swapped = DecodeHello(bytes);
  ASSERT_TRUE(swapped.ok());
  Hello ours = SampleHello();
  ours.role = MIG_ROLE_SOURCE;
  bool other_vm = true;
  const auto agreed = Negotiate(ours, *swapped, &other_vm);
  EXPECT_EQ(ErrorCode(agreed.status()), MIG_E_PEER_MISMATCH);
  EXPECT_FALSE(other_vm);
  EXPECT_THAT(std::string(agreed.status().message()),
              HasSubstr("1..2 here and 16777216..33554432 at the peer"));
}

std::vector<BlockDescription> SampleBlocks() {
  return {{7, 1, 0x40000000, 0x1000, "ram"}, {8, 0, 0x2000, 0x400, "vga"}};
}

TEST(WireTest, C23ABlockTableHasItsGoldenBytes) {
  const std::vector<uint8_t> bytes = EncodeBlocks(SampleBlocks());
  EXPECT_EQ(
      Hex(bytes),
      Packed("00000002"
             "00000007 00000001 0000000040000000 0000000000001000 00000003"
             "72616d"
             "00000008 00000000 0000000000002000 0000000000000400 00000003"
             "766761"));
  EXPECT_EQ(Hex(EncodeBlocks({})), "00000000");
}

TEST(WireTest, C29ABlockTableIsTakenOnlyWhole) {
  const std::vector<uint8_t> good = EncodeBlocks(SampleBlocks());
  ASSERT_EQ(DecodeBlocks(good)->size(), 2u);
  for (size_t size = 0; size < good.size() + 40; ++size) {
    std::vector<uint8_t> bytes = good;
    bytes.resize(size);
    EXPECT_EQ(DecodeBlocks(bytes).ok(), size == good.size()) << size;
  }
  for (const uint32_t count : {0u, 1u, 3u, 65536u, 65537u, 0xffffffffu}) {
    std::vector<uint8_t> bytes = good;
    for (int i = 0; i < 4; ++i) {
      bytes[static_cast<size_t>(i)] =
          static_cast<uint8_t>(count >> (24 - 8 * i));
    }
    EXPECT_FALSE(DecodeBlocks(bytes).ok()) << count;
  }
  for (const uint8_t name : {0, 2, 4, 255}) {
    std::vector<uint8_t> bytes = good;
    bytes[4 + 27] = name;
    EXPECT_FALSE(DecodeBlocks(bytes).ok()) << name;
  }
}

// Rules 14.1 to 14.3: who it is comes before what it can do.
TEST(NegotiateTest, OnlyTheRightPeersDifferencesAreFatal) {
  Hello ours = SampleHello();
  ours.role = MIG_ROLE_SOURCE;
  ours.extensions.clear();
  const auto negotiate = [&ours](auto change, bool* other_vm) {
    Hello theirs = SampleHello();
    change(&theirs);
    return Negotiate(ours, theirs, other_vm);
  };
  bool other = true;
  const auto agreed =
      negotiate([](Hello* h) { h->max_message = 1u << 19; }, &other);
  ASSERT_TRUE(agreed.ok());
  EXPECT_FALSE(other);
  EXPECT_EQ(agreed->wire_version, 2u);
  EXPECT_EQ(agreed->max_message, 1u << 19);
  const auto stranger = [](Hello* h) {
    h->uuid[0] = 9;
    h->wire_min = h->wire_max = 77;
  };
  EXPECT_THAT(std::string(negotiate(stranger, &other).status().message()),
              HasSubstr("00010203-0405-0607-0809-0a0b0c0d0e0f here and "
                        "09010203-0405-0607-0809-0a0b0c0d0e0f at the peer"));
  EXPECT_TRUE(other);
  EXPECT_THAT(std::string(negotiate([](Hello* h) { h->attempt = 11; }, &other)
                              .status()
                              .message()),
              HasSubstr("10 here and 11"));
  EXPECT_TRUE(other);
  const std::function<void(Hello*)> kFatal[] = {
      [](Hello* h) { h->wire_min = h->wire_max = 3; },
      [](Hello* h) { h->role = MIG_ROLE_SOURCE; },
      [](Hello* h) { h->role = 0; },
      [](Hello* h) { h->connections = 2; },
      [](Hello* h) { h->connection_index = 1; },
      [](Hello* h) { h->extensions = "needed"; },
      [](Hello* h) { h->max_message = 524287; },
      [](Hello* h) { h->max_message = ~uint64_t{0}; },
      [](Hello* h) { h->window = h->max_message - 1; },
      [](Hello* h) { h->peer_timeout_ns = 0; }};
  for (const auto& change : kFatal) {
    other = true;
    EXPECT_EQ(ErrorCode(negotiate(change, &other).status()),
              MIG_E_PEER_MISMATCH);
    EXPECT_FALSE(other);
  }
  EXPECT_LE(negotiate([](Hello* h) { h->window = ~uint64_t{0}; }, &other)
                ->peer_window,
            256u << 20)
      << "a peer can't lift the bound of this side's queue";
}

TEST(CreditTest, AWindowIsKeptAndOneMessageAlwaysFits) {
  CreditWindow window;
  window.Open(1000);
  EXPECT_TRUE(window.Fits(5000)) << "alone";
  window.Take(500);
  EXPECT_EQ(window.used(), 500 + kMessageOverhead);
  EXPECT_FALSE(window.Fits(0));
  EXPECT_FALSE(window.GiveBack(757));
  EXPECT_TRUE(window.GiveBack(756));
  EXPECT_FALSE(window.GiveBack(1));
  EXPECT_EQ(window.used(), 0u);
}

TEST(UriTest, TakesEachForm) {
  const auto tcp = ParseUri("tcp://example.org:4444");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->host, "example.org");
  EXPECT_EQ(tcp->port, "4444");
  EXPECT_EQ(ParseUri("tcp://[fe80::1%25eth0]:1")->host, "fe80::1%eth0");
  EXPECT_EQ(ParseUri("tcp://[fe80::1%eth0]:1")->host, "fe80::1%eth0");
  EXPECT_EQ(ParseUri("tcp://:0")->host, "");
  EXPECT_EQ(ParseUri("tcp://h:00080")->port, "80");
  EXPECT_EQ(ParseUri("unix:/a b")->path, "/a b");
  EXPECT_EQ(ParseUri("unix:rel")->path, "rel");
  EXPECT_EQ(ParseUri("fd:12")->fd, 12);
}

TEST(UriTest, RefusesTheRestSayingWhatIsRight) {
  for (const std::string& uri : {std::string(""),
                                 std::string("tcp:"),
                                 std::string("tcp://"),
                                 std::string("tcp://h"),
                                 std::string("tcp://h:"),
                                 std::string("tcp://h:65536"),
                                 std::string("tcp://h:-1"),
                                 std::string("tcp://h:+1"),
                                 std::string("tcp://h: 1"),
                                 std::string("tcp://h:1x"),
                                 std::string("tcp://h:99999999999999999999"),
                                 std::string("tcp://::1:80"),
                                 std::string("tcp://[::1]"),
                                 std::string("tcp://[::1]80"),
                                 std::string("tcp://[::1:80"),
                                 std::string("tcp://a/b:80"),
                                 std::string("tcp://a b:80"),
                                 "tcp://" + std::string(256, 'h') + ":1",
                                 std::string("unix:"),
                                 "unix:" + std::string(108, 'p'),
                                 std::string("fd:"),
                                 std::string("fd:-1"),
                                 std::string("fd:x"),
                                 std::string("fd: 1"),
                                 std::string("fd:4294967296"),
                                 std::string("rdma://h:1"),
                                 std::string("TCP://h:1")}) {
    const auto parsed = ParseUri(uri);
    EXPECT_EQ(ErrorCode(parsed.status()), MIG_E_URI) << uri;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("give tcp://HOST:PORT"));
  }
}

}  // namespace
}  // namespace mig::tcp
