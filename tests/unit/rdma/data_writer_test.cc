// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/data_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "writer_fixture.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBlock = WriterFixture::kBlock;

TEST(DataWriter, WritesExactlyWhatWasGivenThroughAnyNumberOfQueues) {
  for (const size_t queues : {1u, 2u, 8u, 16u}) {
    WriterFixture at({.queues = queues,
                      .depth = 16,
                      .length = 8 * kMiB,
                      .chunk = kMiB,
                      .memory = true});
    std::byte* const from = at.blocks.Find(kBlock)->base;
    auto* const to = static_cast<std::byte*>(at.destination_mr->addr);
    uint32_t state = 1;
    for (int turn = 0; turn < 5; ++turn) {
      at.Begin();
      std::vector<bool> given(2048);
      uint64_t bytes = 0;
      for (int i = 0; i < 300; ++i) {
        state = state * 1664525 + 1013904223;
        const uint64_t page = (state >> 8) % 2048;
        uint64_t pages = 0;
        while (pages < (state >> 28) + 1 && page + pages < 2048 &&
               !given[page + pages]) {
          given[page + pages] = true;
          ++pages;
        }
        if (pages == 0) continue;
        std::memset(from + page * kPage, static_cast<int>(state >> 16),
                    pages * kPage);
        at.WriteAll(page * kPage, pages * kPage);
        bytes += pages * kPage;
        if (i % 50 == 0) at.writer->Flush();
      }
      at.EndRound();
      EXPECT_EQ(at.bytes_told, bytes);
      for (uint64_t page = 0; page < 2048; ++page) {
        if (!given[page]) continue;
        EXPECT_EQ(std::memcmp(from + page * kPage, to + page * kPage, kPage),
                  0);
      }
    }
    EXPECT_TRUE(at.device.faults.empty());
    EXPECT_EQ(at.stats.bytes_accepted, at.stats.writes.bytes);
  }
}

// A batch a queue in turn.
TEST(DataWriter, SpreadsARoundOverTheQueues) {
  WriterFixture at({.queues = 4, .length = 4 * kGiB});
  at.Begin();
  for (uint64_t i = 0; i < 4096; ++i) at.WriteAll(i * 2 * kPage, kPage);
  at.EndRound();
  for (const FakeQp* qp : at.qps) EXPECT_EQ(qp->doorbells, 17u);
}

TEST(DataWriter, SpreadsOneLargeRangeOverTheQueues) {
  WriterFixture at({.queues = 4, .length = 4 * kGiB, .chunk = kGiB});
  at.Begin();
  EXPECT_EQ(at.Write(0, kGiB), kGiB);
  for (const FakeQp* qp : at.qps) EXPECT_GE(qp->count, 30u);
  at.EndRound();
}

TEST(DataWriter, PassesOverAQueueThatIsFull) {
  WriterFixture at({.queues = 2, .depth = 128, .length = 4 * kGiB});
  at.Begin();
  uint64_t page = 0;
  while (at.Write(page * 2 * kPage, kPage) > 0) ++page;
  EXPECT_EQ(at.writer->stall(), Stall::kSendQueue);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  // Only the second queue pair moves.
  for (int turn = 0; turn < 20; ++turn) {
    at.device.Carry(at.qps[1]);
    at.device.Poll(at.qps[1],
                   [&](const ibv_wc& wc) { at.writer->OnCompletion(wc); });
    EXPECT_EQ(at.writer->WriteReadyDue(), turn == 0);
    for (int i = 0; i < 63; ++i) {
      EXPECT_EQ(at.Write(page++ * 2 * kPage, kPage), kPage);
    }
  }
  at.EndRound();
}

