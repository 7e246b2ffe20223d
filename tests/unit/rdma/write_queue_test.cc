// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/write_queue.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "common/error.h"
#include "fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/wr_id.h"

namespace mig::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Nothing is read: the device only notes addresses.
std::byte* const kBase = At(uint64_t{1} << 40);
constexpr uint64_t kRemote = uint64_t{5} << 41;

class WriteQueueTest : public ::testing::Test {
 protected:
  void Open(uint32_t depth, uint64_t max_message = kGiB,
            uint64_t length = 16 * kGiB, uint64_t chunk = kGiB,
            uint32_t batch = 64) {
    device.record = true;
    qp = device.MakeQp(depth);
    auto made_map = ChunkMap::Create(3, kBase, length, chunk);
    ASSERT_TRUE(made_map.ok()) << made_map.status();
    map = *std::move(made_map);
    ASSERT_TRUE(map->SetRemoteBase(kRemote).ok());
    for (uint32_t i = 0; i < map->count(); ++i) {
      ASSERT_TRUE(map->SetLocal(i, 0, 1000 + i).ok());
      ASSERT_TRUE(map->SetRemote(i, 0, i).ok());
    }
    auto made = WriteQueue::Create(
        &device, &qp->qp,
        {.depth = depth, .max_message = max_message, .batch = batch}, &stats);
    ASSERT_TRUE(made.ok()) << made.status();
    queue = *std::move(made);
  }
  uint64_t Add(uint64_t offset, uint64_t length) {
    return queue->Add({map.get(), offset, length});
  }
  // A page that merges with no other one.
  uint64_t AddScattered(uint64_t i) { return Add(i * 2 * kPage, kPage); }
  void Carry(size_t count = SIZE_MAX) {
    device.Carry(qp, count);
    device.Poll(qp,
                [this](const ibv_wc& wc) { (void)queue->OnCompletion(wc); });
  }
  ibv_sge Payload() { return {reinterpret_cast<uintptr_t>(kBase), 32, 9}; }

  FakeDevice device;
  FakeQp* qp = nullptr;
  std::unique_ptr<ChunkMap> map;
  WriteStats stats;
  std::unique_ptr<WriteQueue> queue;
};

TEST_F(WriteQueueTest, RingsOnceForSixtyFourScatteredPages) {
  Open(512);
  for (uint64_t i = 0; i < 128; ++i) EXPECT_EQ(AddScattered(i), kPage);
  EXPECT_THAT(device.lists, ElementsAre(64u, 64u));
  EXPECT_EQ(AddScattered(200), kPage);
  EXPECT_EQ(queue->staged(), 1u);
  EXPECT_TRUE(queue->Post().ok());
  EXPECT_THAT(device.lists, ElementsAre(64u, 64u, 1u));
  EXPECT_TRUE(queue->Post().ok());  // nothing
  EXPECT_EQ(stats.doorbells, 3u);
  EXPECT_EQ(stats.writes, 129u);
  EXPECT_EQ(stats.bytes, 129 * kPage);
  Carry();
  EXPECT_EQ(stats.cqes, 3u);
  EXPECT_EQ(queue->outstanding(), 0u);
  EXPECT_EQ(map->in_flight, 0u);
}

TEST_F(WriteQueueTest, PutsAddressesKeysAndLengthsWhereTheyBelong) {
  Open(64);
  Add(3 * kGiB + kPage, kPage);
  EXPECT_TRUE(queue->Post().ok());
  ASSERT_EQ(device.seen.size(), 1u);
  const FakeWr& wr = device.seen[0];
  EXPECT_EQ(wr.local, (uint64_t{1} << 40) + 3 * kGiB + kPage);
  EXPECT_EQ(wr.remote, kRemote + 3 * kGiB + kPage);
  EXPECT_EQ(wr.lkey, 1003u);  // C14: not the other one's
  EXPECT_EQ(wr.rkey, 3u);
  EXPECT_EQ(wr.opcode, IBV_WR_RDMA_WRITE);
}

