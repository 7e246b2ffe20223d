// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What is written where, and what ends it.
#include "rdma/data_writer.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "writer_fixture.h"

namespace mig::rdma {
namespace {

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

}  // namespace
}  // namespace mig::rdma