TEST(DataWriter, StepsThroughRangesByTheirElementSize) {
  struct Longer {
    struct mig_range range;
    uint64_t more[3];
  };
  WriterFixture at({});
  std::vector<Longer> ranges(10);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].range = {i * 2 * kPage, kPage, kBlock, 0, 0};
    std::fill_n(ranges[i].more, 3, ~uint64_t{0});
  }
  at.Begin();
  size_t accepted = 0;
  uint64_t partial = 0;
  ASSERT_TRUE(at.writer
                  ->Write(&ranges[0].range, ranges.size(), sizeof(Longer),
                          &accepted, &partial)
                  .ok());
  EXPECT_EQ(accepted, 10u);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.writes, 10u);
}

TEST(DataWriter, ARangeThatIsWrongMakesTheWholeCallTakeNothing) {
  WriterFixture at({});
  const struct mig_range bad[] = {{1, kPage, kBlock, 0, 0},
                                  {0, kPage, kBlock + 1, 0, 0},
                                  {64 * kMiB, kPage, kBlock, 0, 0},
                                  {0, kPage, kBlock, 2, 0},
                                  {0, kPage, kBlock, 0, 1},
                                  {0, UINT64_MAX, kBlock, 0, 0},
                                  {UINT64_MAX - 4095, 8192, kBlock, 0, 0}};
  at.Begin();
  for (const struct mig_range& range : bad) {
    const struct mig_range ranges[] = {
        {0, kPage, kBlock, 0, 0}, {2 * kPage, kPage, kBlock, 0, 0}, range};
    size_t accepted = 9;
    uint64_t partial = 9;
    EXPECT_FALSE(
        at.writer->Write(ranges, 3, sizeof(ranges[0]), &accepted, &partial)
            .ok());
    EXPECT_EQ(accepted, 0u);
    EXPECT_EQ(partial, 0u);
  }
  EXPECT_EQ(at.stats.bytes_accepted, 0u);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.writes, 0u);
}

// More ranges in a call than there is room for: those that are looked at later
// meet their error in the next call.
TEST(DataWriter, AnErrorBehindWhatWasTakenComesWithTheNextCall) {
  WriterFixture at({.length = 4 * kGiB});
  std::vector<struct mig_range> ranges(200);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = {i * 2 * kPage, kPage, kBlock, 0, 0};
  }
  ranges[150].offset = 1;
  at.Begin();
  size_t accepted = 0;
  uint64_t partial = 0;
  ASSERT_TRUE(
      at.writer->Write(ranges.data(), 200, 32, &accepted, &partial).ok());
  EXPECT_GT(accepted, 0u);
  EXPECT_LE(accepted, 150u);
  EXPECT_TRUE(at.writer->WriteReadyDue());
  size_t more = 0;
  const absl::Status status = at.writer->Write(
      ranges.data() + accepted, 200 - accepted, 32, &more, &partial);
  EXPECT_EQ(ErrorCode(status), MIG_E_RANGE);
  EXPECT_EQ(more, 0u);
}

TEST(DataWriter, BackpressureIsInWholePages) {
  WriterFixture at({.depth = 16, .length = kGiB, .chunk = kMiB});
  at.device.max_message = kMiB;
  at.Begin();
  const uint64_t taken = at.Write(0, kGiB);
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, kGiB);
  EXPECT_EQ(taken % kPage, 0u);
  EXPECT_EQ(at.stats.stalls[static_cast<size_t>(Stall::kSendQueue)], 1u);
  at.WriteAll(taken, kGiB - taken);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.bytes, kGiB);
}

// A page of 1 GiB in chunks of 1 MiB: once begun it is taken, and goes out as
// room comes.
TEST(DataWriter, PagesMayBeLargerThanChunks) {
  WriterFixture at(
      {.depth = 16, .length = 4 * kGiB, .page_size = kGiB, .chunk = kMiB});
  at.Begin();
  EXPECT_EQ(at.Write(kGiB, 2 * kGiB), kGiB);
  EXPECT_EQ(at.Write(2 * kGiB, kGiB), 0u);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  at.Settle();
  at.writer->Flush();
  at.Settle();
  EXPECT_EQ(at.stats.writes.bytes, kGiB);
  EXPECT_TRUE(at.writer->WriteReadyDue());
  at.WriteAll(2 * kGiB, kGiB);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.bytes, 2 * kGiB);
}

