// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Two guests never run (rule 12, C33): the switchover in every interleaving of
// a few moves, and the ones that are worth a name.
#include "test_sessions.h"

namespace mig::tcp {
namespace {

// Who may run the guest when all is over.
bool SourceMayRun(Side* source) {
  return source->Has(MIG_EVENT_HANDOVER_REFUSED) ||
         source->Has(MIG_EVENT_ERROR);
}

size_t Outcomes(Side* source) {
  return source->Count(MIG_EVENT_COMMITTED) +
         source->Count(MIG_EVENT_HANDOVER_REFUSED) +
         source->Count(MIG_EVENT_ERROR) + source->Count(MIG_EVENT_IN_DOUBT);
}

TEST(HandoverTest, TakenIsCommitted) {
  Pair pair;
  pair.Offered();
  ASSERT_TRUE(pair.d()->Handover().ok());
  EXPECT_FALSE(pair.d()->Handover().ok()) << "once";
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_COMMITTED));
  pair.d()->Cancel();
  pair.s()->Cancel();
  pair.Settle();
  EXPECT_EQ(Outcomes(&pair.s()), 1u);
  pair.s()->Close();
  pair.Settle();
  EXPECT_EQ(pair.d().events.back().type, MIG_EVENT_PEER_CLOSED);
  EXPECT_EQ(pair.d().events.back().code, MIG_OK);
  EXPECT_TRUE(pair.d()->error().ok());
  EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_CLOSED);
}

TEST(HandoverTest, AfterPeerClosedNothingIsTakenOrWaitedFor) {
  Pair pair;
  pair.Offered();
  ASSERT_TRUE(pair.d()->Handover().ok());
  pair.Settle();
  pair.Cut();
  pair.Settle();
  EXPECT_TRUE(pair.d().Has(MIG_EVENT_PEER_CLOSED));
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_PEER_CLOSED));
  size_t count = 9;
  struct mig_event taken;
  ASSERT_TRUE(pair.d()
                  ->Progress(&taken, 1, sizeof(taken), MIG_WAIT_FOREVER, &count)
                  .ok());
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(ErrorCode(pair.d()->Send(0, 1, nullptr, 0, 16).status()),
            MIG_E_STATE);
}

TEST(HandoverTest, CloseAndCancelOfTheDestinationAreARefusal) {
  for (const bool cancel : {false, true}) {
    for (const bool seen : {false, true}) {
      Pair pair;
      pair.OneRound();
      ASSERT_TRUE(pair.s()->Handover().ok());
      if (seen) pair.Settle();
      cancel ? pair.d()->Cancel() : pair.d()->Close();
      EXPECT_FALSE(pair.d()->Handover().ok());
      pair.Settle();
      EXPECT_EQ(pair.s().Count(MIG_EVENT_HANDOVER_REFUSED), 1u)
          << cancel << seen << pair.s().ErrorText();
      EXPECT_EQ(Outcomes(&pair.s()), 1u);
      EXPECT_EQ(pair.s().events.back().code, MIG_OK);
      EXPECT_FALSE(pair.d()->Handover().ok());
      EXPECT_EQ(ErrorCode(pair.s()->RoundBegin(2, 0)), MIG_E_FAILED);
    }
  }
}

TEST(HandoverTest, AWithdrawnOfferIsNotTaken) {
  for (const bool close : {false, true}) {
    Pair pair;
    pair.Offered();
    close ? pair.s()->Close() : pair.s()->Cancel();
    pair.Settle();
    EXPECT_TRUE(pair.s().Has(MIG_EVENT_HANDOVER_REFUSED));
    EXPECT_EQ(Outcomes(&pair.s()), 1u);
    EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_CANCELLED);
    EXPECT_EQ(ErrorCode(pair.d()->Handover()), MIG_E_FAILED);
    if (close) {
      EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_CLOSED);
    }
  }
}

