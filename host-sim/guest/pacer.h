// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_PACER_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_PACER_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "guest/workload.h"

namespace mig::sim {

// Keeps work to a rate. One thread.
class Pacer {
 public:
  // `per_second` units; 0 for no limit. Time starts with the first call.
  Pacer(double per_second, GuestClock clock)
      : per_second_(per_second), clock_(std::move(clock)) {}

  // How many of `wanted` units may be done now. They count as done.
  uint64_t Take(uint64_t wanted) {
    if (per_second_ <= 0) return wanted;
    const double allowed = std::max(0.0, Due());
    const uint64_t taken =
        std::min(wanted, static_cast<uint64_t>(std::min(allowed, 1e15)));
    done_ += static_cast<double>(taken);
    return taken;
  }

  // Nanoseconds until one unit is due.
  int64_t DelayNs() {
    if (per_second_ <= 0) return 0;
    const double missing = 1.0 - Due();
    if (missing <= 0) return 0;
    return static_cast<int64_t>(std::min(missing / per_second_, 1.0) * 1e9) + 1;
  }

  // Time in which nothing could be done is not caught up on.
  void Skip(int64_t ns) { start_ns_ += ns; }

 private:
  // What is owed. Who falls behind for long does not owe it for ever.
  double Due() {
    const int64_t now = clock_();
    if (!started_) {
      started_ = true;
      start_ns_ = now;
    }
    const double owed =
        static_cast<double>(now - start_ns_) * 1e-9 * per_second_ - done_;
    const double most = std::max(1.0, kCatchUpSeconds * per_second_);
    if (owed <= most) return owed;
    done_ += owed - most;
    return most;
  }

  static constexpr double kCatchUpSeconds = 0.1;

  double per_second_;
  GuestClock clock_;
  bool started_ = false;
  int64_t start_ns_ = 0;
  double done_ = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_PACER_H_