// C13 (H5)
TEST(DataWriter, WritesPagesEitherSideOfTwoAndFourGiB) {
  WriterFixture at({.length = 5 * kGiB, .chunk = kGiB});
  at.device.record = true;
  at.Begin();
  const uint64_t base =
      reinterpret_cast<uintptr_t>(at.blocks.Find(kBlock)->base);
  std::set<uint64_t> expected;
  for (const uint64_t edge : {2 * kGiB, 4 * kGiB}) {
    for (const uint64_t offset : {edge - kPage, edge}) {
      at.WriteAll(offset, kPage);
      expected.insert(base + offset);
    }
  }
  at.writer->Flush();
  std::set<uint64_t> seen;
  for (const FakeWr& wr : at.device.seen) {
    seen.insert(wr.local);
    EXPECT_EQ(wr.length, kPage);
    EXPECT_EQ(wr.remote - (uint64_t{1} << 45), wr.local - base);
  }
  EXPECT_EQ(seen, expected);
  at.EndRound();
}

TEST(DataWriter, OneRangeOverFourGiBIsWrittenWhole) {
  for (const uint64_t chunk : {kMiB, 32 * kMiB, kGiB}) {
    WriterFixture at({.queues = 2, .length = 5 * kGiB + kPage, .chunk = chunk});
    at.Begin();
    at.WriteAll(0, 5 * kGiB + kPage);
    at.EndRound();
    EXPECT_EQ(at.stats.writes.bytes, 5 * kGiB + kPage);
    EXPECT_TRUE(at.device.faults.empty());
  }
}

// -- Keys that come late ------------------------------------------------------

TEST(DataWriter, WritesToReadyChunksNeverWaitForOthers) {
  WriterFixture at({.length = 256 * kMiB, .chunk = kMiB, .keys = false});
  at.GiveKeys(200);
  at.Begin();
  EXPECT_EQ(at.Write(3 * kMiB, kPage), kPage);
  EXPECT_EQ(at.Write(200 * kMiB, kPage), kPage);
  at.writer->Flush();
  EXPECT_EQ(at.stats.writes.writes, 1u);
  at.writer->RoundEnd();
  at.Settle();
  EXPECT_EQ(at.writer->posted_round(), 0u);  // a page waits
  at.GiveKeys(3);
  at.writer->Pump();
  EXPECT_EQ(at.writer->posted_round(), 1u);
  EXPECT_EQ(at.stats.writes.writes, 2u);
}

TEST(DataWriter, AsksForManyChunksAtOnceAndForEachOnlyOnce) {
  WriterFixture at({.length = 256 * kMiB, .chunk = kMiB, .keys = false});
  at.Begin();
  std::map<uint32_t, int> asked;
  size_t requests = 0;
  std::array<ChunkRequest, 64> wanted;
  for (uint64_t i = 0; i < 256; ++i) {
    at.WriteAll(i * kMiB, kMiB);
    const size_t count = at.writer->TakeRequests(wanted);
    if (count > 0) ++requests;
    for (size_t k = 0; k < count; ++k) {
      EXPECT_TRUE(wanted[k].local);
      EXPECT_TRUE(wanted[k].remote);
      EXPECT_EQ(wanted[k].block, kBlock);
      ++asked[wanted[k].chunk];
      at.GiveKeys(wanted[k].chunk);
    }
  }
  EXPECT_EQ(asked.size(), 256u);
  for (const auto& [chunk, times] : asked) EXPECT_EQ(times, 1) << chunk;
  // A request and an answer for eight chunks or more.
  EXPECT_LE(requests * 8, 256u + 16);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.bytes, 256 * kMiB);
}

