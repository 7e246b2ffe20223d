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

// Makes the run's memory read zero from its start and shortens the run, until
// it is empty or *budget is spent: a byte for each byte written, never by
// replacing a page, and a byte for each 8 pages that are known to be zero and
// are skipped. Takes a part of a page that is larger than the budget. Returns
// the bytes written.
uint64_t ZeroPages(ZeroRun* run, uint64_t* budget);

// Notes that [offset, offset + length) of the block gets data.
void MarkWritten(Block* block, uint64_t offset, uint64_t length);

}  // namespace mig

#endif  // PLUGIN_COMMON_ZERO_PAGES_H_
