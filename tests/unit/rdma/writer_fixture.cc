// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "writer_fixture.h"

#include <algorithm>
#include <utility>

#include "rdma/wr_id.h"

namespace mig::rdma {
namespace {

uint64_t Now(void* host) { return *static_cast<uint64_t*>(host); }

struct mig_host_services Services(uint64_t* now_ns) {
  struct mig_host_services services = {};
  services.size = sizeof(services);
  services.flags = MIG_HOST_SIMULATED_CLOCK;
  services.host = now_ns;
  services.clock_ns = Now;
  return services;
}

// Without memory nothing is read, so any address will do.
std::byte* const kNowhere = At(uint64_t{1} << 44);

}  // namespace

WriterFixture::WriterFixture(const Options& options) : host(Services(&now_ns)) {
  device.check_keys = options.memory;
  std::byte* base = kNowhere;
  uint64_t remote = uint64_t{1} << 45;
  if (options.memory) {
    // Aligned by hand, since a vector is not.
    source.resize(options.length + options.page_size);
    destination.resize(options.length + options.page_size, std::byte{0xdd});
    const auto align = [&options](std::vector<std::byte>& bytes) {
      const auto address = reinterpret_cast<uintptr_t>(bytes.data());
      const uint64_t mask = options.page_size - 1;
      return bytes.data() + ((options.page_size - (address & mask)) & mask);
    };
    base = align(source);
    remote = reinterpret_cast<uintptr_t>(align(destination));
    source_mr = device.RegMr(device.pd(), base, options.length, 0);
    destination_mr = device.RegMr(
        device.pd(), At(remote), options.length,
        unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE);
  }
  struct mig_block added = {};
  added.size = sizeof(added);
  added.id = kBlock;
  added.name = "ram";
  added.address = base;
  added.length = options.length;
  added.page_size = options.page_size;
  added.fd = -1;
  EXPECT_TRUE(blocks.Add(added, true).ok());
  const std::array<BlockDescription, 1> theirs = {
      BlockDescription{1, 0, options.length, options.page_size, "ram"}};
  EXPECT_TRUE(blocks.Agree(theirs).ok());

  std::vector<DataWriter::Lane> lanes;
  for (size_t i = 0; i < options.queues; ++i) {
    qps.push_back(device.MakeQp(options.depth));
    peer_qps.push_back(device.MakeQp(4));
    qps[i]->peer = peer_qps[i];
    auto queue = WriteQueue::Create(&device, &qps[i]->qp,
                                    {.depth = options.depth,
                                     .max_message = device.max_message,
                                     .index = static_cast<uint8_t>(i)},
                                    &stats.writes);
    EXPECT_TRUE(queue.ok()) << queue.status();
    auto slots = FenceSlots::Create(&device, device.pd(), 0);
    EXPECT_TRUE(slots.ok()) << slots.status();
    lanes.push_back({*std::move(queue), *std::move(slots)});
  }
  receiver = std::make_unique<FenceReceiver>(&device, options.queues);
  for (size_t i = 0; i < options.queues; ++i) {
    EXPECT_TRUE(
        receiver->PostReceives(static_cast<uint16_t>(i), &peer_qps[i]->qp)
            .ok());
  }
  writer = std::make_unique<DataWriter>(&host, &blocks, options.settings,
                                        std::move(lanes), &stats);
  auto map = ChunkMap::Create(kBlock, base, options.length, options.chunk);
  EXPECT_TRUE(map.ok()) << map.status();
  EXPECT_TRUE((*map)->SetRemoteBase(remote).ok());
  writer->AddBlock(blocks.Find(kBlock), *std::move(map), options.zeroed);
  if (!options.keys) return;
  for (uint32_t i = 0; i < writer->Map(kBlock)->count(); ++i) GiveKeys(i);
}

void WriterFixture::GiveKeys(uint32_t chunk) {
  EXPECT_TRUE(
      writer->LocalReady(kBlock, chunk, 0, source_mr ? source_mr->lkey : 1)
          .ok());
  EXPECT_TRUE(writer
                  ->RemoteReady(kBlock, chunk, 0,
                                destination_mr ? destination_mr->rkey : 2)
                  .ok());
}

uint64_t WriterFixture::Write(uint64_t offset, uint64_t length,
                              uint32_t flags) {
  const struct mig_range range = {offset, length, kBlock, flags, 0};
  size_t accepted = 0;
  uint64_t partial = 0;
  const absl::Status status =
      writer->Write(&range, 1, sizeof(range), &accepted, &partial);
  EXPECT_TRUE(status.ok()) << status;
  return accepted == 1 ? length : partial;
}

void WriterFixture::WriteAll(uint64_t offset, uint64_t length, uint32_t flags) {
  uint64_t done = 0;
  for (int turns = 0; done < length; ++turns) {
    done += Write(offset + done, length - done, flags);
    if (done < length) Carry(SIZE_MAX);
    ASSERT_LT(turns, 100'000);
    ASSERT_FALSE(::testing::Test::HasFailure());
    ASSERT_TRUE(writer->status().ok()) << writer->status();
  }
}

void WriterFixture::Carry(size_t count) {
  for (FakeQp* qp : qps) {
    device.Carry(qp, count);
    device.Poll(qp, [this](const ibv_wc& wc) {
      EXPECT_TRUE(WrIdIs(wc.wr_id, WrKind::kDataSend));
      writer->OnCompletion(wc);
    });
  }
  writer->Pump();
}

void WriterFixture::Settle() {
  do {
    Carry(SIZE_MAX);
  } while (writer->outstanding() > 0);
}

void WriterFixture::TakeFences() {
  for (FakeQp* qp : peer_qps) {
    for (size_t i = 0; i < qp->received.size(); ++i) {
      const absl::Status status = receiver->OnCompletion(qp->received[i]);
      EXPECT_TRUE(status.ok()) << status;
    }
    qp->received.clear();
  }
}

void WriterFixture::Begin(bool strict) { writer->RoundBegin(++round, strict); }

void WriterFixture::EndRound() {
  writer->RoundEnd();
  Settle();
  EXPECT_EQ(writer->posted_round(), round);
  if (device.check_keys) {
    TakeFences();
    EXPECT_TRUE(receiver->Whole());
    writes_told = receiver->writes();
    bytes_told = receiver->bytes();
    receiver->Next();
  }
  writer->Acknowledged(round);
}

}  // namespace mig::rdma
