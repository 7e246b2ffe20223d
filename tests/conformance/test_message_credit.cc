// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 11: what is not released withholds the peer's credit.
#include <algorithm>
#include <string>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Credit : public Conformance {};

// Far above any window that would be called bounded.
constexpr uint64_t kMostBytes = 512ULL << 20;
constexpr size_t kMostMessages = 2'000'000;

// Sends until AGAIN stays although both sides are driven. Answers how many
// messages were taken; fails if there is no end.
size_t SendUntilFull(Pair& pair, Session& from, const std::string& bytes) {
  const size_t most = std::min<size_t>(
      kMostMessages, kMostBytes / std::max<size_t>(bytes.size(), 1));
  size_t taken = 0;
  for (int full = 0; full < 30;) {
    const int32_t status = from.Send(1, bytes);
    if (status == MIG_OK) {
      full = 0;
      if (++taken > most) {
        ADD_FAILURE() << "rule 11: " << taken << " messages of " << bytes.size()
                      << " bytes were taken, none released";
        break;
      }
      continue;
    }
    EXPECT_EQ(StatusName(status), "MIG_AGAIN") << from.error().message;
    if (status != MIG_AGAIN) break;
    ++full;
    DriveFor({&pair.source(), &pair.destination()}, milliseconds(1));
  }
  return taken;
}

void ReleaseAll(Session& session) {
  for (const Event& event : session.events()) {
    if (event.raw.type == MIG_EVENT_MESSAGE) session.Release(event.raw.message);
  }
}

// The receiver holds everything: the sender is stopped; releases: it goes on.
void StopAndGo(const std::string& bytes) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  for (Session* const from : {&pair.source(), &pair.destination()}) {
    Session& to = from == &pair.source() ? pair.destination() : pair.source();
    to.set_auto_release(false);
    const size_t taken = SendUntilFull(pair, *from, bytes);
    EXPECT_GT(taken, 0U);
    EXPECT_FALSE(from->Ended() || to.Ended()) << pair.Describe();
    const size_t before = from->Count(MIG_EVENT_SEND_READY);
    // What was taken but waits for credit comes as room is made.
    to.set_auto_release(true);
    ReleaseAll(to);
    ASSERT_TRUE(pair.Pump([&] {
      return from->Count(MIG_EVENT_SEND_READY) > before &&
             to.Count(MIG_EVENT_MESSAGE) == taken;
    })) << pair.Describe()
        << ", " << taken << " taken";
    EXPECT_EQ(from->Send(1, bytes), MIG_OK);
    ASSERT_TRUE(
        pair.Pump([&] { return to.Count(MIG_EVENT_MESSAGE) == taken + 1; }));
  }
}

TEST_F(Credit, Rule11_LargeMessagesStopAndGo) {
  StopAndGo(std::string(512 * 1024, 'l'));
}

TEST_F(Credit, Rule11_SmallMessagesStopAndGo) { StopAndGo("s"); }

TEST_F(Credit, Rule11_EmptyMessagesStopAndGo) { StopAndGo(""); }

TEST_F(Credit, Rule11_HeldPayloadsStayWhatTheyAre) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Session& to = pair.destination();
  to.set_auto_release(false);
  size_t taken = 0;
  for (; taken < 64; ++taken) {
    const std::string bytes(1000 + taken, static_cast<char>('A' + taken % 26));
    if (pair.source().Send(1, bytes) != MIG_OK) break;
  }
  ASSERT_TRUE(pair.Round({pair.block().Whole()}))
      << "rounds need no credit of messages";
  ASSERT_TRUE(
      pair.Pump([&] { return to.Count(MIG_EVENT_MESSAGE) > taken / 2; }));
  const auto check = [&] {
    for (const Event& event : to.events()) {
      if (event.raw.type != MIG_EVENT_MESSAGE) continue;
      const std::string now(static_cast<const char*>(event.raw.data),
                            event.raw.length);
      EXPECT_TRUE(now == event.data);
    }
  };
  check();
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  check();
  pair.source().Destroy();
  ASSERT_TRUE(pair.Pump([&] { return to.Ended(); })) << pair.Describe();
  check();  // also after the session failed
  ReleaseAll(to);
}

TEST_F(Credit, Rule11_ReleasedInAnyOrder) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Session& to = pair.destination();
  to.set_auto_release(false);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(pair.source().Send(1, std::string(1, static_cast<char>('a' + i))),
              MIG_OK);
  }
  ASSERT_TRUE(pair.Pump([&] { return to.Count(MIG_EVENT_MESSAGE) == 8; }));
  std::vector<Event> held;
  for (const Event& event : to.events()) {
    if (event.raw.type == MIG_EVENT_MESSAGE) held.push_back(event);
  }
  for (const size_t i : {3, 0, 7, 5, 1, 6, 2, 4}) {
    EXPECT_EQ(*static_cast<const char*>(held[i].raw.data),
              static_cast<char>('a' + i));
    to.Release(held[i].raw.message);
  }
  to.set_auto_release(true);
  for (int i = 0; i < 2000; ++i) {
    const int32_t status = pair.source().Send(1, "again and again");
    ASSERT_TRUE(status == MIG_OK || status == MIG_AGAIN);
    pair.source().Progress();
    to.Progress();
  }
}

TEST_F(Credit, Rule11_AReceiverThatStandsStillStopsTheSender) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  const std::string bytes(64 * 1024, 'x');
  size_t taken = 0;
  for (int full = 0; full < 30 && taken < kMostBytes / bytes.size();) {
    if (pair.source().Send(1, bytes) == MIG_OK) {
      ++taken;
      full = 0;
    } else {
      ++full;
      DriveFor({&pair.source()}, milliseconds(1));
    }
  }
  EXPECT_LT(taken, kMostBytes / bytes.size()) << "no end of taking";
  EXPECT_TRUE(pair.Pump([&] {
    return pair.destination().Count(MIG_EVENT_MESSAGE) == taken &&
           pair.source().Saw(MIG_EVENT_SEND_READY);
  })) << pair.Describe();
}

TEST_F(Credit, Rule11_Rule15_DestroyFreesWhatIsHeld) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  pair.destination().set_auto_release(false);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(pair.source().Send(1, std::string(100'000, 'h')), MIG_OK);
  }
  ASSERT_TRUE(
      pair.Pump([&] { return pair.destination().Saw(MIG_EVENT_MESSAGE); }));
  ASSERT_TRUE(pair.Close());
  const Event* const held = pair.destination().First(MIG_EVENT_MESSAGE);
  EXPECT_EQ(held->data, std::string(100'000, 'h'));
  pair.destination().Release(held->raw.message);  // legal until destroy
}

}  // namespace
}  // namespace mig::conformance
