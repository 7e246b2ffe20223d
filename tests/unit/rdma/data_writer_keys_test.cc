// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Ranges whose keys come late.
#include <array>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/data_writer.h"
#include "writer_fixture.h"

namespace mig::rdma {
namespace {

constexpr uint32_t kBlock = WriterFixture::kBlock;

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

// The host goes on by WRITE_READY alone: a wrong call in between must not cost
// it that (model seeds 12099 and 41532).
TEST(DataWriter, ARefusedWriteLeavesWriteReadyOwed) {
  WriterFixture::Options options = {
      .length = 256 * kMiB, .chunk = kMiB, .keys = false};
  options.settings.aside = 10;
  WriterFixture at(options);
  at.Begin();
  for (uint64_t i = 0; i < 11; ++i) at.Write(i * 3 * kPage, kPage);
  EXPECT_EQ(at.writer->stall(), Stall::kKeys);
  // Room came, and WRITE_READY is not told yet.
  at.GiveKeys(0);
  struct mig_range outside = {};
  outside.block = kBlock;
  outside.length = kGiB;
  size_t accepted = 0;
  uint64_t partial = 0;
  EXPECT_FALSE(
      at.writer->Write(&outside, 1, sizeof(outside), &accepted, &partial).ok());
  EXPECT_TRUE(at.writer->WriteReadyDue());
  at.EndRound();
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

}  // namespace
}  // namespace mig::rdma
