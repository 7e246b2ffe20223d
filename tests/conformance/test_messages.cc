// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 11: control messages arrive whole, in order, both ways.
#include <cstring>
#include <string>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Messages : public Conformance {};

std::string Text(size_t length, uint64_t seed) {
  std::string text(length, '\0');
  for (size_t i = 0; i < length; ++i) {
    text[i] = static_cast<char>(Mix(seed * 31 + i / 8) >> (i % 8 * 8));
  }
  return text;
}

uint64_t MaxMessage(Session& session) {
  mig_caps caps;
  return session.GetCaps(&caps) == MIG_OK ? caps.max_message
                                          : MIG_MIN_MESSAGE_MAX;
}

// Sends, waiting for room while there is none.
testing::AssertionResult SendAll(Pair& pair, Session& from, uint32_t type,
                                 const std::string& bytes) {
  for (;;) {
    const size_t before = from.Count(MIG_EVENT_SEND_READY);
    const int32_t status = from.Send(type, bytes);
    if (status == MIG_OK) return testing::AssertionSuccess();
    if (status != MIG_AGAIN) {
      return testing::AssertionFailure() << from.error().message;
    }
    if (!pair.Pump([&] {
          return from.Count(MIG_EVENT_SEND_READY) > before || from.Ended();
        })) {
      return testing::AssertionFailure()
             << "no SEND_READY; " << pair.Describe();
    }
    if (from.Ended()) return testing::AssertionFailure() << pair.Describe();
  }
}

TEST_F(Messages, Rule11_LimitIsAtLeast512KiBAndTheSameOnBothSides) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  EXPECT_GE(MaxMessage(pair.source()), MIG_MIN_MESSAGE_MAX);
  EXPECT_EQ(MaxMessage(pair.source()), MaxMessage(pair.destination()));
}

TEST_F(Messages, Rule11_EverySizeToTheLimitBothWays) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const uint64_t max = MaxMessage(pair.source());
  const std::vector<uint64_t> sizes = {
      0,  1,    15,   16,   17,    40,    41,    56,     57,      63,
      64, 4095, 4096, 4097, 65535, 65536, 65537, 524288, max - 1, max};
  std::vector<std::string> sent;
  for (const uint64_t size : sizes) {
    sent.push_back(Text(size, size + 1));
    ASSERT_TRUE(SendAll(pair, pair.source(), 1, sent.back())) << size;
    ASSERT_TRUE(SendAll(pair, pair.destination(), 2, sent.back())) << size;
  }
  ASSERT_TRUE(pair.Pump([&] {
    return pair.source().Count(MIG_EVENT_MESSAGE) == sizes.size() &&
           pair.destination().Count(MIG_EVENT_MESSAGE) == sizes.size();
  })) << pair.Describe();
  EXPECT_TRUE(pair.source().Messages() == sent);
  EXPECT_TRUE(pair.destination().Messages() == sent);
}

TEST_F(Messages, Rule11_MoreThanTheLimitIsRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const uint64_t max = MaxMessage(pair.source());
  const std::string bytes(max + 1, 'x');
  for (Session* side : {&pair.source(), &pair.destination()}) {
    EXPECT_EQ(side->Send(1, bytes), MIG_E_ARGUMENT);
    const std::string number = std::to_string(max);
    EXPECT_NE(side->error().message.find(number), std::string::npos)
        << "the message names the limit " << number << ": "
        << side->error().message;
    // Lengths whose sum wraps; nothing of them may be read.
    const mig_iov pieces[] = {{bytes.data(), 1ULL << 63},
                              {bytes.data(), 1ULL << 63},
                              {bytes.data(), 16}};
    EXPECT_EQ(side->Send(1, pieces), MIG_E_ARGUMENT);
  }
  ASSERT_TRUE(SendAll(pair, pair.source(), 1, "still here"));
  ASSERT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_MESSAGE); }));
  EXPECT_EQ(pair.destination().Messages()[0], "still here");
}

TEST_F(Messages, Rule11_C28_ManyPiecesSomeEmpty) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const std::string text = Text(100'000, 3);
  std::vector<mig_iov> pieces;
  for (size_t at = 0; at < text.size();) {
    pieces.push_back({nullptr, 0});
    const size_t length = std::min<size_t>(1 + at % 67, text.size() - at);
    pieces.push_back({text.data() + at, length});
    at += length;
  }
  ASSERT_GT(pieces.size(), 2000U) << "more than IOV_MAX";
  ASSERT_EQ(pair.source().Send(5, pieces), MIG_OK)
      << pair.source().error().message;
  ASSERT_EQ(pair.source().Send(6, std::span<const mig_iov>()), MIG_OK);
  ASSERT_TRUE(pair.Pump(
      [&] { return pair.destination().Count(MIG_EVENT_MESSAGE) == 2; }));
  EXPECT_TRUE(pair.destination().Messages()[0] == text);
  EXPECT_EQ(pair.destination().Messages()[1], "");
}

TEST_F(Messages, Rule01_Rule11_PiecesAreSteppedByTheElementSize) {
  struct NewerIov {
    mig_iov iov;
    uint64_t of_the_future;
  };
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const NewerIov pieces[] = {{{"ab", 2}, ~0ULL}, {{"cd", 2}, ~0ULL}};
  mig_session* const source = pair.source().get();
  EXPECT_EQ(
      Ops()->send(source, 0, 1, &pieces[0].iov, 2, sizeof(NewerIov), nullptr),
      MIG_OK);
  for (const size_t size : {size_t{0}, sizeof(mig_iov) - 8}) {
    EXPECT_EQ(Ops()->send(source, 0, 1, &pieces[0].iov, 2, size, nullptr),
              MIG_E_STRUCT_SIZE)
        << size;
  }
  ASSERT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_MESSAGE); }));
  EXPECT_EQ(pair.destination().Messages()[0], "abcd");
}

