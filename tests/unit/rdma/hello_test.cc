// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/hello.h"

#include <functional>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/private_data.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

Hello HelloOf(uint32_t role) {
  Hello hello;
  hello.role = role;
  hello.auth = 1;
  hello.uuid.fill(0x42);
  hello.attempt = 3;
  hello.nonce.fill(static_cast<uint8_t>(role));
  hello.max_message = 1u << 20;
  hello.window = 4u << 20;
  hello.peer_timeout_ns = 10'000'000'000;
  hello.chunk_size = 32u << 20;
  hello.data_qps = 2;
  return hello;
}
const Hello kSource = HelloOf(MIG_ROLE_SOURCE);
const Hello kDestination = HelloOf(MIG_ROLE_DESTINATION);

TEST(RdmaHello, C23HasTheseBytes) {
  Hello hello = kSource;
  hello.extensions = "x?";
  const std::vector<uint8_t> bytes = EncodeHello(hello);
  ASSERT_EQ(bytes.size(), kHelloFixedSize + 2);
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 8), "MIGRDM\r\n");
  EXPECT_EQ(bytes[11], 1);     // wire_min
  EXPECT_EQ(bytes[15], 1);     // wire_max
  EXPECT_EQ(bytes[19], 1);     // role
  EXPECT_EQ(bytes[23], 1);     // auth
  EXPECT_EQ(bytes[24], 0x42);  // uuid
  EXPECT_EQ(bytes[47], 3);     // attempt
  EXPECT_EQ(bytes[48], 1);     // nonce
  EXPECT_EQ(bytes[85], 0x10);  // max_message
  EXPECT_EQ(bytes[93], 0x40);  // window
  EXPECT_EQ(bytes[108], 2);    // chunk_size
  EXPECT_EQ(bytes[123], 2);    // data_qps
  EXPECT_EQ(bytes[127], 2);    // extensions_length
  EXPECT_EQ(bytes[144], 'x');
}

TEST(RdmaHello, ComesBackAsItWas) {
  const auto hello = DecodeHello(EncodeHello(kDestination));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(EncodeHello(*hello), EncodeHello(kDestination));
}

TEST(RdmaHello, C29EveryOneCutOrLengthenedIsRefused) {
  Hello hello = kSource;
  hello.extensions = "a?,b?";
  const std::vector<uint8_t> right = EncodeHello(hello);
  for (size_t size = 0; size < right.size(); ++size) {
    EXPECT_FALSE(DecodeHello(std::span(right.data(), size)).ok()) << size;
  }
  std::vector<uint8_t> longer = right;
  longer.push_back('x');
  EXPECT_FALSE(DecodeHello(longer).ok());
  std::vector<uint8_t> magic = right;
  magic[6] = '\n';
  EXPECT_FALSE(DecodeHello(magic).ok());
  std::vector<uint8_t> control = right;
  control.back() = '\x1b';
  EXPECT_FALSE(DecodeHello(control).ok());
}

TEST(RdmaHello, BothSidesComeToTheSameAgreement) {
  Hello theirs = kDestination;
  theirs.max_message = 512u << 10;
  theirs.window = 512u << 10;
  theirs.peer_timeout_ns = 5'000'000'000;
  theirs.chunk_size = 1u << 20;
  bool other_vm = true;
  const auto ours = Negotiate(kSource, theirs, &other_vm);
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_FALSE(other_vm);
  const auto back = Negotiate(theirs, kSource, &other_vm);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ours->max_message, 512u << 10);
  EXPECT_EQ(ours->max_message, back->max_message);
  EXPECT_EQ(ours->chunk_size, 1u << 20);
  EXPECT_EQ(ours->chunk_size, back->chunk_size);
  EXPECT_EQ(ours->peer_timeout_ns, back->peer_timeout_ns);
  EXPECT_EQ(ours->peer_window, 512u << 10);
  EXPECT_EQ(back->peer_window, 4u << 20);
  EXPECT_EQ(ours->data_qps, 2u);
}

TEST(RdmaHello, AnotherVmOrAttemptIsNotTheRightPeer) {
  bool other_vm = false;
  Hello theirs = kDestination;
  theirs.uuid[15] = 0;
  EXPECT_EQ(ErrorCode(Negotiate(kSource, theirs, &other_vm).status()),
            MIG_E_PEER_MISMATCH);
  EXPECT_TRUE(other_vm);
  theirs = kDestination;
  theirs.attempt = 4;
  other_vm = false;
  const absl::Status status = Negotiate(kSource, theirs, &other_vm).status();
  EXPECT_TRUE(other_vm);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the attempt is 3 here and 4 at the peer"));
}

