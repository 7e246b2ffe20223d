// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 2: calls come from any thread, one after the other; cancel, wake and
// get_stats beside them. To be run under ThreadSanitizer too.
#include <atomic>
#include <thread>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Threads : public Conformance {};

constexpr int64_t kSecond = 1'000'000'000;

// Runs one step of the migration on a thread of its own.
template <typename F>
void OnNewThread(F step) {
  std::thread(step).join();
}

TEST_F(Threads, Rule02_EachCallFromAnotherThread) {
  std::unique_ptr<Pair> pair;
  OnNewThread([&] { pair = std::make_unique<Pair>(); });
  OnNewThread([&] { ASSERT_TRUE(pair->Connect()); });
  OnNewThread([&] { ASSERT_TRUE(pair->AddBlock()); });
  OnNewThread([&] { ASSERT_TRUE(pair->Exchange()); });
  for (uint64_t round = 1; round <= 3; ++round) {
    pair->block().source.Fill(0, pair->block().spec.length, round);
    OnNewThread([&] { ASSERT_TRUE(pair->Begin()); });
    OnNewThread([&] { ASSERT_TRUE(pair->Write({pair->block().Whole()})); });
    OnNewThread([&] { ASSERT_TRUE(pair->End()); });
    OnNewThread([&] { ASSERT_TRUE(pair->RoundDone()); });
    EXPECT_TRUE(pair->block().source.Equals(pair->block().destination));
  }
  OnNewThread([&] { ASSERT_TRUE(pair->Handover()); });
  OnNewThread([&] { ASSERT_TRUE(pair->Close()); });
  OnNewThread([&] { pair.reset(); });
}

// Drives one session with real timeouts until `done`.
void Follow(Session& session, const std::function<bool()>& done) {
  const uint64_t deadline = RealNow() + 30 * kSecond;
  while (!done() && RealNow() < deadline) session.Progress(kSecond / 5);
}

TEST_F(Threads, Rule02_Rule08_BothSidesWithThreadsOfTheirOwn) {
  Pair pair;
  ASSERT_TRUE(pair.Ready({.length = 16ULL << 20}));
  Block& block = pair.block();
  std::thread destination([&] {
    Follow(pair.destination(),
           [&] { return pair.destination().Saw(MIG_EVENT_HANDOVER); });
    EXPECT_EQ(pair.destination().Handover(), MIG_OK);
    Follow(pair.destination(),
           [&] { return pair.destination().Saw(MIG_EVENT_PEER_CLOSED); });
  });
  Session& source = pair.source();
  for (uint64_t round = 1; round <= 10; ++round) {
    block.source.Fill(0, block.spec.length, round);
    ASSERT_EQ(source.RoundBegin(round), MIG_OK);
    for (uint64_t at = 0; at < block.spec.length;) {
      Taken taken;
      const mig_range rest = block.Range(at, block.spec.length - at);
      ASSERT_EQ(source.Write({{rest}}, &taken), MIG_OK);
      at = taken.accepted == 1 ? block.spec.length : at + taken.partial;
      if (at < block.spec.length) source.Progress(kSecond);
    }
    ASSERT_EQ(source.RoundEnd(round), MIG_OK);
    Follow(source,
           [&] { return source.SawNumber(MIG_EVENT_ROUND_DONE, round); });
    ASSERT_TRUE(block.source.Equals(block.destination)) << round;
  }
  ASSERT_EQ(source.Handover(), MIG_OK);
  Follow(source, [&] { return source.Saw(MIG_EVENT_COMMITTED); });
  source.Close();
  Follow(source, [&] { return source.Saw(MIG_EVENT_CLOSED); });
  destination.join();
  EXPECT_TRUE(source.Saw(MIG_EVENT_COMMITTED)) << pair.Describe();
  EXPECT_TRUE(pair.destination().Saw(MIG_EVENT_PEER_CLOSED));
}

// Lets progress wait for ever, ends it by `end` from here, and answers how
// long that took in milliseconds.
uint64_t Interrupt(Session& session, const std::function<void()>& end) {
  std::atomic<bool> ending{false};
  std::thread waiting([&] {
    while (!ending) session.Progress(MIG_WAIT_FOREVER);
  });
  std::this_thread::sleep_for(milliseconds(50));
  const uint64_t start = RealNow();
  ending = true;
  end();
  waiting.join();
  return (RealNow() - start) / 1'000'000;
}

TEST_F(Threads, Rule02_C17_CancelWakesAWaitingProgress) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  EXPECT_LT(Interrupt(pair.destination(), [&] { pair.destination().Cancel(); }),
            1000U);
  EXPECT_TRUE(pair.Pump([&] { return pair.destination().Ended(); }));
  EXPECT_EQ(pair.destination().SessionError().code, MIG_E_CANCELLED);
  EXPECT_TRUE(pair.Pump([&] { return pair.source().Ended(); }));
  EXPECT_EQ(StatusName(pair.source().SessionError().code),
            "MIG_E_PEER_CANCELLED");
}