TEST(HandoverTest, AWithdrawalThatComesTooLateIsCommitted) {
  for (const bool close : {false, true}) {
    Pair pair;
    pair.Offered();
    close ? pair.s()->Close() : pair.s()->Cancel();
    pair.s().Step();  // the withdrawal is on its way
    ASSERT_TRUE(pair.d()->Handover().ok());
    pair.Settle();
    EXPECT_TRUE(pair.s().Has(MIG_EVENT_COMMITTED));
    EXPECT_EQ(Outcomes(&pair.s()), 1u);
    EXPECT_FALSE(pair.d().Has(MIG_EVENT_ERROR));
  }
}

TEST(HandoverTest, ALostLinkIsInDoubtAndTheDestinationMayTake) {
  Pair pair;
  pair.Offered();
  pair.Cut();
  pair.Settle();
  EXPECT_EQ(pair.s().Count(MIG_EVENT_IN_DOUBT), 1u);
  EXPECT_FALSE(SourceMayRun(&pair.s()));
  EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_LOST);
  EXPECT_TRUE(pair.d()->Handover().ok());
  EXPECT_TRUE(pair.destination_memory.AllAre(1));
}

// The header: not if this host cancelled or closed.
TEST(HandoverTest, AfterAnErrorCancelAndCloseRenounceTheOffer) {
  for (const bool cancel : {false, true}) {
    Pair pair;
    pair.Offered();
    pair.Cut();
    pair.Settle();
    ASSERT_EQ(pair.d().FailureCode(), MIG_E_PEER_LOST);
    cancel ? pair.d()->Cancel() : pair.d()->Close();
    EXPECT_FALSE(pair.d()->Handover().ok());
    pair.Settle();
    EXPECT_FALSE(pair.d()->Handover().ok());
  }
}

TEST(HandoverTest, AnErrorBeforeTheEventWasTakenLeavesNothingToTake) {
  Pair pair;
  pair.OneRound();
  ASSERT_TRUE(pair.s()->Handover().ok());
  EXPECT_FALSE(pair.d()->Handover().ok()) << "it has not arrived";
  pair.Cut();
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_IN_DOUBT));
}

TEST(HandoverTest, AnOfferThatNeverLeftIsAnError) {
  Pair pair(4096);
  pair.OneRound();
  // Messages fill the socket, and the offer stands behind them.
  const std::string text(1u << 20, 'm');
  const struct mig_iov iov = {text.data(), text.size()};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(*pair.s()->Send(0, 1, &iov, 1, sizeof(iov)));
  }
  ASSERT_TRUE(pair.s()->Handover().ok());
  pair.s()->Cancel();
  pair.s().Step();
  EXPECT_EQ(Outcomes(&pair.s()), 0u) << "a withdrawal waits for its answer";
  pair.Cut();
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_ERROR)) << "12.8: not one byte has left";
  EXPECT_EQ(Outcomes(&pair.s()), 1u);
  EXPECT_FALSE(pair.d()->Handover().ok());
}

TEST(HandoverTest, AnUnansweredWithdrawalIsInDoubtInItsBound) {
  for (const bool close : {false, true}) {
    Pair pair;
    pair.Offered();
    close ? pair.s()->Close() : pair.s()->Cancel();
    pair.s().Step();
    pair.host.Advance((close ? 1 : 10) * kSecond);
    pair.s().Step();
    EXPECT_TRUE(pair.s().Has(MIG_EVENT_IN_DOUBT));
    EXPECT_FALSE(SourceMayRun(&pair.s()));
    pair.host.Advance(2 * kSecond);
    pair.s()->Close();
    pair.host.Advance(2 * kSecond);
    pair.s().Step();
    EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_CLOSED);
    EXPECT_EQ(Outcomes(&pair.s()), 1u);
  }
}

// What came before the break counts: COMMITTED is in the socket already.
TEST(HandoverTest, ACommitThatArrivedIsReadBeforeAFailedSendCounts) {
  Pair pair;
  pair.Offered();
  pair.s().Step();
  ASSERT_TRUE(pair.d()->Handover().ok());
  const std::string text(100, 'm');
  const struct mig_iov iov = {text.data(), text.size()};
  ASSERT_TRUE(*pair.s()->Send(0, 1, &iov, 1, sizeof(iov)));
  pair.d().Destroy();
  pair.destination_fd.Reset();
  pair.s().Step();
  pair.s().Step();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_COMMITTED));
  EXPECT_FALSE(pair.s().Has(MIG_EVENT_IN_DOUBT));
}

