// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What no stranger gets past, whatever it has heard: the handshake of every
// transport, with somebody between the two sides.
#include "common/greeting.h"

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using Payload = std::vector<uint8_t>;

constexpr HelloLayout kLayout = {
    {'M', 'I', 'G', 'T', 'S', 'T', '\r', '\n'}, 120, 128};

struct TestGreeting {
  using Hello = CommonHello;
  using Agreement = CommonAgreement;
  static Payload Encode(const Hello& hello) {
    return EncodeCommonHello(hello, kLayout);
  }
  static absl::StatusOr<Hello> Decode(std::span<const uint8_t> payload) {
    Hello hello;
    MIG_RETURN_IF_ERROR(DecodeCommonHello(payload, kLayout, &hello));
    return hello;
  }
  static absl::StatusOr<Agreement> Negotiate(const Hello& ours,
                                             const Hello& theirs,
                                             bool* other_vm) {
    MIG_RETURN_IF_ERROR(CheckIdentity(ours, theirs, other_vm));
    return AgreeOnCommon(ours, theirs);
  }
  static constexpr char kConnecting[] = "test connecting";
  static constexpr char kListening[] = "test listening";
};

CommonHello HelloOf(uint32_t role, bool has_key, uint8_t nonce) {
  CommonHello hello;
  hello.wire_min = hello.wire_max = 1;
  hello.role = role;
  hello.auth = has_key ? 1 : 0;
  hello.uuid.fill(0x42);
  hello.attempt = 1;
  hello.nonce.fill(nonce);
  hello.max_message = 1u << 20;
  hello.window = 4u << 20;
  hello.peer_timeout_ns = 1'000'000'000;
  return hello;
}

// One side, and what it has said.
struct Party {
  Party(bool connecting, const std::string& key, uint8_t nonce)
      : greeting(HelloOf(connecting ? MIG_ROLE_SOURCE : MIG_ROLE_DESTINATION,
                         !key.empty(), nonce),
                 key, connecting,
                 [this](GreetingFrame frame, std::span<const uint8_t> payload) {
                   (frame == GreetingFrame::kHello ? hello : proof)
                       .emplace_back(payload.begin(), payload.end());
                 }) {}
  std::vector<Payload> hello;
  std::vector<Payload> proof;
  Greeting<TestGreeting> greeting;
};

struct Parties {
  explicit Parties(const std::string& connecting_key = "secret",
                   const std::string& listening_key = "secret")
      : c(true, connecting_key, 1), l(false, listening_key, 2) {}
  // Up to where the connecting side has said its proof.
  void Hellos() {
    c.greeting.Start();
    EXPECT_TRUE(l.greeting.OnHello(c.hello[0]).ok());
    EXPECT_TRUE(c.greeting.OnHello(l.hello[0]).ok());
  }
  Party c;
  Party l;
};

bool Refused(const absl::Status& status) {
  return ErrorCode(status) == MIG_E_PEER_AUTH;
}

TEST(GreetingTest, OneKeyOnBothSidesAgrees) {
  Parties p;
  p.Hellos();
  ASSERT_TRUE(p.l.greeting.OnAuth(p.c.proof[0]).ok());
  ASSERT_TRUE(p.c.greeting.OnAuth(p.l.proof[0]).ok());
  EXPECT_TRUE(p.c.greeting.agreement().authenticated);
  EXPECT_TRUE(p.l.greeting.agreement().authenticated);
}

// A guess gets nothing back that it could learn from.
TEST(GreetingTest, C37AnotherKeyIsRefusedAndLearnsNoProof) {
  Parties p("guess", "secret");
  p.Hellos();
  EXPECT_TRUE(Refused(p.l.greeting.OnAuth(p.c.proof[0])));
  EXPECT_TRUE(p.l.proof.empty());
  EXPECT_FALSE(p.l.greeting.fatal()) << "a stranger ends the session";
  EXPECT_FALSE(p.l.greeting.agreed());
}

TEST(GreetingTest, C30AKeyOnOneSideOnlyIsRefusedByBoth) {
  for (const bool connecting_has : {false, true}) {
    Parties p(connecting_has ? "secret" : "", connecting_has ? "" : "secret");
    p.c.greeting.Start();
    EXPECT_TRUE(Refused(p.l.greeting.OnHello(p.c.hello[0])));
    EXPECT_TRUE(Refused(p.c.greeting.OnHello(p.l.hello[0])));
    EXPECT_TRUE(p.c.proof.empty());
    EXPECT_TRUE(p.l.proof.empty());
  }
}