// Found at the handshake, naming both values.
TEST(RdmaHello, C27C30WhatDiffersIsRefusedWithBothValues) {
  const struct {
    std::function<void(Hello*)> change;
    const char* text;
  } cases[] = {
      {[](Hello* h) { h->wire_min = h->wire_max = 2; },
       "the wire version is 1..1 here and 2..2 at the peer"},
      {[](Hello* h) { h->role = MIG_ROLE_SOURCE; },
       "the role is source here and source at the peer"},
      {[](Hello* h) { h->role = 7; },
       "the role is source here and unknown at the peer"},
      {[](Hello* h) { h->data_qps = 8; },
       "data-qps is 2 here and 8 at the peer"},
      {[](Hello* h) { h->extensions = "a?,postcopy"; },
       "requires extension 'postcopy'"},
      {[](Hello* h) { h->max_message = 1000; }, "messages of 1000 bytes"},
      {[](Hello* h) { h->max_message = 65u << 20; }, "messages of 68157440"},
      {[](Hello* h) { h->window = h->max_message - 1; }, "a window of 1048575"},
      {[](Hello* h) { h->peer_timeout_ns = 0; }, "a peer timeout of 0"},
      {[](Hello* h) { h->chunk_size = 3u << 20; }, "chunks of 3145728"},
      {[](Hello* h) { h->chunk_size = 0; }, "chunks of 0"},
      {[](Hello* h) { h->chunk_size = 2u << 30; }, "chunks of 2147483648"},
  };
  for (const auto& [change, text] : cases) {
    Hello theirs = kDestination;
    change(&theirs);
    bool other_vm = true;
    const absl::Status status = Negotiate(kSource, theirs, &other_vm).status();
    EXPECT_EQ(ErrorCode(status), MIG_E_PEER_MISMATCH) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_FALSE(other_vm) << text;
  }
}

PrivateData DataQp() {
  PrivateData data;
  data.kind = QpKind::kData;
  data.role = MIG_ROLE_SOURCE;
  data.index = 1;
  data.count = 2;
  data.session.fill(0x11);
  data.mac.fill(0x22);
  return data;
}

TEST(PrivateDataTest, C23HasTheseBytesAndFits) {
  static_assert(kPrivateDataSize <= kMaxPrivateData);
  PrivateData data = DataQp();
  data.slots = 0x0304;
  const auto bytes = EncodePrivateData(data);
  const std::array<uint8_t, 16> head = {'M', 'I', 'G', 'R', 1, 2, 1, 0,
                                        0,   1,   0,   2,   3, 4, 0, 0};
  EXPECT_TRUE(std::equal(head.begin(), head.end(), bytes.begin()));
  EXPECT_EQ(bytes[16], 0x11);
  EXPECT_EQ(bytes[47], 0x22);
}

TEST(PrivateDataTest, ComesBackAlsoWithTheFabricsPadding) {
  const auto bytes = EncodePrivateData(DataQp());
  std::vector<uint8_t> padded(bytes.begin(), bytes.end());
  padded.resize(kMaxPrivateData);
  const auto data = DecodePrivateData(padded);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->kind, QpKind::kData);
  EXPECT_EQ(data->index, 1);
  EXPECT_EQ(data->count, 2);
  EXPECT_EQ(EncodePrivateData(*data), bytes);
}

TEST(PrivateDataTest, C37WhatIsNotOfThisProtocolIsRefused) {
  const auto right = EncodePrivateData(DataQp());
  for (size_t size = 0; size < right.size(); ++size) {
    EXPECT_FALSE(DecodePrivateData(std::span(right.data(), size)).ok());
  }
  const auto refused = [&right](size_t at, uint8_t value) {
    auto bytes = right;
    bytes[at] = value;
    return ErrorCode(DecodePrivateData(bytes).status());
  };
  EXPECT_EQ(refused(0, 'X'), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(refused(4, 2), MIG_E_PEER_MISMATCH);
  EXPECT_EQ(refused(5, 3), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(refused(6, 3), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(refused(7, 1), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(refused(9, 2), MIG_E_PEER_PROTOCOL) << "index beyond count";
  EXPECT_EQ(refused(5, 1), MIG_E_PEER_PROTOCOL) << "control with an index";
  PrivateData control;
  control.role = MIG_ROLE_SOURCE;
  EXPECT_FALSE(DecodePrivateData(EncodePrivateData(control)).ok())
      << "control without receives";
}

TEST(PrivateDataTest, C37TheMacIsBoundToKeyHellosRoleAndIndex) {
  const std::vector<uint8_t> a = EncodeHello(kSource);
  const std::vector<uint8_t> b = EncodeHello(kDestination);
  const auto mac = [](const char* key, std::span<const uint8_t> c,
                      std::span<const uint8_t> l, uint8_t role,
                      uint16_t index) {
    const auto made = DataQpMac(key, c, l, role, index);
    EXPECT_TRUE(made.ok());
    return *made;
  };
  const auto right = mac("secret", a, b, 1, 0);
  EXPECT_TRUE(SameMac(right, mac("secret", a, b, 1, 0)));
  EXPECT_FALSE(SameMac(right, mac("other", a, b, 1, 0)));
  EXPECT_FALSE(SameMac(right, mac("", a, b, 1, 0)));
  EXPECT_FALSE(SameMac(right, mac("secret", b, a, 1, 0)));
  EXPECT_FALSE(SameMac(right, mac("secret", a, b, 2, 0)));
  EXPECT_FALSE(SameMac(right, mac("secret", a, b, 1, 1)));
  Hello fresh = kSource;
  fresh.nonce[0] ^= 1;
  EXPECT_FALSE(SameMac(right, mac("secret", EncodeHello(fresh), b, 1, 0)));
}

}  // namespace
}  // namespace mig::rdma
