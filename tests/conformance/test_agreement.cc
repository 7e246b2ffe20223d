// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 14: VM, attempt and extensions.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Agreement : public Conformance {};

std::string Hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

// A listener, and a source that differs from it. The source is refused with a
// message that holds all of `named`; the listener goes on, and serves the right
// source afterwards.
void ExpectStranger(const Identity& here, const Identity& there,
                    const std::vector<std::string>& named) {
  Host host;
  Context context(host);
  Session listener(context, MIG_ROLE_DESTINATION, here);
  ASSERT_EQ(listener.Listen(NextListenUri()), MIG_OK);
  const std::string address = listener.LocalAddress();
  {
    Session stranger(context, MIG_ROLE_SOURCE, there);
    ASSERT_EQ(stranger.Connect(address), MIG_OK) << stranger.error().message;
    EXPECT_TRUE(Drive({&stranger, &listener}, [&] { return stranger.Ended(); }))
        << stranger.Describe();
    const CallError error = stranger.SessionError();
    EXPECT_EQ(StatusName(error.code), "MIG_E_PEER_MISMATCH") << error.message;
    for (const std::string& value : named) {
      EXPECT_NE(error.message.find(value), std::string::npos)
          << "'" << value << "' is not in: " << error.message;
    }
    EXPECT_FALSE(stranger.Saw(MIG_EVENT_CONNECTED));
  }
  DriveFor({&listener}, milliseconds(10));
  EXPECT_FALSE(listener.Ended())
      << "a stranger ended it: " << listener.Describe();
  EXPECT_FALSE(listener.Saw(MIG_EVENT_CONNECTED));
  Session right(context, MIG_ROLE_SOURCE, here);
  ASSERT_EQ(right.Connect(address), MIG_OK);
  EXPECT_TRUE(Drive({&right, &listener},
                    [&] {
                      return right.Saw(MIG_EVENT_CONNECTED) &&
                             listener.Saw(MIG_EVENT_CONNECTED);
                    }))
      << right.Describe() << listener.Describe();
}

TEST_F(Agreement, Rule14_C27_AnotherVmIsRefused) {
  Identity here;
  Identity there;
  ExpectStranger(here, there,
                 {Hex(here.uuid.data(), 4), Hex(there.uuid.data(), 4)});
}

TEST_F(Agreement, Rule14_AVmThatDiffersInOneBitIsRefused) {
  Identity here;
  Identity there = here;
  there.uuid[15] ^= 1;
  ExpectStranger(here, there,
                 {Hex(&here.uuid[12], 4), Hex(&there.uuid[12], 4)});
}

TEST_F(Agreement, Rule14_AStaleAttemptIsRefused) {
  Identity here;
  here.attempt = 70001;
  Identity there = here;
  there.attempt = 69999;
  ExpectStranger(here, there, {"70001", "69999"});
}

TEST_F(Agreement, Rule14_ALaterAttemptIsRefusedByAnOlderListener) {
  Identity here;
  here.attempt = 3;
  Identity there = here;
  there.attempt = (1ULL << 40) + 3;  // equal when cut to 32 bits
  ExpectStranger(here, there, {"1099511627779"});
}

TEST_F(Agreement, Rule14_C37_AThirdPartyDoesNotDisturbAMigration) {
  Host host;
  Context context(host);
  PairSetup setup;
  Pair pair(setup);
  ASSERT_TRUE(pair.Ready());
  Session late(context, MIG_ROLE_SOURCE, setup.identity);
  // Whether the address is still served is the plugin's affair; the running
  // migration is not.
  if (late.Connect(pair.address()) == MIG_OK) {
    Drive(
        {&late, &pair.source(), &pair.destination()},
        [&] { return late.Ended(); }, milliseconds(200));
    EXPECT_FALSE(late.Saw(MIG_EVENT_CONNECTED)) << "two sources at once";
  }
  pair.block().source.Fill(0, pair.block().spec.length, 5);
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  EXPECT_TRUE(pair.block().source.Equals(pair.block().destination));
}

TEST_F(Agreement, Rule14_UnknownExtensionsAreRefusedWhenAskedFor) {
  Host host;
  Context context(host);
  for (const char* ids : {"org.example.no-such", "org.example.no-such,x?"}) {
    Identity identity;
    identity.extensions = ids;
    Session session(context, MIG_ROLE_SOURCE, identity);
    EXPECT_FALSE(session.valid());
    EXPECT_EQ(StatusName(session.error().code), "MIG_E_UNSUPPORTED");
    EXPECT_NE(session.error().message.find("org.example.no-such"),
              std::string::npos)
        << session.error().message;
  }
  EXPECT_EQ(Ops()->get_extension(context.get(), "org.example.no-such"),
            nullptr);
}

TEST_F(Agreement, Rule14_OptionalExtensionsAreLeftOut) {
  PairSetup setup;
  setup.identity.extensions = "org.example.no-such?";
  Pair pair(setup);
  ASSERT_TRUE(pair.source().valid()) << pair.source().error().message;
  ASSERT_TRUE(pair.Connect());
  mig_caps caps;
  if (pair.source().GetCaps(&caps) != MIG_OK) return;
  EXPECT_STREQ(caps.extensions, "");
}

TEST_F(Agreement, Rule14_ParamsAreCopied) {
  Host host;
  Context context(host);
  char ids[] = "org.example.no-such?";
  Identity identity;
  identity.extensions = ids;
  Session destination(context, MIG_ROLE_DESTINATION, identity);
  Session source(context, MIG_ROLE_SOURCE, identity);
  ASSERT_TRUE(source.valid() && destination.valid());
  memset(ids, 'z', sizeof(ids) - 1);
  ASSERT_EQ(destination.Listen(NextListenUri()), MIG_OK);
  ASSERT_EQ(source.Connect(destination.LocalAddress()), MIG_OK);
  EXPECT_TRUE(Drive({&source, &destination}, [&] {
    return source.Saw(MIG_EVENT_CONNECTED) &&
           destination.Saw(MIG_EVENT_CONNECTED);
  })) << source.Describe();
}

TEST_F(Agreement, Rule14_CapsAreNegotiatedOnBothSides) {
  Pair pair;
  mig_caps caps;
  if (pair.source().GetCaps(&caps) == MIG_E_UNSUPPORTED) {
    GTEST_SKIP() << "no get_caps";
  }
  ASSERT_TRUE(pair.Connect());
  for (Session* side : {&pair.source(), &pair.destination()}) {
    ASSERT_EQ(side->GetCaps(&caps), MIG_OK);
    EXPECT_GT(caps.peer_timeout_ns, 0U);
    EXPECT_GE(caps.max_message, MIG_MIN_MESSAGE_MAX);
  }
}

}  // namespace
}  // namespace mig::conformance
