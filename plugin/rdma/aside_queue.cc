// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/aside_queue.h"

#include <algorithm>

namespace mig::rdma {

AsideQueue::AsideQueue(size_t capacity)
    : slots_(capacity), free_head_(capacity > 0 ? 0 : -1) {
  for (size_t i = 0; i + 1 < capacity; ++i) {
    slots_[i].next = static_cast<int32_t>(i + 1);
  }
}

bool AsideQueue::Push(const Range& range) {
  ChunkTraffic& traffic = range.map->traffic(range.map->IndexOf(range.offset));
  if (traffic.aside_tail >= 0) {
    Range& last = slots_[traffic.aside_tail].range;
    if (last.offset + last.length == range.offset) {
      last.length += range.length;
      return true;
    }
  }
  if (free_head_ < 0) return false;
  const int32_t at = free_head_;
  free_head_ = slots_[at].next;
  slots_[at] = {range, -1};
  if (traffic.aside_tail >= 0) {
    slots_[traffic.aside_tail].next = at;
  } else {
    traffic.aside_head = at;
  }
  traffic.aside_tail = at;
  ++range.map->aside;
  ++size_;
  peak_ = std::max(peak_, size_);
  return true;
}

void AsideQueue::ChunkReady(ChunkMap* map, uint32_t chunk) {
  ChunkTraffic& traffic = map->traffic(chunk);
  if (traffic.aside_head < 0) return;
  if (ready_tail_ >= 0) {
    slots_[ready_tail_].next = traffic.aside_head;
  } else {
    ready_head_ = traffic.aside_head;
  }
  ready_tail_ = traffic.aside_tail;
  traffic.aside_head = -1;
  traffic.aside_tail = -1;
}

void AsideQueue::PopFront() {
  const int32_t at = ready_head_;
  --slots_[at].range.map->aside;
  ready_head_ = slots_[at].next;
  if (ready_head_ < 0) ready_tail_ = -1;
  slots_[at] = {{}, free_head_};
  free_head_ = at;
  --size_;
}

}  // namespace mig::rdma