TEST_F(WriteQueueTest, MergesWhatIsAdjacentInOneChunk) {
  Open(64);
  Add(0, kPage);
  Add(kPage, 3 * kPage);
  Add(4 * kPage, kPage);
  Add(6 * kPage, kPage);  // a gap
  Add(5 * kPage, kPage);  // before, not behind
  Add(kGiB - kPage, kPage);
  Add(kGiB, kPage);  // adjacent, but another key
  EXPECT_TRUE(queue->Post().ok());
  std::vector<uint64_t> lengths;
  for (const FakeWr& wr : device.seen) lengths.push_back(wr.length / kPage);
  EXPECT_THAT(lengths, ElementsAre(5u, 1u, 1u, 1u, 1u));
  EXPECT_EQ(stats.merges, 2u);
}

// C12: split on the summed length; nothing is a length of its own.
TEST_F(WriteQueueTest, SplitsOnTheSummedLength) {
  Open(64, kMiB);
  EXPECT_EQ(Add(0, kMiB - kPage), kMiB - kPage);
  EXPECT_EQ(Add(kMiB - kPage, 2 * kPage), 2 * kPage);
  EXPECT_EQ(Add(kMiB + kPage, 0), 0u);
  EXPECT_TRUE(queue->Post().ok());
  ASSERT_EQ(device.seen.size(), 2u);
  EXPECT_EQ(device.seen[0].length, kMiB);
  EXPECT_EQ(device.seen[1].length, kPage);
  EXPECT_TRUE(device.faults.empty());
}

TEST_F(WriteQueueTest, AnEmptyPieceIsNothing) {
  Open(64);
  EXPECT_EQ(Add(0, 0), 0u);
  EXPECT_TRUE(queue->Post().ok());
  EXPECT_EQ(stats.doorbells, 0u);
}

// C12, C13 (H5): each byte exactly once, whatever the limit and the length.
TEST_F(WriteQueueTest, SplitsChunksOfOneGiBAtAnyLimit) {
  for (const uint64_t limit : {uint64_t{256}, kMiB, 8 * kMiB, kGiB,
                               (uint64_t{1} << 31), uint64_t{0xffffffff}}) {
    device.seen.clear();
    device.faults.clear();
    device.max_message = std::min(limit, kGiB);
    const uint64_t length = limit == 256 ? 16384 : kGiB;
    Open(4096, limit);
    uint64_t done = 0;
    while (done < length) {
      const uint64_t step = Add(4 * kGiB + done, length - done);
      ASSERT_GT(step, 0u);
      done += step;
    }
    EXPECT_TRUE(queue->Post().ok());
    uint64_t at = (uint64_t{1} << 40) + 4 * kGiB;
    for (const FakeWr& wr : device.seen) {
      EXPECT_EQ(wr.local, at);
      at += wr.length;
    }
    EXPECT_EQ(at, (uint64_t{1} << 40) + 4 * kGiB + length);
    EXPECT_TRUE(device.faults.empty());
    EXPECT_EQ(device.seen.size(), (length - 1) / std::min(limit, kGiB) + 1);
  }
}

// C05
TEST_F(WriteQueueTest, TheLastBeforeAFenceIsAlwaysRetired) {
  Open(512);
  for (uint64_t i = 0; i < 65; ++i) AddScattered(i);
  ASSERT_TRUE(queue->PostFence(Payload()).ok());
  Carry();
  EXPECT_EQ(queue->outstanding(), 0u);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.fences, 1u);
  ASSERT_EQ(device.seen.size(), 66u);
  EXPECT_EQ(device.seen.back().opcode, IBV_WR_SEND);
  EXPECT_EQ(device.seen[64].opcode, IBV_WR_RDMA_WRITE);
}

