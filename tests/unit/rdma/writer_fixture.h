// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A source's data writer over a fake device, on a virtual clock, with the
// destination's memory and fences at the other end.
#ifndef TESTS_UNIT_RDMA_WRITER_FIXTURE_H_
#define TESTS_UNIT_RDMA_WRITER_FIXTURE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/block_table.h"
#include "common/host.h"
#include "fake_device.h"
#include "gtest/gtest.h"
#include "rdma/data_writer.h"
#include "rdma/fence.h"

namespace mig::rdma {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

class WriterFixture {
 public:
  struct Options {
    size_t queues = 1;
    uint32_t depth = 512;
    uint64_t length = 64 * kMiB;
    uint64_t page_size = kPage;
    uint64_t chunk = 32 * kMiB;
    bool keys = true;     // all known beforehand, as by a pinning peer
    bool memory = false;  // real bytes are copied
    bool zeroed = false;  // the peer's memory
    DataWriterSettings settings = {};
  };
  static constexpr uint32_t kBlock = 7;

  explicit WriterFixture(const Options& options);

  // Keys of one chunk arrive, both.
  void GiveKeys(uint32_t chunk);
  // One call of Write for one range; the bytes it took.
  uint64_t Write(uint64_t offset, uint64_t length, uint32_t flags = 0);
  // Like a host: goes on with the rest, carrying out what is posted whenever
  // less is taken.
  void WriteAll(uint64_t offset, uint64_t length, uint32_t flags = 0);
  // Carries out everything that is posted, and pumps, until nothing is left.
  void Settle();
  // Carries out up to `count` work requests of each queue pair, and pumps.
  void Carry(size_t count);
  // Takes the fences that arrived.
  void TakeFences();
  // Opens a round with everything before it done.
  void Begin(bool strict = false);
  // Ends the round, and carries it out: fences, acknowledgement.
  void EndRound();

  FakeDevice device;
  uint64_t now_ns = 1'000'000'000;
  Host host;
  BlockTable blocks;
  DataWriterStats stats;
  std::vector<FakeQp*> qps;       // the source's
  std::vector<FakeQp*> peer_qps;  // the destination's
  std::vector<std::byte> source;
  std::vector<std::byte> destination;
  ibv_mr* source_mr = nullptr;
  ibv_mr* destination_mr = nullptr;
  std::unique_ptr<FenceReceiver> receiver;
  std::unique_ptr<DataWriter> writer;
  uint64_t round = 0;
  uint64_t writes_told = 0;  // by fences, of the last round
  uint64_t bytes_told = 0;
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_WRITER_FIXTURE_H_
