// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Two sessions in one thread: blocks, rounds, messages, waiting, ending.
#include <sys/epoll.h>

#include "test_sessions.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

TEST(SessionTest, MovesMemoryRoundByRound) {
  Pair pair(3000);
  pair.Ready();
  std::vector<struct mig_range> odd;
  for (uint64_t page = 1; page < 3000; page += 2) {
    odd.push_back({page * kPage, kPage, 7, 0, 0});
  }
  pair.Round(1, {{0, 3000 * kPage, 7, 0, 0}});
  EXPECT_TRUE(pair.Same());
  std::memset(pair.source_memory.data(), 5, pair.source_memory.size());
  pair.Round(2, odd);
  EXPECT_FALSE(pair.Same());
  std::memset(pair.source_memory.data(), 0, 10 * kPage);
  pair.Round(3, {{0, 10 * kPage, 7, MIG_RANGE_ZERO, 0},
                 {10 * kPage, 2990 * kPage, 7, 0, 0}});
  EXPECT_TRUE(pair.Same());
  EXPECT_EQ(pair.s().Count(MIG_EVENT_ROUND_DONE), 3u);
  EXPECT_EQ(pair.d().Count(MIG_EVENT_ROUND_DONE), 3u);
}

// Rule 9.2: the source's memory of a zero range is not read.
TEST(SessionTest, AZeroRangeOfUnreadableMemoryIsFine) {
  Pair pair;
  pair.Ready();
  mprotect(pair.source_memory.data(), 64 * kPage, PROT_NONE);
  pair.Round(1, {{0, 64 * kPage, 7, MIG_RANGE_ZERO, 0}});
  EXPECT_TRUE(pair.d().Has(MIG_EVENT_ROUND_DONE));
  EXPECT_TRUE(pair.destination_memory.AllAre(0));
}

// A host that breaks rule 7.2 gets one or the other there, but later rounds are
// right again.
TEST(SessionTest, APageGivenAsZeroAndAsDataInOneBatchIsZeroedLater) {
  Pair pair;
  pair.Ready();
  std::memset(pair.source_memory.data(), 5, pair.source_memory.size());
  pair.Round(1, {{0, 64 * kPage, 7, 0, 0}});
  pair.Round(2, {{0, kPage, 7, MIG_RANGE_ZERO, 0}, {0, kPage, 7, 0, 0}});
  std::memset(pair.source_memory.data(), 0, kPage);
  pair.Round(3, {{0, kPage, 7, MIG_RANGE_ZERO, 0}});
  EXPECT_TRUE(pair.Same());
}

// Rule 10.6; C32 on the peer: it learns at once, not by its timeout.
TEST(SessionTest, UnreadableMemoryEndsBothSessionsAtOnce) {
  Pair pair;
  pair.Ready();
  mprotect(pair.source_memory.data() + 32 * kPage, kPage, PROT_NONE);
  ASSERT_TRUE(pair.s()->RoundBegin(1, 0).ok());
  size_t accepted = 0;
  uint64_t partial = 0;
  const struct mig_range all = {0, 64 * kPage, 7, 0, 0};
  ASSERT_TRUE(pair.s()->Write(&all, 1, sizeof(all), &accepted, &partial).ok());
  ASSERT_TRUE(pair.s()->RoundEnd(1).ok());
  pair.Settle();
  EXPECT_EQ(pair.s().FailureCode(), MIG_E_GUEST_MEMORY);
  EXPECT_TRUE(pair.d().Has(MIG_EVENT_ERROR)) << "no clock has moved";
}

TEST(SessionTest, ABlockThatDiffersEndsBothNamingBothValues) {  // C27
  Pair pair;
  struct mig_block shorter = BlockOf(pair.destination_memory, 9);
  shorter.length /= 2;
  ASSERT_TRUE(pair.s()->AddBlock(BlockOf(pair.source_memory, 7)).ok());
  ASSERT_TRUE(pair.d()->AddBlock(shorter).ok());
  pair.Settle();
  ASSERT_TRUE(pair.s()->Exchange().ok());
  ASSERT_TRUE(pair.d()->Exchange().ok());
  pair.Settle();
  for (Side* side : {&pair.s(), &pair.d()}) {
    EXPECT_EQ(side->FailureCode(), MIG_E_PEER_MISMATCH);
    EXPECT_THAT(side->ErrorText(), HasSubstr("262144"));
    EXPECT_THAT(side->ErrorText(), HasSubstr("131072"));
  }
}

