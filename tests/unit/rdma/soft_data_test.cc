// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The whole data path over the soft device: registration on both sides, keys
// asked for and told, writes, fences. What a session would do between the units
// is done by hand.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/data_writer.h"
#include "rdma/fence.h"
#include "rdma/registration.h"
#include "rdma/wr_id.h"
#include "soft/soft_pair.h"

namespace mig::rdma {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint32_t kBlock = 3;

// Memory as a guest's is.
class Pages {
 public:
  explicit Pages(uint64_t length)
      : length_(length),
        base_(static_cast<std::byte*>(std::aligned_alloc(kPage, length))) {
    std::memset(base_, 0, length);
  }
  ~Pages() { std::free(base_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* base() const { return base_; }
  uint64_t length() const { return length_; }

 private:
  uint64_t length_;
  std::byte* base_;
};

struct Way {
  const char* config;
  size_t queues;
  bool pinned;
  uint64_t chunk;
};

class SoftData : public soft::SoftPair {
 protected:
  // Connects further queue pairs beside the first; all share a device, a
  // protection domain and a completion queue.
  void Open(const std::string& config, size_t queues, uint64_t chunk,
            uint64_t length = 8 * kMiB) {
    cap = {128, 4, 1, 1, 0};
    cqe = static_cast<int>(queues * 140);
    ASSERT_NO_FATAL_FAILURE(Make(config, config));
    ASSERT_NO_FATAL_FAILURE(MakeListener());
    from = std::make_unique<Pages>(length);
    to = std::make_unique<Pages>(length);
    std::vector<DataWriter::Lane> lanes;
    for (size_t i = 0; i < queues; ++i) {
      ASSERT_NO_FATAL_FAILURE(ConnectLane(i, queues));
      ibv_port_attr port = {};
      ASSERT_EQ(source.verbs->QueryPort(source.id->verbs, 1, &port), 0);
      auto queue = WriteQueue::Create(source.verbs.get(), source_ids[i]->qp,
                                      {.depth = 128,
                                       .max_message = port.max_msg_sz,
                                       .index = static_cast<uint8_t>(i)},
                                      &stats.writes);
      ASSERT_TRUE(queue.ok()) << queue.status();
      auto slots = FenceSlots::Create(source.verbs.get(), source.pd, 0);
      ASSERT_TRUE(slots.ok()) << slots.status();
      lanes.push_back({*std::move(queue), *std::move(slots)});
    }
    source.id = source_ids[0];
    target.id = target_ids[0];
    writer = std::make_unique<DataWriter>(
        clock.host(), &blocks, DataWriterSettings{}, std::move(lanes), &stats);
    ASSERT_NO_FATAL_FAILURE(AddBlock(chunk));
  }

  void ConnectLane(size_t i, size_t queues) {
    ASSERT_NO_FATAL_FAILURE(Resolve());
    if (i == 0) source.MakeObjects(cqe);
    source_ids.push_back(source.id);
    MakeQp(&source);
    rdma_conn_param param = {};
    param.retry_count = retry_count;
    param.rnr_retry_count = rnr_retry;
    ASSERT_EQ(source.verbs->CmConnect(source.id, &param), 0);
    Drive();
    rdma_cm_event request = {};
    ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
    target.id = request.id;
    if (i == 0) {
      target.MakeObjects(cqe);
      receiver = std::make_unique<FenceReceiver>(target.verbs.get(), queues);
    }
    target_ids.push_back(target.id);
    MakeQp(&target);
    // Before the accept (C09).
    ASSERT_TRUE(
        receiver->PostReceives(static_cast<uint16_t>(i), target.id->qp).ok());
    ASSERT_EQ(target.verbs->CmAccept(target.id, &param), 0);
    Drive();
    ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
    Drive();
    ASSERT_EQ(target.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
  }

  void AddBlock(uint64_t chunk) {
    struct mig_block added = {};
    added.size = sizeof(added);
    added.id = kBlock;
    added.name = "ram";
    added.address = from->base();
    added.length = from->length();
    added.page_size = kPage;
    ASSERT_TRUE(blocks.Add(added, true).ok());
    const std::array<BlockDescription, 1> theirs = {
        BlockDescription{1, 0, from->length(), kPage, "ram"}};
    ASSERT_TRUE(blocks.Agree(theirs).ok());
    auto map = ChunkMap::Create(kBlock, from->base(), from->length(), chunk);
    ASSERT_TRUE(map.ok());
    ASSERT_TRUE(
        (*map)->SetRemoteBase(reinterpret_cast<uintptr_t>(to->base())).ok());
    writer->AddBlock(blocks.Find(kBlock), *std::move(map), true);
    const auto open = [&](soft::End& end, const Pages& pages, MemoryUse use,
                          std::unique_ptr<RegistrationCache>* cache,
                          std::unique_ptr<BlockRegistration>* block) {
      auto made =
          RegistrationCache::Create(end.verbs.get(), end.pd, clock.host(), {});
      ASSERT_TRUE(made.ok()) << made.status();
      *cache = *std::move(made);
      auto opened = (*cache)->Open({.name = "ram",
                                    .base = pages.base(),
                                    .length = pages.length(),
                                    .chunk_size = chunk,
                                    .use = use});
      ASSERT_TRUE(opened.ok()) << opened.status();
      *block = *std::move(opened);
    };
    open(source, *from, MemoryUse::kReadHere, &source_cache, &source_block);
    open(target, *to, MemoryUse::kWrittenByPeer, &target_cache, &target_block);
  }

  // What a session does in each call of progress; one slice a side.
  void Progress() {
    std::array<ChunkRequest, 16> wanted;
    const size_t count = writer->TakeRequests(wanted);
    for (size_t i = 0; i < count; ++i) {
      if (wanted[i].local) source_block->Ask(wanted[i].chunk);
      if (wanted[i].remote) target_block->Ask(wanted[i].chunk);
    }
    source_cache->Step();
    target_cache->Step();
    TakeKeys();
    Drive();
    TakeCompletions();
    writer->Pump();
    Drive();
    TakeCompletions();
  }

  void TakeKeys() {
    std::array<BlockRegistration::ReadyChunk, 4> ready;
    auto count = source_block->TakeReady(ready);
    ASSERT_TRUE(count.ok()) << count.status();
    for (size_t i = 0; i < *count; ++i) {
      ASSERT_TRUE(
          writer->LocalReady(kBlock, ready[i].chunk, 0, ready[i].lkey).ok());
    }
    count = target_block->TakeReady(ready);
    ASSERT_TRUE(count.ok()) << count.status();
    for (size_t i = 0; i < *count; ++i) {
      ASSERT_TRUE(
          writer->RemoteReady(kBlock, ready[i].chunk, 0, ready[i].rkey).ok());
    }
  }

  void TakeCompletions() {
    for (const ibv_wc& wc : source.Poll()) {
      ASSERT_TRUE(WrIdIs(wc.wr_id, WrKind::kDataSend));
      writer->OnCompletion(wc);
    }
    for (const ibv_wc& wc : target.Poll()) {
      ASSERT_TRUE(WrIdIs(wc.wr_id, WrKind::kFenceReceive));
      if (!cut) {
        const absl::Status status = receiver->OnCompletion(wc);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }

  void WriteAll(uint64_t offset, uint64_t length, uint32_t flags = 0) {
    for (int turn = 0; length > 0; ++turn) {
      const struct mig_range range = {offset, length, kBlock, flags, 0};
      size_t accepted = 0;
      uint64_t partial = 0;
      const absl::Status status =
          writer->Write(&range, 1, sizeof(range), &accepted, &partial);
      ASSERT_TRUE(status.ok()) << status;
      if (accepted == 1) return;
      offset += partial;
      length -= partial;
      Progress();
      ASSERT_LT(turn, 10'000);
      ASSERT_TRUE(writer->status().ok()) << writer->status();
    }
  }

  // A round of random pages; each is what the source has when it is whole.
  void Round(uint64_t number, uint32_t* state) {
    writer->RoundBegin(number, true);
    const uint64_t pages = from->length() / kPage;
    std::vector<bool> given(pages);
    uint64_t data = 0;
    for (int i = 0; i < 400; ++i) {
      *state = *state * 1664525 + 1013904223;
      const uint64_t page = (*state >> 8) % pages;
      if (given[page]) continue;
      given[page] = true;
      // Every third is zero at times.
      const bool zero = i % 3 == 0 && number % 2 == 0;
      std::memset(from->base() + page * kPage,
                  zero ? 0 : static_cast<int>(*state >> 24 | 1), kPage);
      ASSERT_NO_FATAL_FAILURE(
          WriteAll(page * kPage, kPage, zero ? MIG_RANGE_ZERO : 0));
      if (!zero) data += kPage;
      if (i % 100 == 0) writer->Flush();
    }
    writer->RoundEnd();
    for (int i = 0; !receiver->Whole() || writer->zero_runs() > 0; ++i) {
      ASSERT_LT(i, 10'000);
      Progress();
      PassZeros();
    }
    EXPECT_EQ(receiver->bytes(), data);
    ASSERT_TRUE(zeros.Write(UINT64_MAX));
    ASSERT_EQ(std::memcmp(from->base(), to->base(), from->length()), 0)
        << "round " << number;
    receiver->Next();
    writer->Acknowledged(number);
  }

  void PassZeros() {
    std::array<ZeroRun, 16> runs;
    const size_t count = writer->TakeZeroRuns(runs);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(zeros.Add(&target_view, runs[i].offset, runs[i].length).ok());
    }
  }

  void TearDown() override {
    writer.reset();
    receiver.reset();
    source_block.reset();
    target_block.reset();
    source_cache.reset();
    target_cache.reset();
    for (size_t i = 1; i < source_ids.size(); ++i) {
      source.verbs->CmDestroyQp(source_ids[i]);
      EXPECT_EQ(source.verbs->CmDestroyId(source_ids[i]), 0);
    }
    for (size_t i = 1; i < target_ids.size(); ++i) {
      target.verbs->CmDestroyQp(target_ids[i]);
      EXPECT_EQ(target.verbs->CmDestroyId(target_ids[i]), 0);
    }
    SoftPair::TearDown();
  }

  std::vector<rdma_cm_id*> source_ids;
  std::vector<rdma_cm_id*> target_ids;
  std::unique_ptr<Pages> from;
  std::unique_ptr<Pages> to;
  BlockTable blocks;
  Block target_view;
  DataWriterStats stats;
  std::unique_ptr<DataWriter> writer;
  std::unique_ptr<FenceReceiver> receiver;
  ZeroWriter zeros;
  std::unique_ptr<RegistrationCache> source_cache;
  std::unique_ptr<RegistrationCache> target_cache;
  std::unique_ptr<BlockRegistration> source_block;
  std::unique_ptr<BlockRegistration> target_block;
  bool cut = false;
};

class SoftDataWays : public SoftData,
                     public ::testing::WithParamInterface<Way> {};

// C14, C24: byte for byte, on each model, with bytes that land as late as a
// device may let them; each chunk registered once a side.
TEST_P(SoftDataWays, EachRoundIsWholeWhenItsFencesAreHere) {
  const Way& way = GetParam();
  ASSERT_NO_FATAL_FAILURE(Open(way.config, way.queues, way.chunk));
  target_view.name = "ram";
  target_view.base = to->base();
  target_view.length = to->length();
  target_view.page_size = kPage;
  target_view.page_shift = 12;
  if (way.pinned) {
    source_block->AskAll();
    target_block->AskAll();
    while (writer->Map(kBlock)->unready() > 0) Progress();
  }
  uint32_t state = 1;
  for (uint64_t number = 1; number <= 6; ++number) {
    ASSERT_NO_FATAL_FAILURE(Round(number, &state));
  }
  const uint64_t chunks = from->length() / way.chunk;
  EXPECT_EQ(source_cache->stats().registrations, chunks);
  EXPECT_EQ(target_cache->stats().registrations, chunks);
  EXPECT_EQ(writer->outstanding(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SoftDataWays,
    ::testing::Values(Way{"mlx5,seed=1", 1, true, kMiB},
                      Way{"mlx5,seed=2,landing=latest", 2, true, kMiB},
                      Way{"mlx5,seed=3,landing=random", 8, true, 2 * kMiB},
                      Way{"mlx5,seed=4,landing=random", 4, false, kMiB},
                      Way{"mlx5,seed=5,landing=latest,rkey-zero=on", 1, false,
                          2 * kMiB},
                      Way{"mlx4,seed=6,landing=random", 2, false, kMiB},
                      Way{"irdma,seed=7,landing=random", 2, true, kMiB},
                      Way{"rxe,seed=8,landing=latest", 2, false, kMiB},
                      Way{"siw,seed=9,landing=random", 2, true, kMiB}));

// C24: while the device holds back completions, nothing is whole.
TEST_F(SoftData, ARoundIsNotWholeBeforeItsLastWriteLanded) {
  ASSERT_NO_FATAL_FAILURE(
      Open("mlx5,seed=1,landing=latest,wr-delay=50us", 2, kMiB));
  source_block->AskAll();
  target_block->AskAll();
  while (writer->Map(kBlock)->unready() > 0) Progress();
  std::memset(from->base(), 0x77, from->length());
  writer->RoundBegin(1, false);
  for (uint64_t i = 0; i < 100; ++i) WriteAll(i * 2 * kPage, kPage);
  writer->RoundEnd();
  Progress();
  EXPECT_EQ(writer->posted_round(), 1u);
  EXPECT_FALSE(receiver->Whole());
  EXPECT_EQ(to->base()[0], std::byte{0});
  EXPECT_GT(writer->outstanding(), 100u);
  DriveFor(60'000);
  Progress();
  EXPECT_TRUE(receiver->Whole());
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(to->base()[i * 2 * kPage], std::byte{0x77});
  }
  EXPECT_EQ(writer->outstanding(), 0u);
}

// C07: with a full queue in flight the queue pair goes to the error state; all
// of it is retired before memory goes.
TEST_F(SoftData, ACutWithEverythingInFlightIsDrainedToZero) {
  ASSERT_NO_FATAL_FAILURE(Open("mlx5,seed=1,wr-delay=1s", 1, kMiB));
  source_block->AskAll();
  target_block->AskAll();
  while (writer->Map(kBlock)->unready() > 0) Progress();
  writer->RoundBegin(1, false);
  for (uint64_t i = 0;; ++i) {
    const struct mig_range range = {i * 2 * kPage, kPage, kBlock, 0, 0};
    size_t accepted = 0;
    uint64_t partial = 0;
    ASSERT_TRUE(writer->Write(&range, 1, 32, &accepted, &partial).ok());
    if (accepted == 0) break;
  }
  EXPECT_GE(writer->outstanding(), 64u);
  cut = true;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(source.verbs->ModifyQp(source_ids[0]->qp, &attr, IBV_QP_STATE), 0);
  for (int i = 0; writer->outstanding() > 0; ++i) {
    ASSERT_LT(i, 1000);
    Drive();
    TakeCompletions();
  }
  EXPECT_EQ(ErrorCode(writer->status()), MIG_E_PEER_LOST);
  EXPECT_EQ(writer->Map(kBlock)->in_flight, 0u);
}

// C06, C32: a status at any work request of a round.
TEST_F(SoftData, AFailedWriteEndsInABound) {
  ASSERT_NO_FATAL_FAILURE(
      Open("mlx5,seed=1,faults=wc 70 REM_ACCESS_ERR", 1, kMiB));
  source_block->AskAll();
  target_block->AskAll();
  while (writer->Map(kBlock)->unready() > 0) Progress();
  cut = true;
  writer->RoundBegin(1, false);
  for (uint64_t i = 0; i < 120; ++i) {
    const struct mig_range range = {i * 2 * kPage, kPage, kBlock, 0, 0};
    size_t accepted = 0;
    uint64_t partial = 0;
    ASSERT_TRUE(writer->Write(&range, 1, 32, &accepted, &partial).ok());
  }
  writer->Flush();
  for (int i = 0; writer->outstanding() > 0; ++i) {
    ASSERT_LT(i, 1000);
    Drive();
    TakeCompletions();
  }
  EXPECT_EQ(ErrorCode(writer->status()), MIG_E_PEER_PROTOCOL);
  EXPECT_THAT(std::string(writer->status().message()),
              ::testing::HasSubstr("data queue pair 0"));
}

// C11 on a device that counts what it pins.
TEST_F(SoftData, ADeviceThatMayPinNoMoreSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Open("mlx5,seed=1,memlock=4M", 1, kMiB));
  source_block->AskAll();
  while (source_cache->Step()) {
  }
  std::array<BlockRegistration::ReadyChunk, 16> ready;
  const auto taken = source_block->TakeReady(ready);
  EXPECT_EQ(ErrorCode(taken.status()), MIG_E_LIMIT);
  EXPECT_THAT(std::string(taken.status().message()),
              ::testing::HasSubstr("block 'ram'"));
}

}  // namespace
}  // namespace mig::rdma
