// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Zero ranges take another way than data: a message on the control channel,
// and memset at the destination. What keeps the two apart (H1):
//   - in a round each page is given once, as data or as zero (rule 7);
//   - neither data nor zeros of a round leave before the one before is
//     acknowledged, and the destination acknowledges a round only when all its
//     fences came *and* all its zeros are written.
// The destination does not see RDMA WRITEs, so it is the source that remembers
// which pages may be other than zero there, in Block::maybe_nonzero.
#ifndef PLUGIN_RDMA_ZERO_RUNS_H_
#define PLUGIN_RDMA_ZERO_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/block_table.h"
#include "common/ring_queue.h"
#include "common/zero_pages.h"

namespace mig::rdma {

// Source: zero runs to be told to the peer. Not thread-safe; keeps the memory
// of its largest size.
class ZeroList {
 public:
  explicit ZeroList(size_t capacity) : capacity_(capacity) {}

  size_t size() const { return runs_.size(); }
  size_t free() const { return capacity_ - runs_.size(); }

  // Notes what of the pages [offset, offset + length) may be other than zero at
  // the peer, and from now on is zero; returns the bytes taken: less than all,
  // a multiple of the page size, where the list is full. *told is increased by
  // the bytes of it that the peer must be told; the rest costs nothing.
  uint64_t Add(Block* block, uint64_t offset, uint64_t length, uint64_t* told);
  // Moves the oldest runs to `out`; returns how many.
  size_t Take(std::span<ZeroRun> out);
  // Whether runs of the block are yet to be told.
  bool Names(const Block* block);

 private:
  const size_t capacity_;
  RingQueue<ZeroRun> runs_;
};

// Destination: zero runs to be written. Not thread-safe.
class ZeroWriter {
 public:
  // Checks what the peer says against the block (H6: PEER_PROTOCOL), and queues
  // it. How many may be queued is the caller's: it stops reading messages.
  absl::Status Add(Block* block, uint64_t offset, uint64_t length);
  // Writes at most `budget` bytes; false while there is more. 64 MiB a call
  // keeps rule 3.
  bool Write(uint64_t budget);

  size_t size() const { return runs_.size(); }
  uint64_t bytes_written() const { return bytes_written_; }
  // Whether zeros of the block are yet to be written.
  bool Names(const Block* block);

 private:
  RingQueue<ZeroRun> runs_;
  uint64_t bytes_written_ = 0;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_ZERO_RUNS_H_