// host_busy sends what is queued, so the source may answer with data before
// the destination's next progress.
TEST(SessionTest, DataRightAfterTheTablesMeetIsNotTooEarly) {
  Pair pair;
  ASSERT_TRUE(pair.s()->AddBlock(BlockOf(pair.source_memory, 7)).ok());
  ASSERT_TRUE(pair.d()->AddBlock(BlockOf(pair.destination_memory, 9)).ok());
  pair.Settle();
  ASSERT_TRUE(pair.s()->Exchange().ok());
  pair.Settle();  // the source's table is here
  ASSERT_TRUE(pair.d()->Exchange().ok());
  ASSERT_TRUE(pair.d()->HostBusy(kSecond).ok());
  pair.s().Step();
  ASSERT_TRUE(pair.s().Has(MIG_EVENT_BLOCKS_READY));
  pair.Round(1, {{0, 64 * kPage, 7, 0, 0}});
  EXPECT_TRUE(pair.d().Has(MIG_EVENT_ROUND_DONE)) << pair.d().ErrorText();
}

TEST(SessionTest, BlocksComeAndGoBetweenRounds) {
  Pair pair;
  pair.OneRound();
  ASSERT_TRUE(pair.s()->RemoveBlock(7).ok());
  EXPECT_EQ(ErrorCode(pair.s()->RemoveBlock(7)), MIG_E_BLOCK);
  pair.Settle();
  EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_BLOCK_REMOVED);
  EXPECT_EQ(pair.s().events.back().number, 7u);
  EXPECT_EQ(pair.d().events.back().type, MIG_EVENT_BLOCK_REMOVED);
  EXPECT_EQ(pair.d().events.back().number, 9u);
  ASSERT_TRUE(pair.s()->AddBlock(BlockOf(pair.source_memory, 7)).ok());
  ASSERT_TRUE(pair.d()->AddBlock(BlockOf(pair.destination_memory, 1)).ok());
  ASSERT_TRUE(pair.d()->Exchange().ok());
  pair.Settle();
  ASSERT_TRUE(pair.s()->Exchange().ok());
  pair.Settle();
  pair.Round(2, {{0, 64 * kPage, 7, 0, 0}});
  EXPECT_EQ(pair.d().Count(MIG_EVENT_ROUND_DONE), 2u);
}

TEST(SessionTest, AStrictRoundFindsAPageThatIsGivenTwice) {
  Pair pair;
  pair.Ready();
  ASSERT_TRUE(pair.s()->RoundBegin(1, MIG_ROUND_STRICT).ok());
  const struct mig_range ranges[] = {{0, 2 * kPage, 7, 0, 0},
                                     {kPage, kPage, 7, MIG_RANGE_ZERO, 0}};
  size_t accepted = 0;
  uint64_t partial = 0;
  EXPECT_EQ(ErrorCode(pair.s()->Write(ranges, 2, sizeof(ranges[0]), &accepted,
                                      &partial)),
            MIG_E_STRICT);
  pair.Settle();
  EXPECT_EQ(pair.s().FailureCode(), MIG_E_STRICT);
  EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_FAILED);
}

// Rule 13.4: what is due needs no descriptor.
TEST(SessionTest, ArmKnowsThatWriteReadyIsDue) {
  Pair pair(64, [](SessionSettings* s) { s->batches = 1; });
  pair.Ready();
  ASSERT_TRUE(pair.s()->RoundBegin(1, 0).ok());
  // 513 ranges of length 0 fill nothing; the 513th has no room.
  const std::vector<struct mig_range> none(513, {0, 0, 7, 0, 0});
  size_t accepted = 0;
  uint64_t partial = 0;
  pair.s().Step();
  ASSERT_FALSE(pair.s().Busy());
  ASSERT_TRUE(pair.s()
                  ->Write(none.data(), none.size(), sizeof(none[0]), &accepted,
                          &partial)
                  .ok());
  ASSERT_EQ(accepted, 512u);
  EXPECT_TRUE(pair.s().Busy());
  pair.s().Step();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_WRITE_READY));
  EXPECT_FALSE(pair.s().Busy());
}

