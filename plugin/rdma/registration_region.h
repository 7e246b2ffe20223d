// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Inside of registration.cc and registration_jobs.cc.
#ifndef PLUGIN_RDMA_REGISTRATION_REGION_H_
#define PLUGIN_RDMA_REGISTRATION_REGION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rdma/registration.h"

namespace mig::rdma {

// The registrations of one block, shared by the sessions that use it. All
// under the cache's lock.
struct BlockRegistration::Region {
  // kQueued also while a job runs. kGoing: to be deregistered.
  enum class State : uint8_t { kNone, kQueued, kRegistered, kFailed, kGoing };
  struct Chunk {
    ibv_mr* mr = nullptr;
    State state = State::kNone;
  };

  std::string name;
  std::byte* base = nullptr;
  uint64_t length = 0;
  uint64_t chunk_size = 0;
  MemoryUse use = MemoryUse::kReadHere;
  bool kept = false;
  bool undone = false;   // nobody's any more; goes when nothing is left of it
  uint32_t running = 0;  // jobs that touch the block's memory now
  uint32_t going = 0;    // chunks in state kGoing
  std::vector<Chunk> chunks;
  std::vector<BlockRegistration*> users;
  BlockRegistration* last_user = nullptr;  // of an undone one: is told the end

  std::byte* AddressOf(uint32_t chunk) const {
    return base + chunk * chunk_size;
  }
  uint64_t LengthOf(uint32_t chunk) const {
    return std::min(chunk_size, length - chunk * chunk_size);
  }
  bool SameMemory(const Region& other) const {
    return base == other.base && length == other.length &&
           chunk_size == other.chunk_size && use == other.use;
  }
  bool Overlaps(const Region& other) const {
    return base < other.base + other.length && other.base < base + length;
  }
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_REGISTRATION_REGION_H_
