// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Pacing, and the options that compare with older transports.
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/data_writer.h"
#include "writer_fixture.h"

namespace mig::rdma {
namespace {

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
