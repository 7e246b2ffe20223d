// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/zero_pages.h"

#include <algorithm>
#include <cstring>

namespace mig {

void TrackNonzero(Block* block) {
  block->maybe_nonzero.Resize(block->length >> block->page_shift,
                              (block->flags & MIG_BLOCK_ZEROED) == 0);
}

uint64_t ZeroPages(ZeroRun* run, uint64_t* budget) {
  Block& block = *run->block;
  const uint32_t shift = block.page_shift;
  uint64_t written = 0;
  while (run->length > 0 && *budget > 0) {
    const uint64_t first = run->offset >> shift;
    const uint64_t limit = ((run->offset + run->length - 1) >> shift) + 1;
    const bool dirty = block.maybe_nonzero.Test(first);
    // Looking for the end goes no further than the budget.
    const uint64_t reach =
        dirty ? (*budget >> shift) + 1 : std::min(*budget, limit) * 8;
    const uint64_t end = block.maybe_nonzero.RunEnd(
        first, first + std::min(reach, limit - first));
    uint64_t bytes = std::min((end << shift) - run->offset, run->length);
    if (dirty) {
      bytes = std::min(bytes, *budget);
      std::memset(block.base + run->offset, 0, bytes);
      // A page is known to be zero when its last byte is.
      block.maybe_nonzero.Clear(first,
                                ((run->offset + bytes) >> shift) - first);
      written += bytes;
      *budget -= bytes;
    } else {
      *budget -= std::min(*budget, 1 + (end - first) / 8);
    }
    run->offset += bytes;
    run->length -= bytes;
  }
  return written;
}

void MarkWritten(Block* block, uint64_t offset, uint64_t length) {
  if (length == 0) return;
  const uint64_t first = offset >> block->page_shift;
  const uint64_t last = (offset + length - 1) >> block->page_shift;
  block->maybe_nonzero.Set(first, last - first + 1);
}

}  // namespace mig
