// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_PRESENCE_MAP_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_PRESENCE_MAP_H_

#include <cstdint>
#include <vector>

#include "guest/guest_memory.h"

namespace mig::sim {

// Tells pages that were never written, and so are zero, without touching them:
// reading them can allocate each one, which a sparse guest cannot afford. One
// thread each; not across fork.
//
// On a machine with swap, stop dirty tracking first: the markers that it puts
// into pages which were never written look like swapped pages there, so they
// count as present.
class PresenceMap {
 public:
  struct Run {
    uint64_t first = 0;  // page of the block
    uint64_t count = 0;
    bool present = false;  // false: all of it reads zero
  };

  PresenceMap();
  PresenceMap(const PresenceMap&) = delete;
  PresenceMap& operator=(const PresenceMap&) = delete;
  ~PresenceMap();

  // Splits pages [first, first + count) of `block` into runs, ascending and
  // without gaps. Says present where it cannot find out. The guest is stopped.
  std::vector<Run> Runs(const GuestBlock& block, uint64_t first,
                        uint64_t count);

 private:
  std::vector<Run> FileRuns(const GuestBlock& block, uint64_t first,
                            uint64_t count) const;
  std::vector<Run> PagemapRuns(const GuestBlock& block, uint64_t first,
                               uint64_t count);

  bool IsPresent(uint64_t entry) const;

  int pagemap_;  // -1 without /proc
  bool without_swap_;
  std::vector<uint64_t> entries_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_PRESENCE_MAP_H_