// The first chunk of a block is asked for ahead of the write to it.
TEST(DataWriter, KeysAreAskedForAheadOfTheWrites) {
  WriterFixture at({.length = 256 * kMiB, .chunk = kMiB, .keys = false});
  at.Begin();
  std::array<ChunkRequest, 64> wanted;
  uint64_t waited = 0;
  for (uint64_t i = 0; i < 256; ++i) {
    if (!at.writer->Map(kBlock)->Ready(static_cast<uint32_t>(i))) ++waited;
    at.WriteAll(i * kMiB, kMiB);
    const size_t count = at.writer->TakeRequests(wanted);
    for (size_t k = 0; k < count; ++k) at.GiveKeys(wanted[k].chunk);
  }
  EXPECT_EQ(waited, 1u);
  EXPECT_EQ(at.stats.ranges_aside, 1u);
  at.EndRound();
}

TEST(DataWriter, TakesNoMoreThanItCanSetAside) {
  WriterFixture::Options options = {
      .length = 256 * kMiB, .chunk = kMiB, .keys = false};
  options.settings.aside = 10;
  WriterFixture at(options);
  at.Begin();
  uint64_t taken = 0;
  while (at.Write(taken * 3 * kPage, kPage) > 0) ++taken;
  EXPECT_EQ(taken, 10u);
  EXPECT_EQ(at.writer->stall(), Stall::kKeys);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  EXPECT_EQ(at.stats.peak_aside, 10u);
  at.GiveKeys(0);
  at.writer->Pump();
  EXPECT_TRUE(at.writer->WriteReadyDue());
  at.writer->ToldWriteReady();
  EXPECT_FALSE(at.writer->WriteReadyDue());
  at.EndRound();
  EXPECT_EQ(at.stats.writes.bytes, 10 * kPage);
}

// A flush is for what was taken before, also for what has to wait.
TEST(DataWriter, AFlushReachesWhatWasSetAside) {
  WriterFixture at({.length = 256 * kMiB, .chunk = kMiB, .keys = false});
  at.Begin();
  EXPECT_EQ(at.Write(0, kPage), kPage);
  at.writer->Flush();
  EXPECT_EQ(at.stats.writes.writes, 0u);
  at.GiveKeys(0);
  at.writer->Pump();
  EXPECT_EQ(at.stats.writes.writes, 1u);
}

TEST(DataWriter, KeysOfARemovedBlockAreNobodys) {
  WriterFixture at({.keys = false});
  at.writer->RemoveBlock(kBlock);
  EXPECT_TRUE(at.writer->LocalReady(kBlock, 0, 0, 5).ok());
  EXPECT_TRUE(at.writer->RemoteReady(kBlock, 0, 0, 5).ok());
}

// -- Rounds -------------------------------------------------------------------

TEST(DataWriter, TakesNothingBeforeTheRoundBeforeIsAcknowledged) {
  WriterFixture at({});
  at.writer->RoundBegin(1, false);
  EXPECT_EQ(at.Write(0, kPage), kPage);
  at.writer->RoundEnd();
  at.writer->RoundBegin(2, false);
  EXPECT_EQ(at.Write(0, kPage), 0u);
  EXPECT_EQ(at.writer->stall(), Stall::kRound);
  at.Settle();
  EXPECT_FALSE(at.writer->WriteReadyDue());
  EXPECT_EQ(at.stats.writes.writes, 1u);
  at.writer->RoundEnd();  // even its fence waits
  at.Settle();
  EXPECT_EQ(at.writer->posted_round(), 1u);
  EXPECT_EQ(at.stats.writes.fences, 1u);
  at.writer->Acknowledged(1);
  EXPECT_EQ(at.writer->posted_round(), 2u);
}

