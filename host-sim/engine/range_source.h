// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_RANGE_SOURCE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_RANGE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/zero_scan.h"
#include "guest/dirty_bitmap.h"
#include "guest/guest_memory.h"
#include "mig_transport.h"

namespace mig::sim {

// The pages that a round has to send: one bitmap a block, in their order.
struct PageSet {
  std::vector<DirtyBitmap> blocks;

  explicit PageSet(const GuestMemory& memory);
  void SetAll();
  uint64_t pages() const;
  uint64_t bytes(const GuestMemory& memory) const;
};

// Turns a PageSet into ranges, a batch at a time: adjacent pages merge, zero
// ones are marked. Looks for zero pages a piece at a time just before they are
// sent, so that sending starts at once. One thread.
class RangeSource {
 public:
  // What outlives this object: `memory` and `pages`. Without `scanner` nothing
  // is marked zero.
  RangeSource(const GuestMemory& memory, const PageSet& pages,
              ZeroScanner* scanner);

  // Replaces `batch` by the next ranges: at most `max_ranges`, and of pages
  // that are not zero about `max_bytes`, but at least one page. Empty at the
  // end.
  void Next(size_t max_ranges, uint64_t max_bytes,
            std::vector<mig_range>* batch);

  // Of all batches so far.
  uint64_t pages() const { return pages_done_; }
  uint64_t zero_pages() const { return zero_pages_done_; }
  uint64_t data_bytes() const { return data_bytes_; }

 private:
  const GuestBlock& block() const { return memory_.blocks()[block_]; }
  bool NextRun(uint64_t max_bytes, mig_range* range);
  void LookAhead();

  const GuestMemory& memory_;
  const PageSet& set_;
  ZeroScanner* const scanner_;
  size_t block_ = 0;
  uint64_t page_ = 0;     // next to look at, in block_
  uint64_t scanned_ = 0;  // pages below it are in zero_
  DirtyBitmap zero_;      // of block_
  uint64_t pages_done_ = 0, zero_pages_done_ = 0, data_bytes_ = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_RANGE_SOURCE_H_
