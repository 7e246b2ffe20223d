// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_PACER_H_
#define PLUGIN_RDMA_PACER_H_

#include <cstdint>

namespace mig::rdma {

// A token bucket: bytes a second on the host's clock, for max-bandwidth. Over
// any time it lets through rate x time plus a burst of 5 ms; whoever spends
// more than there is, is in debt, which the next pay. Not thread-safe.
class Pacer {
 public:
  // 0: no limit, and every call is a comparison.
  explicit Pacer(uint64_t bytes_per_second);

  bool limited() const { return rate_ != 0; }
  // Reads in the time; to be called once a batch of calls of Allowed.
  void Tick(uint64_t now_ns);
  // Bytes of `wanted` that may go now. What is small is not cut smaller: it
  // goes on credit as long as there is no debt.
  uint64_t Allowed(uint64_t wanted) const;
  void Spend(uint64_t bytes) {
    if (limited()) tokens_ -= static_cast<int64_t>(bytes);
  }
  // Whether a quarter of the burst may go: worth waking up for.
  bool Ready() const { return !limited() || tokens_ >= worth_; }
  // When Ready is true: now_ns of the last Tick if it is.
  uint64_t DueNs() const;

 private:
  const uint64_t rate_;
  const int64_t burst_;  // bytes
  const int64_t worth_;
  int64_t tokens_;  // bytes; below 0 is debt
  bool started_ = false;
  uint64_t now_ns_ = 0;
  uint64_t remainder_ = 0;  // byte-nanoseconds below one byte
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_PACER_H_
