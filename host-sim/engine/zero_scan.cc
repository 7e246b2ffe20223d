// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/zero_scan.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstddef>

namespace mig::sim {
namespace {

bool HasSwap() {
  struct sysinfo info = {};
  return sysinfo(&info) != 0 || info.totalswap != 0;
}

}  // namespace

// Races with the guest by design, so the race detector must not look, and no
// library function that it knows may be called.
__attribute__((no_sanitize("thread"))) bool IsZeroMemory(const std::byte* data,
                                                         uint64_t length) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  for (uint64_t i = 0; i < length / sizeof(uint64_t); i += 8) {
    uint64_t any = 0;
    for (uint64_t k = 0; k < 8; ++k) any |= words[i + k];
    if (any != 0) return false;
  }
  return true;
}

ZeroScanner::ZeroScanner() : absent_is_zero_(!HasSwap()) {}

void ZeroScanner::Scan(const GuestBlock& block, uint64_t first, uint64_t count,
                       DirtyBitmap* zero) {
  const uint64_t unit = block.page_size / kPageSize;
  std::byte* start = block.base + first * block.page_size;
  resident_.assign(count * unit, 1);
  // Reading a page that was never written would map one, or for a memfd even
  // allocate it: a sparse guest would fill up. Unlike pagemap, mincore(2) tells
  // such a page from one that only carries the mark of write protection.
  if (!absent_is_zero_ ||
      mincore(start, count * block.page_size, resident_.data()) != 0) {
    resident_.assign(count * unit, 1);
  }
  for (uint64_t i = 0; i < count; ++i) {
    bool absent = true;
    for (uint64_t k = 0; k < unit; ++k) {
      if ((resident_[i * unit + k] & 1) != 0) absent = false;
    }
    if (absent || IsZeroMemory(start + i * block.page_size, block.page_size)) {
      zero->Set(first + i);
    } else {
      zero->Clear(first + i);
    }
  }
}

}  // namespace mig::sim