TEST_F(WriteQueueTest, EveryListEndsSignalledAndNoneIsLongerThanHalfTheDepth) {
  for (const uint32_t depth : {2u, 3u, 5u, 16u, 127u, 128u, 512u}) {
    device.seen.clear();
    Open(depth);
    uint64_t added = 0;
    uint64_t apart = 0;
    for (int turn = 0; turn < 50; ++turn) {
      while (queue->HasRoom() && AddScattered(added) > 0) ++added;
      if (turn % 7 == 3) {
        ASSERT_TRUE(queue->Post().ok());
      }
      ASSERT_TRUE(queue->staged() > 0 || qp->count > 0) << depth;
      if (queue->staged() == 0) Carry(depth / 2 + 1);
    }
    ASSERT_TRUE(queue->Post().ok());
    for (const FakeWr& wr : device.seen) {
      apart = wr.signalled ? 0 : apart + 1;
      EXPECT_LE(apart + 1, std::max(depth / 2, 1u));
    }
    EXPECT_EQ(apart, 0u);
    Carry();
    EXPECT_EQ(queue->outstanding(), 0u);
    EXPECT_GT(added, 0u);
    EXPECT_TRUE(device.faults.empty()) << depth;  // never over the depth
  }
}

// A round with no room to spare still gets its fence through.
TEST_F(WriteQueueTest, KeepsASlotForTheFence) {
  Open(16);
  for (uint64_t i = 0; queue->HasRoom(); ++i) AddScattered(i);
  EXPECT_TRUE(queue->FenceRoom());
  ASSERT_TRUE(queue->PostFence(Payload()).ok());
  EXPECT_TRUE(device.faults.empty());
  ASSERT_TRUE(queue->FenceRoom());
  ASSERT_TRUE(queue->PostFence(Payload()).ok());
  EXPECT_FALSE(queue->FenceRoom());  // both payloads are in use
  EXPECT_EQ(ErrorCode(queue->PostFence(Payload())), MIG_E_INTERNAL);
  Carry();
  EXPECT_TRUE(queue->FenceRoom());
}

TEST_F(WriteQueueTest, TellsAFenceWhatTheRoundHad) {
  Open(512);
  for (uint64_t i = 0; i < 70; ++i) AddScattered(i);
  EXPECT_EQ(queue->round_writes(), 70u);
  EXPECT_EQ(queue->round_bytes(), 70 * kPage);
  ASSERT_TRUE(queue->PostFence(Payload()).ok());
  EXPECT_EQ(queue->round_writes(), 0u);
  EXPECT_EQ(queue->round_bytes(), 0u);
}

TEST_F(WriteQueueTest, CountsWhatIsInFlightToAChunk) {
  Open(512, kGiB, 4 * kGiB, kGiB);
  for (uint64_t i = 0; i < 100; ++i) AddScattered(i);
  Add(2 * kGiB, kPage);
  ASSERT_TRUE(queue->Post().ok());
  EXPECT_EQ(map->traffic(0).in_flight, 100u);
  EXPECT_EQ(map->traffic(2).in_flight, 1u);
  EXPECT_EQ(map->in_flight, 101u);
  EXPECT_EQ(stats.peak_per_chunk, 100u);
  EXPECT_EQ(stats.peak_in_flight, 101u);
  Carry(64);
  EXPECT_EQ(map->traffic(0).in_flight, 36u);
  Carry();
  EXPECT_EQ(map->in_flight, 0u);
}

// C06, C32: any work request may fail; each is retired once, nothing is posted
// afterwards, and the queue is empty in the end.
TEST_F(WriteQueueTest, AFailedWriteIsStickyWhicheverItIs) {
  for (uint64_t k = 0; k < 130; ++k) {
    Open(512);
    device.fail_wr_at = device.carried + k;
    for (uint64_t i = 0; i < 130; ++i) AddScattered(i);
    ASSERT_TRUE(queue->Post().ok());
    const uint64_t posted = device.posted;
    Carry();
    EXPECT_EQ(ErrorCode(queue->status()), MIG_E_PEER_PROTOCOL) << k;
    EXPECT_THAT(std::string(queue->status().message()),
                HasSubstr(std::to_string(k)));
    EXPECT_EQ(queue->outstanding(), 0u);
    EXPECT_EQ(map->in_flight, 0u);
    EXPECT_FALSE(queue->HasRoom());
    EXPECT_EQ(AddScattered(500), 0u);
    EXPECT_FALSE(queue->Post().ok());
    EXPECT_FALSE(queue->PostFence(Payload()).ok());
    EXPECT_EQ(device.posted, posted);
    EXPECT_EQ(stats.in_flight, 0u);
  }
}