TEST_F(Messages, Rule11_TypeIsTheHostsAndChannelIsZero) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const std::vector<uint32_t> types = {0, 1, 0x8000, 0x10000, ~0U};
  for (const uint32_t type : types) {
    ASSERT_TRUE(SendAll(pair, pair.source(), type, "x"));
  }
  const mig_iov piece = {"x", 1};
  EXPECT_EQ(
      Ops()->send(pair.source().get(), 1, 1, &piece, 1, sizeof(piece), nullptr),
      MIG_E_ARGUMENT)
      << "no extension gives a channel 1";
  ASSERT_TRUE(pair.Pump([&] {
    return pair.destination().Count(MIG_EVENT_MESSAGE) == types.size();
  }));
  size_t i = 0;
  for (const Event& event : pair.destination().events()) {
    if (event.raw.type != MIG_EVENT_MESSAGE) continue;
    EXPECT_EQ(event.raw.message_type, types[i++]);
  }
}

TEST_F(Messages, Rule11_CopiedBeforeSendReturns) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  std::string buffer(300'000, 'a');
  ASSERT_EQ(pair.source().Send(1, buffer), MIG_OK);
  buffer.assign(buffer.size(), 'b');
  ASSERT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_MESSAGE); }));
  EXPECT_TRUE(pair.destination().Messages()[0] ==
              std::string(buffer.size(), 'a'));
}

TEST_F(Messages, Rule11_TenThousandBothWaysInOrder) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  constexpr size_t kCount = 10'000;
  std::vector<std::string> sent;
  for (size_t i = 0; i < kCount; ++i) sent.push_back(Text(i % 97, i));
  size_t next[2] = {0, 0};
  Session* const sides[2] = {&pair.source(), &pair.destination()};
  ASSERT_TRUE(pair.Pump([&] {
    for (int i = 0; i < 2; ++i) {
      while (next[i] < kCount) {
        const int32_t status =
            sides[i]->Send(static_cast<uint32_t>(next[i]), sent[next[i]]);
        if (status != MIG_OK) {
          EXPECT_EQ(StatusName(status), "MIG_AGAIN");
          break;
        }
        ++next[i];
      }
    }
    return sides[0]->Count(MIG_EVENT_MESSAGE) == kCount &&
           sides[1]->Count(MIG_EVENT_MESSAGE) == kCount;
  })) << pair.Describe();
  EXPECT_TRUE(pair.source().Messages() == sent);
  EXPECT_TRUE(pair.destination().Messages() == sent);
}

// A device state of 64 MiB each way, made of messages, while rounds go on.
TEST_F(Messages, Rule11_DeviceStateStreamsBothWaysBesideRounds) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 1ULL << 20}));
  constexpr size_t kPieces = 128;
  const std::string piece = Text(512 * 1024, 9);
  size_t sent[2] = {0, 0};
  size_t received[2] = {0, 0};
  Session* const sides[2] = {&pair.source(), &pair.destination()};
  for (int spin = 0; received[0] + received[1] < 2 * kPieces; ++spin) {
    ASSERT_LT(spin, 100'000) << pair.Describe();
    for (int i = 0; i < 2; ++i) {
      if (sent[i] < kPieces && sides[i]->Send(1, piece) == MIG_OK) ++sent[i];
    }
    if (spin % 16 == 0) {
      ASSERT_TRUE(pair.Round({pair.block().Whole()}));
    }
    pair.source().Progress();
    pair.destination().Progress();
    for (int i = 0; i < 2; ++i) {
      for (const std::string& message : sides[i]->Messages()) {
        ASSERT_TRUE(message == piece);
        ++received[i];
      }
    }
    // Round() looks for its event among those since it began.
    pair.source().ForgetEvents();
    pair.destination().ForgetEvents();
  }
  EXPECT_EQ(received[0], kPieces);
  EXPECT_EQ(received[1], kPieces);
}

TEST_F(Messages, Rule11_OnlyWhenConnected) {
  Pair pair;
  EXPECT_EQ(pair.source().Send(1, "x"), MIG_E_STATE);
  EXPECT_EQ(pair.destination().Send(1, "x"), MIG_E_STATE);
}

TEST_F(Messages, Rule11_WhatSendTookGoesOutBeforeTheEnd) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  size_t taken = 0;
  while (taken < 20 && pair.source().Send(1, Text(10'000, taken)) == MIG_OK) {
    ++taken;
  }
  pair.source().Close();
  EXPECT_EQ(pair.source().Send(1, "x"), MIG_E_STATE) << "closing";
  EXPECT_TRUE(pair.Pump([&] {
    return pair.source().Saw(MIG_EVENT_CLOSED) && pair.destination().Ended();
  })) << pair.Describe();
  const std::vector<std::string> got = pair.destination().Messages();
  ASSERT_EQ(got.size(), taken);
  for (size_t i = 0; i < taken; ++i) EXPECT_TRUE(got[i] == Text(10'000, i));
}

}  // namespace
}  // namespace mig::conformance
