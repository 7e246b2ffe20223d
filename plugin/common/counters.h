// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_COUNTERS_H_
#define PLUGIN_COMMON_COUNTERS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mig {

// A session's counters, named by a transport's enum. Written by the session's
// caller, read by any thread.
template <typename Counter, size_t kCount>
class Counters {
 public:
  void Set(Counter counter, uint64_t value) {
    values_[static_cast<size_t>(counter)].store(value,
                                                std::memory_order_relaxed);
  }
  void Add(Counter counter, uint64_t value) {
    Set(counter, Get(counter) + value);
  }
  uint64_t Get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(
        std::memory_order_relaxed);
  }
  // The first `count`, in the order of the enum.
  void Copy(uint64_t* values, size_t count) const {
    for (size_t i = 0; i < std::min(count, kCount); ++i) {
      values[i] = Get(static_cast<Counter>(i));
    }
  }

 private:
  std::array<std::atomic<uint64_t>, kCount> values_ = {};
};

}  // namespace mig

#endif  // PLUGIN_COMMON_COUNTERS_H_
