// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Ranges that were accepted and wait for the keys of their chunk. While they
// do, others go on.
#ifndef PLUGIN_RDMA_ASIDE_QUEUE_H_
#define PLUGIN_RDMA_ASIDE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rdma/chunk_map.h"

namespace mig::rdma {

// A fixed pool of ranges, each in the list of its chunk (ChunkTraffic) or, when
// that is ready, in the list of what may go. Every operation is O(1). Not
// thread-safe; allocates only when made.
class AsideQueue {
 public:
  struct Range {
    ChunkMap* map = nullptr;
    uint64_t offset = 0;  // in one chunk
    uint64_t length = 0;
  };

  explicit AsideQueue(size_t capacity);

  size_t size() const { return size_; }
  size_t capacity() const { return slots_.size(); }
  size_t free() const { return slots_.size() - size_; }
  size_t peak() const { return peak_; }

  // Puts a range into its chunk's list; lengthens the last one there if it is
  // adjacent. False if the pool is used up.
  bool Push(const Range& range);
  // The chunk became ready: its ranges may go, in order.
  void ChunkReady(ChunkMap* map, uint32_t chunk);

  // What may go, oldest first.
  bool HasReady() const { return ready_head_ >= 0; }
  Range& Front() { return slots_[ready_head_].range; }
  void PopFront();

 private:
  struct Slot {
    Range range;
    int32_t next = -1;
  };

  std::vector<Slot> slots_;
  int32_t free_head_;
  int32_t ready_head_ = -1;
  int32_t ready_tail_ = -1;
  size_t size_ = 0;
  size_t peak_ = 0;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_ASIDE_QUEUE_H_