// Closing both sides beside the handover, the BYE and the withdrawal crossing.
TEST(HandoverTest, ClosesThatCrossAreARefusal) {
  Pair pair;
  pair.OneRound();
  pair.d()->Close();
  pair.d().Step();  // its BYE is under way
  ASSERT_TRUE(pair.s()->Handover().ok());
  pair.s()->Close();
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_HANDOVER_REFUSED)) << pair.s().ErrorText();
  EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_CLOSED);
  EXPECT_EQ(pair.d().events.back().type, MIG_EVENT_CLOSED);
}

// All interleavings of up to six moves of both hosts, the link and the clock,
// each checked against the one rule that matters. Deterministic.
class Interleaving {
 public:
  static constexpr int kMoves = 10;
  explicit Interleaving(uint64_t code) : code_(code) { pair_.OneRound(); }

  void Run() {
    for (uint64_t rest = code_; rest > 0; rest /= kMoves) Move(rest % kMoves);
    // The end: everybody finishes as a careful host would.
    for (int i = 0; i < 4; ++i) {
      pair_.s().Step();
      pair_.d().Step();
      pair_.host.Advance(3 * kSecond);
    }
    if (offered_ && Outcomes(&pair_.s()) == 0) pair_.s()->Cancel();
    for (int i = 0; i < 10; ++i) {
      pair_.s().Step();
      pair_.d().Step();
      pair_.host.Advance(3 * kSecond);
    }
    Take();  // the worst that a destination may still do
    for (int i = 0; i < 4; ++i) {
      pair_.s().Step();
      pair_.d().Step();
    }
    Check();
  }

 private:
  void Move(uint64_t move) {
    switch (move) {
      case 1:
        if (pair_.s()->Handover().ok()) offered_ = true;
        break;
      case 2:
        pair_.s().Step();
        break;
      case 3:
        pair_.d().Step();
        break;
      case 4:
        Take();
        break;
      case 5:
        pair_.s()->Cancel();
        break;
      case 6:
        pair_.d()->Cancel();
        break;
      case 7:
        pair_.s()->Close();
        break;
      case 8:
        pair_.d()->Close();
        break;
      case 9:
        pair_.Cut();
        break;
      default:
        pair_.host.Advance(4 * kSecond);
    }
  }
  void Take() {
    if (pair_.d()->Handover().ok()) ++taken_;
  }
  void Check() {
    Side& s = pair_.s();
    ASSERT_LE(taken_, 1) << code_;
    ASSERT_LE(Outcomes(&s), 1u) << code_;
    if (offered_) {
      ASSERT_EQ(Outcomes(&s), 1u) << code_;
    }
    if (taken_ == 1) {
      ASSERT_FALSE(SourceMayRun(&s)) << code_ << ": two guests run";
    }
    if (s.Has(MIG_EVENT_COMMITTED)) {
      ASSERT_EQ(taken_, 1) << code_ << ": no guest runs";
    }
    bool closed = false;
    for (const uint32_t type : s.Types()) {
      ASSERT_FALSE(closed) << code_ << ": an event after CLOSED";
      closed = type == MIG_EVENT_CLOSED;
    }
    ASSERT_FALSE(s.Busy() && pair_.d().Busy()) << code_;
  }

  const uint64_t code_;
  Pair pair_{1};
  bool offered_ = false;
  int taken_ = 0;
};

TEST(HandoverTest, C33NoInterleavingOfFiveMovesLetsTwoGuestsRun) {
  // The offer first, then every sequence of four.
  for (uint64_t code = 1; code < 100000; code += 10) {
    Interleaving(code).Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(HandoverTest, C33NorDoManyLongRandomOnes) {
  uint64_t state = 20260101;
  for (int i = 0; i < 3000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Eleven moves; the first is the offer.
    Interleaving((state >> 20) % 10'000'000'000u * 10 + 1).Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace mig::tcp
