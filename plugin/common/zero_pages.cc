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

uint64_t ZeroPages(ZeroRun* run, uint64_t budget) {
  Block& block = *run->block;
  uint64_t written = 0;
  while (run->length > 0 && written < budget) {
    const uint64_t first = run->offset >> block.page_shift;
    const uint64_t limit = first + (run->length >> block.page_shift);
    uint64_t end = block.maybe_nonzero.RunEnd(first, limit);
    if (block.maybe_nonzero.Test(first)) {
      // A page at the least, or a small budget would never get past it.
      const uint64_t pages =
          std::max<uint64_t>(1, (budget - written) >> block.page_shift);
      end = std::min(end, first + pages);
      const uint64_t bytes = (end - first) << block.page_shift;
      std::memset(block.base + run->offset, 0, bytes);
      block.maybe_nonzero.Clear(first, end - first);
      written += bytes;
    }
    const uint64_t done = (end - first) << block.page_shift;
    run->offset += done;
    run->length -= done;
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