TEST(DataWriter, WriteReadyComesWithTheAcknowledgement) {
  WriterFixture at({});
  at.Begin();
  at.writer->RoundEnd();
  at.Settle();
  at.writer->RoundBegin(2, false);
  EXPECT_EQ(at.Write(0, kPage), 0u);
  at.writer->Acknowledged(1);
  EXPECT_TRUE(at.writer->WriteReadyDue());
}

// The host may go on while an ended round still waits for keys: its data, and
// its own fences, come before anything of the next.
TEST(DataWriter, RoundsBegunAndEndedMeanwhileKeepTheirOrder) {
  WriterFixture at({.queues = 2,
                    .length = 8 * kMiB,
                    .chunk = kMiB,
                    .keys = false,
                    .memory = true});
  at.Begin();
  EXPECT_EQ(at.Write(0, kPage), kPage);
  at.writer->RoundEnd();
  for (uint64_t number = 2; number <= 4; ++number) {
    at.writer->RoundBegin(number, false);
    EXPECT_EQ(at.Write(0, kPage), 0u);
    at.writer->RoundEnd();
  }
  at.Settle();
  EXPECT_EQ(at.writer->posted_round(), 0u);
  at.GiveKeys(0);
  for (uint64_t number = 1; number <= 4; ++number) {
    at.Settle();
    EXPECT_EQ(at.writer->posted_round(), number);
    at.TakeFences();
    EXPECT_TRUE(at.receiver->Whole());
    EXPECT_EQ(at.receiver->round(), number);
    EXPECT_EQ(at.receiver->writes(), number == 1 ? 1u : 0u);
    at.receiver->Next();
    at.writer->Acknowledged(number);
  }
}

// C05, C24: each fence is behind the last write of its queue pair.
TEST(DataWriter, EachQueuesFenceIsBehindItsLastWrite) {
  WriterFixture at({.queues = 3, .length = 64 * kMiB, .memory = true});
  at.device.record = true;
  for (int turn = 0; turn < 4; ++turn) {
    at.device.seen.clear();
    at.Begin();
    for (uint64_t i = 0; i < 65; ++i) at.WriteAll(i * 2 * kPage, kPage);
    at.EndRound();
    EXPECT_EQ(at.writes_told, 65u);
    std::map<uint64_t, ibv_wr_opcode> last;
    for (const FakeWr& wr : at.device.seen) {
      last[wr.wr_id >> 52] = wr.opcode;
    }
    EXPECT_EQ(last.size(), 3u);
    for (const auto& [queue, opcode] : last) EXPECT_EQ(opcode, IBV_WR_SEND);
  }
}

// C05
TEST(DataWriter, ARoundWithNothingInItHasItsFences) {
  WriterFixture at({.queues = 4, .length = kMiB, .memory = true});
  for (int turn = 0; turn < 10; ++turn) {
    at.Begin();
    at.EndRound();
    EXPECT_EQ(at.writes_told, 0u);
  }
}

TEST(DataWriter, StrictReportsAPageThatIsGivenTwice) {
  for (const uint32_t flags : {0u, MIG_RANGE_ZERO}) {
    WriterFixture at({});
    at.Begin(/*strict=*/true);
    EXPECT_EQ(at.Write(0, 4 * kPage), 4 * kPage);
    EXPECT_EQ(at.Write(6 * kPage, kPage, MIG_RANGE_ZERO), kPage);
    for (const uint64_t offset : {3 * kPage, 6 * kPage}) {
      const struct mig_range range = {offset, kPage, kBlock, flags, 0};
      size_t accepted = 0;
      uint64_t partial = 0;
      const absl::Status status =
          at.writer->Write(&range, 1, 32, &accepted, &partial);
      EXPECT_EQ(ErrorCode(status), MIG_E_STRICT);
      EXPECT_THAT(std::string(status.message()), HasSubstr("'ram'"));
      EXPECT_EQ(accepted, 0u);
    }
    EXPECT_EQ(at.Write(4 * kPage, 2 * kPage), 2 * kPage);
    at.EndRound();
    at.Begin(/*strict=*/true);  // a new round
    EXPECT_EQ(at.Write(0, 4 * kPage), 4 * kPage);
    at.EndRound();
  }
}

