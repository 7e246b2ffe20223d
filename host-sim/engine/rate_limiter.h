// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_RATE_LIMITER_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_RATE_LIMITER_H_

#include <algorithm>
#include <cstdint>

namespace mig::sim {

// Shares out bytes at a steady rate: what is not used within 10 ms is lost, so
// a pause is not followed by a burst. Pure: the caller brings the time.
class RateLimiter {
 public:
  // 0 bytes a second is no limit.
  explicit RateLimiter(uint64_t bytes_per_second) : rate_(bytes_per_second) {}

  // How many bytes may go at `now_ns`; 0: none yet.
  uint64_t Allowed(uint64_t now_ns) {
    if (rate_ == 0) return UINT64_MAX;
    const uint64_t earliest = now_ns > kBurstNs ? now_ns - kBurstNs : 0;
    due_ns_ = std::max(due_ns_, earliest);
    if (due_ns_ >= now_ns) return 0;
    const double bytes = static_cast<double>(now_ns - due_ns_) *
                         static_cast<double>(rate_) / 1e9;
    return std::max<uint64_t>(1, static_cast<uint64_t>(bytes));
  }

  // Says that `bytes` went.
  void Take(uint64_t bytes) {
    if (rate_ == 0) return;
    due_ns_ += static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 /
                                     static_cast<double>(rate_));
  }

  // How long to wait at `now_ns` until something may go.
  uint64_t WaitNs(uint64_t now_ns) const {
    return due_ns_ > now_ns ? due_ns_ - now_ns : 0;
  }

 private:
  static constexpr uint64_t kBurstNs = 10'000'000;
  const uint64_t rate_;
  uint64_t due_ns_ = 0;  // when all that went so far is paid for
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_RATE_LIMITER_H_
