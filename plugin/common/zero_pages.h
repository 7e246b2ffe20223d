// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_ZERO_PAGES_H_
#define PLUGIN_COMMON_ZERO_PAGES_H_

#include <cstdint>

#include "common/block_table.h"

namespace mig {

// A run of pages that must read zero.
struct ZeroRun {
  Block* block = nullptr;
  uint64_t offset = 0;  // multiples of the page size
  uint64_t length = 0;
};

// Starts a destination's record of what may be other than zero (rule 9).
void TrackNonzero(Block* block);

// Makes pages from the run's start read zero and shortens the run, until it is
// empty or `budget` bytes were written. Pages that are known to be zero cost a
// bit test in 64; others a memset, never a replaced page. Returns the bytes
// written.
uint64_t ZeroPages(ZeroRun* run, uint64_t budget);

// Notes that [offset, offset + length) of the block gets data.
void MarkWritten(Block* block, uint64_t offset, uint64_t length);

}  // namespace mig

#endif  // PLUGIN_COMMON_ZERO_PAGES_H_