// H1: what was written before is told to be zero, what never was costs
// nothing.
TEST(DataWriter, ZeroRangesAreToldOnlyWhereThePeerMayHaveSomethingElse) {
  WriterFixture at({.zeroed = true});
  std::array<ZeroRun, 8> runs;
  at.Begin();
  EXPECT_EQ(at.Write(0, 32 * kPage, MIG_RANGE_ZERO), 32 * kPage);
  EXPECT_EQ(at.writer->TakeZeroRuns(runs), 0u);
  EXPECT_EQ(at.Write(40 * kPage, 2 * kPage), 2 * kPage);
  at.EndRound();
  at.Begin();
  EXPECT_EQ(at.Write(32 * kPage, 32 * kPage, MIG_RANGE_ZERO), 32 * kPage);
  ASSERT_EQ(at.writer->TakeZeroRuns(runs), 1u);
  EXPECT_EQ(runs[0].offset, 40 * kPage);
  EXPECT_EQ(runs[0].length, 2 * kPage);
  at.EndRound();
  EXPECT_EQ(at.stats.zero_bytes_accepted, 64 * kPage);
  EXPECT_EQ(at.stats.zero_bytes_told, 2 * kPage);
  EXPECT_EQ(at.stats.writes.bytes, 2 * kPage);
}

TEST(DataWriter, FindsZeroPagesWhereAsked) {
  WriterFixture::Options options = {
      .length = kMiB, .chunk = kMiB, .memory = true, .zeroed = true};
  options.settings.find_zero = true;
  WriterFixture at(options);
  std::byte* const base = at.blocks.Find(kBlock)->base;
  std::memset(base, 0, kMiB);
  for (const uint64_t page : {0u, 1u, 100u, 255u}) base[page * kPage + 9] = {};
  for (const uint64_t page : {3u, 4u, 255u}) {
    base[page * kPage + 4095] = std::byte{1};
  }
  at.Begin(/*strict=*/true);
  at.WriteAll(0, kMiB);
  at.EndRound();
  EXPECT_EQ(at.bytes_told, 3 * kPage);
  EXPECT_EQ(at.stats.zero_bytes_found, kMiB - 3 * kPage);
  EXPECT_EQ(at.stats.zero_bytes_told, 0u);
  EXPECT_EQ(at.stats.bytes_accepted, kMiB);
  // Zero again: told, since the peer has something else.
  base[4 * kPage + 4095] = std::byte{0};
  at.Begin(/*strict=*/true);
  at.WriteAll(4 * kPage, kPage);
  EXPECT_EQ(at.stats.zero_bytes_told, kPage);
  EXPECT_EQ(at.writer->zero_runs(), 1u);
  at.EndRound();
}

TEST(DataWriter, AFullZeroListIsBackpressure) {
  WriterFixture::Options options;
  options.settings.zero_runs = 4;
  WriterFixture at(options);
  at.Begin();
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(at.Write(i * 2 * kPage, kPage, MIG_RANGE_ZERO), kPage);
  }
  EXPECT_EQ(at.Write(8 * kPage, kPage, MIG_RANGE_ZERO), 0u);
  EXPECT_EQ(at.writer->stall(), Stall::kZeroList);
  EXPECT_EQ(at.Write(16 * kPage, kPage), kPage);  // data goes on
  EXPECT_EQ(at.Write(8 * kPage, kPage, MIG_RANGE_ZERO), 0u);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  std::array<ZeroRun, 8> runs;
  EXPECT_EQ(at.writer->TakeZeroRuns(runs), 4u);
  EXPECT_TRUE(at.writer->WriteReadyDue());
  EXPECT_EQ(at.Write(8 * kPage, kPage, MIG_RANGE_ZERO), kPage);
}