// A peer that reads nothing: neither BUSY for ever, nor more memory.
TEST(SessionTest, AFullLinkIsWaitedForWithoutSpinning) {
  Pair pair(8192);
  pair.Ready();
  ASSERT_TRUE(pair.s()->RoundBegin(1, 0).ok());
  std::vector<struct mig_range> pages;
  for (uint64_t page = 0; page < 8192; page += 2) {
    pages.push_back({page * kPage, kPage, 7, 0, 0});
  }
  size_t accepted = 0, at = 0;
  uint64_t partial = 0;
  do {
    ASSERT_TRUE(pair.s()
                    ->Write(pages.data() + at, 100, sizeof(pages[0]), &accepted,
                            &partial)
                    .ok());
    at += accepted;
    pair.s().Step();
  } while (accepted == 100 && at + 100 <= pages.size());
  ASSERT_LT(accepted, 100u) << "the link took everything";
  for (int i = 0; i < 3 && pair.s().Busy(); ++i) pair.s().Step();
  EXPECT_FALSE(pair.s().Busy());
  EXPECT_FALSE(pair.s().Has(MIG_EVENT_WRITE_READY));
  // One page into an open batch does not change that.
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_WRITE_READY));
}

TEST(SessionTest, AnOpenBatchBehindAFullSocketIsNoWork) {
  Pair pair(8192);
  pair.Ready();
  ASSERT_TRUE(pair.s()->RoundBegin(1, 0).ok());
  size_t accepted = 0;
  uint64_t partial = 0;
  // Three whole batches, of which the socket takes a part, and one page.
  const struct mig_range whole = {0, 12u << 20, 7, 0, 0};
  const struct mig_range page = {(12u << 20) + kPage, kPage, 7, 0, 0};
  ASSERT_TRUE(
      pair.s()->Write(&whole, 1, sizeof(whole), &accepted, &partial).ok());
  ASSERT_EQ(accepted, 1u);
  ASSERT_TRUE(
      pair.s()->Write(&page, 1, sizeof(page), &accepted, &partial).ok());
  ASSERT_EQ(accepted, 1u);
  pair.s().Step();
  EXPECT_FALSE(pair.s().Busy());
  ASSERT_TRUE(pair.s()->RoundEnd(1).ok());
  pair.Settle();
  EXPECT_TRUE(pair.d().Has(MIG_EVENT_ROUND_DONE));
}

// Rule 7.4: n+1 may begin, and even end, before ROUND_DONE(n).
TEST(SessionTest, EmptyRoundsMayBeEndedAheadOfTheirAcknowledgement) {
  Pair pair;
  pair.Ready();
  for (uint64_t round = 1; round <= 3000; ++round) {
    ASSERT_TRUE(pair.s()->RoundBegin(round, 0).ok());
    const struct mig_range page = {0, kPage, 7, 0, 0};
    size_t accepted = 9;
    uint64_t partial = 9;
    ASSERT_TRUE(
        pair.s()->Write(&page, 1, sizeof(page), &accepted, &partial).ok());
    EXPECT_EQ(accepted, round == 1 ? 1u : 0u);
    ASSERT_TRUE(pair.s()->RoundEnd(round).ok());
  }
  pair.Settle();
  ASSERT_EQ(pair.s().Count(MIG_EVENT_ROUND_DONE), 3000u);
  EXPECT_EQ(pair.d().Count(MIG_EVENT_ROUND_DONE), 3000u);
}

TEST(SessionTest, MessagesFlowBothWaysAndCreditHoldsThemBack) {
  Pair pair;
  pair.Settle();
  pair.d().release = false;
  const std::string text(1u << 20, 'm');
  const struct mig_iov iov = {text.data(), text.size()};
  int sent = 0;
  while (true) {
    const auto taken = pair.s()->Send(0, 1, &iov, 1, sizeof(iov));
    ASSERT_TRUE(taken.ok());
    if (!*taken) break;
    pair.Settle();
    ASSERT_LT(++sent, 10);
  }
  EXPECT_EQ(sent, 3) << "a window of 4 MiB, with overhead";
  EXPECT_FALSE(pair.s().Has(MIG_EVENT_SEND_READY));
  // Missing credit one way holds up nothing the other way (rule 11.7).
  ASSERT_TRUE(*pair.d()->Send(0, 2, &iov, 1, sizeof(iov)));
  pair.Settle();
  EXPECT_EQ(pair.s().messages.size(), 1u);
  for (const auto& event : pair.d().events) {
    if (event.type == MIG_EVENT_MESSAGE) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(event.data) % 16, 0u);
      pair.d()->MessageRelease(event.message);
      pair.d()->MessageRelease(event.message);  // a host's bug, harmless
    }
  }
  pair.Settle();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_SEND_READY));
  EXPECT_TRUE(*pair.s()->Send(0, 1, &iov, 1, sizeof(iov)));
}