TEST(GreetingTest, C37ACutLengthenedOrChangedProofIsRefused) {
  for (size_t length = 0; length <= kMacSize + 1; ++length) {
    if (length == kMacSize) continue;
    Parties p;
    p.Hellos();
    Payload cut = p.c.proof[0];
    cut.resize(length);
    EXPECT_TRUE(Refused(p.l.greeting.OnAuth(cut))) << length;
  }
  for (size_t bit = 0; bit < 8 * kMacSize; ++bit) {
    Parties p;
    p.Hellos();
    Payload changed = p.c.proof[0];
    changed[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_TRUE(Refused(p.l.greeting.OnAuth(changed))) << bit;
  }
}

// Somebody without the key, who sends a side its own words back: its hello as
// it was, or as the other role's, then its proof.
TEST(GreetingTest, C37AReflectedProofIsRefused) {
  for (const bool other_role : {false, true}) {
    Parties p;
    p.c.greeting.Start();
    Payload hello = p.c.hello[0];
    if (other_role) {
      CommonHello changed = *TestGreeting::Decode(hello);
      changed.role = MIG_ROLE_DESTINATION;
      hello = TestGreeting::Encode(changed);
    }
    EXPECT_TRUE(p.c.greeting.OnHello(hello).ok());
    ASSERT_EQ(p.c.proof.size(), 1u);
    EXPECT_TRUE(Refused(p.c.greeting.OnAuth(p.c.proof[0])));
    EXPECT_FALSE(p.c.greeting.agreed());
  }
}

// The listening side's proof, as if it were the connecting one's.
TEST(GreetingTest, C37AProofOfTheOtherSideIsRefused) {
  Parties p;
  p.Hellos();
  ASSERT_TRUE(p.l.greeting.OnAuth(p.c.proof[0]).ok());
  Party again(false, "secret", 2);  // had it the same nonce once more
  EXPECT_TRUE(again.greeting.OnHello(p.c.hello[0]).ok());
  EXPECT_TRUE(Refused(again.greeting.OnAuth(p.l.proof[0])));
}

TEST(GreetingTest, C37ARecordedHandshakeIsRefusedUnderANewNonce) {
  Parties p;
  p.Hellos();
  ASSERT_TRUE(p.l.greeting.OnAuth(p.c.proof[0]).ok());
  Party next(false, "secret", 3);
  EXPECT_TRUE(next.greeting.OnHello(p.c.hello[0]).ok());
  EXPECT_TRUE(Refused(next.greeting.OnAuth(p.c.proof[0])));
  EXPECT_TRUE(next.proof.empty());
}

// Whoever is between the sides can't make them agree on something else, such
// as on no key, an older version or a longer timeout.
TEST(GreetingTest, C37AHelloChangedOnItsWayIsRefused) {
  const size_t size = TestGreeting::Encode({}).size();
  for (size_t at = 0; at < size; ++at) {
    for (const bool of_connecting : {false, true}) {
      Parties p;
      p.c.greeting.Start();
      Payload first = p.c.hello[0];
      if (of_connecting) first[at] ^= 1;
      if (!p.l.greeting.OnHello(first).ok()) continue;
      Payload second = p.l.hello[0];
      if (!of_connecting) second[at] ^= 1;
      if (!p.c.greeting.OnHello(second).ok()) continue;
      EXPECT_TRUE(Refused(p.l.greeting.OnAuth(p.c.proof[0]))) << at;
    }
  }
}

TEST(GreetingTest, WordsOutOfPlaceAreRefused) {
  Parties p;
  EXPECT_EQ(ErrorCode(p.l.greeting.OnAuth({})), MIG_E_PEER_PROTOCOL);
  p.Hellos();
  EXPECT_EQ(ErrorCode(p.l.greeting.OnHello(p.c.hello[0])), MIG_E_PEER_PROTOCOL);
  ASSERT_TRUE(p.l.greeting.OnAuth(p.c.proof[0]).ok());
  EXPECT_EQ(ErrorCode(p.l.greeting.OnAuth(p.c.proof[0])), MIG_E_PEER_PROTOCOL);
}

// Nobody who has no key is proved by bytes.
TEST(GreetingTest, WithoutAKeyAProofIsEmpty) {
  Parties p("", "");
  p.Hellos();
  EXPECT_FALSE(p.l.greeting.OnAuth(Payload(kMacSize, 0)).ok());
  Parties q("", "");
  q.Hellos();
  EXPECT_TRUE(q.l.greeting.OnAuth(q.c.proof[0]).ok());
  EXPECT_FALSE(q.l.greeting.agreement().authenticated);
}

}  // namespace
}  // namespace mig