TEST_F(Threads, Rule02_CancelWakesAListeningSession) {
  Host host;
  Context context(host);
  Session session(context, MIG_ROLE_DESTINATION, Identity());
  ASSERT_EQ(session.Listen(NextListenUri()), MIG_OK);
  session.Progress();
  EXPECT_LT(Interrupt(session, [&] { session.Cancel(); }), 1000U);
  EXPECT_TRUE(Drive({&session}, [&] { return session.Saw(MIG_EVENT_ERROR); }));
}

TEST_F(Threads, Rule02_WakeReturnsAWaitingOrTheNextProgress) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  Session& side = pair.source();
  EXPECT_LT(Interrupt(side, [&] { side.Wake(); }), 1000U);
  DriveFor({&side, &pair.destination()}, milliseconds(5));
  side.Wake();
  const uint64_t start = RealNow();
  side.Progress(30 * kSecond);
  EXPECT_LT(RealNow() - start, 5 * kSecond) << "the next progress waited";
  EXPECT_FALSE(side.Ended());
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
}

TEST_F(Threads, Rule03_ProgressWaitsAsLongAsItIsTold) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  DriveFor({&pair.source(), &pair.destination()}, milliseconds(5));
  // A plugin may have internal reasons to return; but then not every time.
  uint64_t longest = 0;
  for (int i = 0; i < 10 && longest < kSecond / 5; ++i) {
    const uint64_t start = RealNow();
    pair.source().Progress(kSecond / 5);
    longest = std::max(longest, RealNow() - start);
  }
  EXPECT_GE(longest, static_cast<uint64_t>(kSecond / 5));
  EXPECT_LT(longest, static_cast<uint64_t>(10 * kSecond));
}

TEST_F(Threads, Rule03_NewAndClosedSessionsAnswerAtOnce) {
  Pair pair;
  const uint64_t start = RealNow();
  EXPECT_EQ(pair.source().Progress(MIG_WAIT_FOREVER), 0U) << "a new session";
  EXPECT_LT(RealNow() - start, static_cast<uint64_t>(10 * kSecond));
  ASSERT_TRUE(pair.Connect());
  ASSERT_TRUE(pair.Close());
  EXPECT_EQ(pair.source().Progress(MIG_WAIT_FOREVER), 0U) << "a closed one";
  EXPECT_EQ(pair.destination().Progress(MIG_WAIT_FOREVER), 0U);
}

// cancel, wake and get_stats from other threads while a migration runs; the
// cancel comes at another moment each time.
TEST_F(Threads, Rule02_C17_CancelBesideEverything) {
  for (int delay = 0; delay < 40; ++delay) {
    Pair pair;
    std::atomic<bool> stop{false};
    std::thread beside([&] {
      std::vector<uint64_t> values(Ops()->counter_count);
      mig_session* const source = pair.source().get();
      const uint64_t at = RealNow() + static_cast<uint64_t>(delay) * 200'000;
      bool cancelled = false;
      while (!stop) {
        Ops()->get_stats(source, values.data(), values.size());
        Ops()->wake(pair.destination().get());
        if (!cancelled && RealNow() > at) {
          Ops()->cancel(source);
          Ops()->cancel(source);
          cancelled = true;
        }
        std::this_thread::yield();
      }
    });
    bool going = static_cast<bool>(pair.Ready({.length = 1 << 20}));
    for (int round = 0; going && round < 1000; ++round) {
      going = static_cast<bool>(pair.Round({pair.block().Whole()}));
    }
    EXPECT_TRUE(pair.Pump([&] { return pair.source().Ended(); }))
        << pair.Describe();
    stop = true;
    beside.join();
    EXPECT_EQ(pair.source().SessionError().code, MIG_E_CANCELLED);
  }
}

TEST_F(Threads, Rule02_SessionsOfOneContextAreIndependent) {
  Host host;
  Context context(host);
  std::vector<std::thread> migrations;
  migrations.reserve(3);
  for (int i = 0; i < 3; ++i) {
    migrations.emplace_back([&] {
      for (int again = 0; again < 5; ++again) {
        Pair pair(context);
        ASSERT_TRUE(pair.Ready({.length = 1 << 20}));
        pair.block().source.Fill(0, 1 << 20, 1);
        ASSERT_TRUE(pair.Round({pair.block().Whole()}));
        EXPECT_TRUE(pair.block().source.Equals(pair.block().destination));
        ASSERT_TRUE(pair.Handover());
        ASSERT_TRUE(pair.Close());
      }
    });
  }
  for (std::thread& migration : migrations) migration.join();
}

TEST_F(Threads, Rule02_ContextsInParallel) {
  std::vector<std::thread> migrations;
  migrations.reserve(3);
  for (int i = 0; i < 3; ++i) {
    migrations.emplace_back([] {
      for (int again = 0; again < 5; ++again) {
        Pair pair;
        ASSERT_TRUE(pair.Ready());
        ASSERT_TRUE(pair.Round({pair.block().Whole()}));
        ASSERT_TRUE(pair.Close());
      }
    });
  }
  for (std::thread& migration : migrations) migration.join();
}

}  // namespace
}  // namespace mig::conformance