TEST(SessionTest, MessagesOfEveryKindOfLengthArriveWhole) {
  Pair pair;
  pair.Settle();
  const std::string text((1u << 20) + 1, 'x');
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096},
                            (size_t{1} << 20) - 1, size_t{1} << 20}) {
    const struct mig_iov iov[] = {
        {text.data(), size / 3}, {nullptr, 0}, {text.data(), size - size / 3}};
    ASSERT_TRUE(*pair.s()->Send(0, 1, iov, 3, sizeof(iov[0])));
    pair.Settle();
    EXPECT_EQ(pair.d().messages.back().size(), size);
  }
  const struct mig_iov large = {text.data(), text.size()};
  EXPECT_EQ(ErrorCode(pair.s()->Send(0, 1, &large, 1, sizeof(large)).status()),
            MIG_E_ARGUMENT);
  EXPECT_EQ(ErrorCode(pair.s()->Send(1, 1, &large, 0, 16).status()),
            MIG_E_ARGUMENT);
  const struct mig_iov null = {nullptr, 1};
  EXPECT_EQ(ErrorCode(pair.s()->Send(0, 1, &null, 1, sizeof(null)).status()),
            MIG_E_ARGUMENT);
}

// Rules 13.1, 13.2 and C08.
TEST(SessionTest, ASilentPeerIsFoundAndNamedAndAnIdleOneIsNot) {
  Pair pair;
  pair.Ready();
  for (int i = 0; i < 100; ++i) {
    pair.host.Advance(5 * kSecond / 2);
    pair.Settle();
  }
  EXPECT_EQ(pair.s().FailureCode(), MIG_OK);
  EXPECT_EQ(pair.d().FailureCode(), MIG_OK);
  pair.host.Advance(10 * kSecond + 2);
  pair.s().Step();
  EXPECT_EQ(pair.s().FailureCode(), MIG_E_PEER_TIMEOUT);
  EXPECT_THAT(pair.s().ErrorText(), HasSubstr("before the first round"));
  EXPECT_THAT(pair.s().ErrorText(), HasSubstr("10000 ms"));
  EXPECT_THAT(pair.s().ErrorText(), HasSubstr("peer fd:"));
}

TEST(SessionTest, C36APeerThatSaidItIsBusyIsWaitedForAndNoLonger) {
  for (const bool said : {true, false}) {
    Pair pair;
    pair.Ready();
    if (said) {
      ASSERT_TRUE(pair.d()->HostBusy(20 * kSecond).ok());
    }
    pair.s().Step();
    for (int second = 1; second <= 29; ++second) {
      pair.host.Advance(kSecond);
      pair.s().Step();
      if (second == 11) {
        EXPECT_EQ(pair.s().FailureCode(), said ? MIG_OK : MIG_E_PEER_TIMEOUT);
      }
    }
    if (!said) continue;
    EXPECT_EQ(pair.s().FailureCode(), MIG_OK);
    pair.host.Advance(2 * kSecond);
    pair.s().Step();
    EXPECT_EQ(pair.s().FailureCode(), MIG_E_PEER_TIMEOUT);
  }
}

TEST(SessionTest, CloseLetsMessagesOutAndEndsBoth) {
  Pair pair;
  pair.Ready();
  const std::string text(100000, 'm');
  const struct mig_iov iov = {text.data(), text.size()};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(*pair.s()->Send(0, 1, &iov, 1, sizeof(iov)));
  }
  pair.s()->Close();
  pair.s()->Close();
  pair.Settle();
  EXPECT_EQ(pair.d().messages.size(), 10u);
  EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_CLOSED);
  EXPECT_EQ(pair.s().Count(MIG_EVENT_CLOSED), 1u);
  EXPECT_FALSE(pair.s().Has(MIG_EVENT_ERROR));
  EXPECT_TRUE(pair.s()->error().ok());
  pair.s()->Cancel();  // after CLOSED: nothing
  pair.s().Step();
  EXPECT_TRUE(pair.s()->error().ok());
  EXPECT_EQ(pair.s().events.back().type, MIG_EVENT_CLOSED);
}

