// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_ATOMIC_BITMAP_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_ATOMIC_BITMAP_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "guest/dirty_bitmap.h"

namespace mig::sim {

// One bit a page, set by guest threads (or a signal handler) while the
// migration thread drains them.
class AtomicBitmap {
 public:
  explicit AtomicBitmap(uint64_t pages)
      : words_((pages + 63) / 64),
        bits_(std::make_unique<std::atomic<uint64_t>[]>(words_)) {}

  // Async-signal-safe, any thread.
  void Set(uint64_t page) {
    bits_[page / 64].fetch_or(uint64_t{1} << (page % 64),
                              std::memory_order_seq_cst);
  }

  void ClearAll() {
    for (uint64_t i = 0; i < words_; ++i) bits_[i].store(0);
  }

  // Moves all set bits into `out`, of the same size; returns how many.
  uint64_t DrainInto(DirtyBitmap* out) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < words_; ++i) {
      if (bits_[i].load(std::memory_order_relaxed) == 0) continue;
      const uint64_t bits = bits_[i].exchange(0, std::memory_order_seq_cst);
      out->OrWord(i, bits);
      count += std::popcount(bits);
    }
    return count;
  }

 private:
  uint64_t words_;
  std::unique_ptr<std::atomic<uint64_t>[]> bits_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_ATOMIC_BITMAP_H_