TEST_F(WriteQueueTest, ACompletionOfNothingIsAnError) {
  Open(512);
  for (uint64_t i = 0; i < 64; ++i) AddScattered(i);
  ibv_wc wc = {};
  wc.wr_id = MakeWrId(WrKind::kDataSend, 0, 63);
  EXPECT_TRUE(queue->OnCompletion(wc).ok());
  EXPECT_EQ(ErrorCode(queue->OnCompletion(wc)), MIG_E_DEVICE);
  EXPECT_EQ(queue->outstanding(), 0u);
}

struct PostFailure {
  uint64_t at;
  int system_errno;
  bool minus_one;
};

class PostFailureTest : public WriteQueueTest,
                        public ::testing::WithParamInterface<PostFailure> {};

// H4: what went out before the failure is retired, the rest never counted.
TEST_P(PostFailureTest, APostThatFailsPartWayKeepsTheAccount) {
  Open(512);
  device.fail_post_at = GetParam().at;
  device.fail_post_errno = GetParam().system_errno;
  device.fail_post_minus_one = GetParam().minus_one;
  for (uint64_t i = 0; i < 128; ++i) AddScattered(i);
  (void)queue->Post();
  EXPECT_EQ(ErrorCode(queue->status()), MIG_E_DEVICE);
  EXPECT_EQ(ErrorErrno(queue->status()), GetParam().system_errno);
  const std::string message(queue->status().message());
  EXPECT_THAT(message,
              HasSubstr(std::to_string(GetParam().at % 64) + " of 64"));
  EXPECT_THAT(message, HasSubstr("of 512"));
  EXPECT_EQ(queue->outstanding(), GetParam().at);
  EXPECT_EQ(stats.writes, GetParam().at);
  EXPECT_EQ(map->in_flight, GetParam().at);
  EXPECT_EQ(queue->staged(), 0u);
  qp->broken = true;  // the session moves it to the error state
  Carry();
  EXPECT_EQ(queue->outstanding(), 0u);
  EXPECT_EQ(map->in_flight, 0u);
  EXPECT_EQ(ErrorErrno(queue->status()), GetParam().system_errno);
}

INSTANTIATE_TEST_SUITE_P(BothConventions, PostFailureTest,
                         ::testing::Values(PostFailure{0, ENOMEM, false},
                                           PostFailure{0, EIO, true},
                                           PostFailure{1, ENOMEM, true},
                                           PostFailure{63, EINVAL, false},
                                           PostFailure{64, ENOMEM, true},
                                           PostFailure{100, ENOMEM, false},
                                           PostFailure{127, EINVAL, true}));

TEST(WriteQueue, RefusesAQueuePairThatCanDoNothing) {
  FakeDevice device;
  FakeQp* const qp = device.MakeQp(8);
  WriteStats stats;
  EXPECT_EQ(
      ErrorCode(WriteQueue::Create(&device, &qp->qp,
                                   {.depth = 1, .max_message = 4096}, &stats)
                    .status()),
      MIG_E_DEVICE);
  EXPECT_EQ(
      ErrorCode(
          WriteQueue::Create(&device, &qp->qp, {.depth = 8}, &stats).status()),
      MIG_E_DEVICE);
}

// C04: ten to the sixth work requests, mixed, through a queue just large
// enough.
TEST_F(WriteQueueTest, AMillionMixedWorkRequestsNeverPassTheDepth) {
  Open(64);
  device.record = false;
  uint64_t done = 0;
  uint64_t random = 1;
  while (done < 1'000'000) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t pick = random >> 40;
    if (pick % 100 == 0) {
      ASSERT_TRUE(queue->Post().ok());
    }
    if (pick % 1000 == 1 && queue->FenceRoom()) {
      ASSERT_TRUE(queue->PostFence(Payload()).ok());
      ++done;
    }
    if (queue->HasRoom()) {
      ASSERT_EQ(Add((pick % 100'000) * 3 * kPage, kPage), kPage);
      ++done;
    } else {
      Carry(pick % 64);
    }
  }
  ASSERT_TRUE(queue->Post().ok());
  Carry();
  EXPECT_EQ(queue->outstanding(), 0u);
  EXPECT_TRUE(device.faults.empty());
}

}  // namespace
}  // namespace mig::rdma
