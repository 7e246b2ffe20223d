// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_ZERO_SCAN_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_ZERO_SCAN_H_

#include <cstdint>
#include <vector>

#include "guest/dirty_bitmap.h"
#include "guest/guest_memory.h"

namespace mig::sim {

// Whether all `length` bytes, a multiple of 64, are zero. Stops at the first
// that is not. The guest may write them meanwhile: see ZeroScanner.
bool IsZeroMemory(const std::byte* data, uint64_t length);

// Finds pages that read zero, while the guest runs. That is right only after
// the pages' dirty bits were cleared: a page that the guest writes during or
// after the look is dirty again and goes out with the next round. One thread.
class ZeroScanner {
 public:
  ZeroScanner();

  // Sets in `zero`, a bitmap of `block`'s pages, each of [first, first + count)
  // that is zero, and clears the others there.
  void Scan(const GuestBlock& block, uint64_t first, uint64_t count,
            DirtyBitmap* zero);

 private:
  // With swap a page that is not in memory may still have contents.
  const bool absent_is_zero_;
  std::vector<unsigned char> resident_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_ZERO_SCAN_H_
