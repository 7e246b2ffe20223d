// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_FABRIC_DIRTYING_H_
#define MIGTRANSPORT_HOST_SIM_FABRIC_DIRTYING_H_

#include <cstdint>
#include <vector>

#include "guest/dirty_bitmap.h"
#include "guest/random.h"
#include "mig_transport.h"

namespace mig::fabric {

// How a guest without memory writes.
struct DirtyingSettings {
  uint64_t memory = 0;     // bytes
  uint64_t page_size = 0;  // bytes
  uint64_t hot = 0;        // bytes from the middle of memory that are written
  uint64_t rate = 0;       // bytes a second
  bool scattered = false;  // pages at random; else again and again in order
};

// The dirty pages of a guest that writes at a constant rate. Only its bits are
// kept: 4 MiB for 128 GiB.
class Dirtying {
 public:
  static constexpr uint32_t kBlock = 1;  // all of memory is one

  explicit Dirtying(const DirtyingSettings& settings);

  // Lets the guest write until then, on the virtual clock.
  void RunUntil(uint64_t now_ns);
  // It stood still until then.
  void StandUntil(uint64_t now_ns) { at_ns_ = now_ns; }
  uint64_t dirty_bytes() const { return bits_.Count() * settings_.page_size; }
  // What is dirty, adjacent pages in one range, and clears it.
  std::vector<mig_range> Take();

 private:
  const DirtyingSettings settings_;
  sim::DirtyBitmap bits_;
  sim::Random random_{1};
  uint64_t at_ns_ = 0;
  uint64_t cursor_ = 0;  // page of the hot part that is written next
};

}  // namespace mig::fabric

#endif  // MIGTRANSPORT_HOST_SIM_FABRIC_DIRTYING_H_
