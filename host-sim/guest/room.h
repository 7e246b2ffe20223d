// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_ROOM_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_ROOM_H_

#include <cstdint>

#include "guest/guest_memory.h"

namespace mig::sim {

// A contiguous part of guest memory for a workload's data.
struct Room {
  const GuestBlock* block = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;

  std::byte* data() const { return block->base + offset; }
};

// The largest there is beside the control page: the same on both sides, since
// both have the same blocks. `memory` has at least one.
inline Room LargestRoom(const GuestMemory& memory) {
  const GuestBlock& first = memory.blocks()[0];
  Room best = {&first, kPageSize, first.length - kPageSize};
  for (const GuestBlock& block : memory.blocks()) {
    if (block.id != 0 && block.length > best.length) {
      best = {&block, 0, block.length};
    }
  }
  return best;
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_ROOM_H_