// C15
TEST(DataWriter, ABlockIsIdleWhenAllOfItIsRetired) {
  WriterFixture at({.length = 64 * kMiB, .chunk = kMiB, .keys = false});
  at.GiveKeys(0);
  at.Begin();
  EXPECT_TRUE(at.writer->BlockIdle(kBlock));
  at.Write(0, kPage);
  at.Write(kMiB, kPage);
  at.blocks.Find(kBlock)->removing = true;
  EXPECT_FALSE(at.writer->BlockIdle(kBlock));
  at.Settle();
  EXPECT_FALSE(at.writer->BlockIdle(kBlock));  // one waits for keys
  at.GiveKeys(1);
  at.writer->Pump();
  EXPECT_FALSE(at.writer->BlockIdle(kBlock));
  at.Settle();
  EXPECT_TRUE(at.writer->BlockIdle(kBlock));
  at.writer->RemoveBlock(kBlock);
  EXPECT_EQ(at.writer->Map(kBlock), nullptr);
  at.EndRound();
}

// -- Errors -------------------------------------------------------------------

// C06, C32
TEST(DataWriter, AfterAnErrorNothingIsPosted) {
  WriterFixture at({.queues = 2, .length = 4 * kGiB});
  at.device.fail_wr_at = 70;
  at.Begin();
  for (uint64_t i = 0; i < 300; ++i) at.Write(i * 2 * kPage, kPage);
  at.Carry(SIZE_MAX);
  EXPECT_EQ(ErrorCode(at.writer->status()), MIG_E_PEER_PROTOCOL);
  const uint64_t posted = at.device.posted;
  EXPECT_EQ(at.Write(0, kPage), 0u);
  at.writer->Flush();
  at.writer->RoundEnd();
  at.Carry(SIZE_MAX);
  EXPECT_EQ(at.device.posted, posted);
  EXPECT_EQ(at.writer->outstanding(), 0u);
  EXPECT_EQ(at.writer->posted_round(), 0u);
  EXPECT_EQ(at.writer->NextDueNs(), MIG_NO_DEADLINE);
}

// H4
TEST(DataWriter, APostThatFailsIsItsError) {
  WriterFixture at({.length = 4 * kGiB});
  at.device.fail_post_at = 30;
  at.device.fail_post_errno = ENOMEM;
  at.device.fail_post_minus_one = true;
  at.Begin();
  for (uint64_t i = 0; i < 64; ++i) at.Write(i * 2 * kPage, kPage);
  EXPECT_EQ(ErrorCode(at.writer->status()), MIG_E_DEVICE);
  EXPECT_EQ(ErrorErrno(at.writer->status()), ENOMEM);
  EXPECT_EQ(at.writer->outstanding(), 30u);
}

// -- Pacing and comparison ----------------------------------------------------

TEST(DataWriter, KeepsToMaxBandwidthOnTheHostsClock) {
  WriterFixture::Options options = {.queues = 2, .length = 4 * kGiB};
  options.settings.max_bandwidth = 100'000'000;
  WriterFixture at(options);
  at.Begin();
  const uint64_t start = at.now_ns;
  uint64_t taken = 0;
  while (at.now_ns < start + 1'000'000'000) {
    const uint64_t step = at.Write(taken, kGiB);
    taken += step;
    at.Settle();
    EXPECT_EQ(at.writer->stall(), Stall::kBandwidth);
    const uint64_t due = at.writer->NextDueNs();
    ASSERT_GT(due, at.now_ns);
    ASSERT_LT(due, at.now_ns + 10'000'000);
    EXPECT_FALSE(at.writer->WriteReadyDue());
    at.now_ns = due;
    at.writer->Pump();
    EXPECT_TRUE(at.writer->WriteReadyDue());
  }
  EXPECT_NEAR(static_cast<double>(taken), 1e8, 1e6);
  at.now_ns += 1'000'000'000;
  at.EndRound();
}

