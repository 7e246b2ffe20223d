// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rounds, the pages that may be given in one, and zero ranges.
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/data_writer.h"
#include "writer_fixture.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBlock = WriterFixture::kBlock;

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

}  // namespace
}  // namespace mig::rdma