TEST(SessionTest, CloseOfASilentPeerEndsWithinItsTimeout) {
  Pair pair;
  pair.Ready();
  pair.s()->Close();
  pair.s().Step();
  EXPECT_FALSE(pair.s().Has(MIG_EVENT_CLOSED));
  EXPECT_EQ(pair.s().Deadline(), pair.host.now_ns() + kSecond);
  pair.host.Advance(kSecond);
  pair.s().Step();
  EXPECT_TRUE(pair.s().Has(MIG_EVENT_CLOSED));
}

TEST(SessionTest, EveryPhaseClosesAndCancels) {
  for (const bool cancel : {false, true}) {
    for (int phase = 0; phase < 5; ++phase) {
      Pair pair;
      pair.LetGo();
      if (phase == 1) pair.s().Step();  // in the handshake
      if (phase == 2) pair.Settle();
      if (phase == 3) pair.Ready();
      if (phase == 4) {
        pair.Ready();
        ASSERT_TRUE(pair.s()->RoundBegin(1, 0).ok());
      }
      if (cancel) {
        pair.s()->Cancel();
        pair.Settle();
        EXPECT_EQ(pair.s().FailureCode(), MIG_E_CANCELLED) << phase;
        if (phase > 1) {
          EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_CANCELLED) << phase;
        } else {
          EXPECT_TRUE(pair.d().Has(MIG_EVENT_ERROR)) << phase;
        }
      }
      pair.s()->Close();
      pair.d()->Close();
      pair.Settle();
      EXPECT_EQ(pair.s().Count(MIG_EVENT_CLOSED), 1u) << phase;
      EXPECT_EQ(pair.d().Count(MIG_EVENT_CLOSED), 1u) << phase;
    }
  }
}

TEST(SessionTest, ALostLinkIsAnErrorOnBothSidesBeforeTheHandover) {
  Pair pair;
  pair.OneRound();
  pair.Cut();
  pair.Settle();
  EXPECT_EQ(pair.s().FailureCode(), MIG_E_PEER_LOST);
  EXPECT_EQ(pair.d().FailureCode(), MIG_E_PEER_LOST);
  EXPECT_THAT(pair.s().ErrorText(), HasSubstr("after round 1"));
}

// A host in its own loop: wake and cancel make the descriptor readable.
TEST(SessionTest, WakeAndCancelReachTheDescriptorThatAHostSleepsOn) {
  Pair pair;
  pair.Ready();
  const int fd = pair.s()->EventFd().fd;
  struct epoll_event event = {};
  const auto readable = [&] { return epoll_wait(fd, &event, 1, 0) == 1; };
  const UniqueFd outer(epoll_create1(EPOLL_CLOEXEC));
  struct epoll_event watch = {.events = EPOLLIN, .data = {}};
  ASSERT_EQ(epoll_ctl(outer.get(), EPOLL_CTL_ADD, fd, &watch), 0);
  const auto outer_ready = [&] {
    return epoll_wait(outer.get(), &event, 1, 0) == 1;
  };
  pair.s().Step();
  EXPECT_FALSE(outer_ready());
  pair.s()->Wake();
  EXPECT_TRUE(outer_ready());
  EXPECT_TRUE(pair.s().Busy());
  size_t count = 0;
  struct mig_event taken;
  // A wait for ever returns because of it, once.
  ASSERT_TRUE(pair.s()
                  ->Progress(&taken, 1, sizeof(taken), MIG_WAIT_FOREVER, &count)
                  .ok());
  EXPECT_EQ(count, 0u);
  EXPECT_FALSE(pair.s().Busy());
  EXPECT_FALSE(readable());
}

TEST(SessionTest, ProgressThatCanNeverHaveAnEventDoesNotWait) {
  Pair pair;
  Side fresh(&pair.host, SettingsOf(MIG_ROLE_SOURCE));
  struct mig_event taken;
  size_t count = 9;
  const auto forever = [&](Side* side) {
    return (*side)->Progress(&taken, 1, sizeof(taken), MIG_WAIT_FOREVER,
                             &count);
  };
  ASSERT_TRUE(forever(&fresh).ok());
  EXPECT_EQ(count, 0u);
  fresh->Close();
  ASSERT_TRUE(forever(&fresh).ok());
  EXPECT_EQ(taken.type, MIG_EVENT_CLOSED);
  ASSERT_TRUE(forever(&fresh).ok());
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(ErrorCode(fresh->Progress(&taken, 1, sizeof(taken), -2, &count)),
            MIG_E_ARGUMENT);
}

}  // namespace
}  // namespace mig::tcp