// Pages a second through one chunk, with a delay for each work request.
double Throughput(bool one_write_per_chunk, uint64_t delay_ns, uint32_t depth) {
  WriterFixture::Options options = {
      .depth = depth, .length = kGiB, .chunk = kGiB};
  options.settings.one_write_per_chunk = one_write_per_chunk;
  WriterFixture at(options);
  at.device.delay_ns = delay_ns;
  at.Begin();
  const uint64_t start = at.now_ns;
  constexpr uint64_t kPages = 20'000;
  for (uint64_t i = 0; i < kPages;) {
    at.device.now_ns = at.now_ns;
    if (at.Write(i * 2 * kPage, kPage) > 0) {
      ++i;
      continue;
    }
    // Time passes only when nothing more can be given.
    at.now_ns = at.qps[0]->ring[at.qps[0]->head].due_ns;
    at.device.CarryDue(at.qps[0], at.now_ns);
    at.device.Poll(at.qps[0],
                   [&](const ibv_wc& wc) { at.writer->OnCompletion(wc); });
    at.writer->Pump();
  }
  const double seconds = static_cast<double>(at.now_ns - start) / 1e9;
  at.EndRound();
  return kPages / seconds;
}

TEST(DataWriter, ThroughputIsInFlightByDelayAndCollapsesWithOneWritePerChunk) {
  for (const uint64_t delay_ns : {10'000u, 50'000u, 200'000u}) {
    const double one = Throughput(true, delay_ns, 512);
    const double many = Throughput(false, delay_ns, 512);
    const double ideal = 1e9 / static_cast<double>(delay_ns);
    EXPECT_NEAR(one, ideal, ideal * 0.01);
    EXPECT_GE(many, ideal * 448);
    EXPECT_LE(many, ideal * 530);
  }
}

TEST(DataWriter, OneWritePerChunkStillWritesToOtherChunksAndMerges) {
  WriterFixture::Options options = {.length = 64 * kMiB, .chunk = kMiB};
  options.settings.one_write_per_chunk = true;
  WriterFixture at(options);
  at.Begin();
  EXPECT_EQ(at.Write(0, kPage), kPage);
  EXPECT_EQ(at.Write(kPage, kPage), kPage);  // merges
  EXPECT_EQ(at.Write(kMiB, kPage), kPage);
  EXPECT_EQ(at.Write(2 * kMiB, kPage), kPage);
  EXPECT_EQ(at.Write(8 * kPage, kPage), 0u);
  EXPECT_EQ(at.writer->stall(), Stall::kChunkBusy);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  at.Settle();
  EXPECT_TRUE(at.writer->WriteReadyDue());
  EXPECT_EQ(at.Write(8 * kPage, kPage), kPage);
  at.EndRound();
  EXPECT_EQ(at.stats.writes.peak_per_chunk, 1u);
  EXPECT_EQ(at.stats.writes.writes, 4u);
}

TEST(DataWriter, DrainAtFlushTakesNothingUntilAllIsRetired) {
  WriterFixture::Options options;
  options.settings.drain_at_flush = true;
  WriterFixture at(options);
  at.Begin();
  EXPECT_EQ(at.Write(0, kPage), kPage);
  at.writer->Flush();
  EXPECT_EQ(at.Write(2 * kPage, kPage), 0u);
  EXPECT_EQ(at.writer->stall(), Stall::kDrain);
  EXPECT_FALSE(at.writer->WriteReadyDue());
  at.Settle();
  EXPECT_TRUE(at.writer->WriteReadyDue());
  EXPECT_EQ(at.Write(2 * kPage, kPage), kPage);
  at.EndRound();
  at.Begin();
  at.writer->Flush();  // nothing to drain
  EXPECT_EQ(at.Write(0, kPage), kPage);
}

}  // namespace
}  // namespace mig::rdma
