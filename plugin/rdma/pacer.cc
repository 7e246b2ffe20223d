// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/pacer.h"

#include <algorithm>

namespace mig::rdma {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// Long enough to sleep between bursts, short against a round trip's budget.
constexpr uint64_t kBurstNs = 5'000'000;
// What is no longer than this is not cut.
constexpr uint64_t kSmallest = uint64_t{64} << 10;
constexpr uint64_t kAlignment = 4096;
// Rates above are no limit for any device, and keep the sums below 2^63.
constexpr uint64_t kFastest = uint64_t{1} << 50;

// amount * rate / kSecond, and what is left over.
uint64_t Scale(uint64_t ns, uint64_t rate, uint64_t* remainder) {
  const auto product = static_cast<unsigned __int128>(ns) * rate + *remainder;
  *remainder = static_cast<uint64_t>(product % kSecond);
  const unsigned __int128 bytes = product / kSecond;
  return bytes > kFastest ? kFastest : static_cast<uint64_t>(bytes);
}

int64_t BurstOf(uint64_t rate) {
  uint64_t remainder = 0;
  return static_cast<int64_t>(
      std::max(Scale(kBurstNs, rate, &remainder), kSmallest));
}

}  // namespace

Pacer::Pacer(uint64_t bytes_per_second)
    : rate_(std::min(bytes_per_second, kFastest)),
      burst_(BurstOf(rate_)),
      worth_(burst_ / 4),
      tokens_(burst_) {}

void Pacer::Tick(uint64_t now_ns) {
  if (!limited()) return;
  if (started_ && now_ns > now_ns_) {
    const uint64_t gained = Scale(now_ns - now_ns_, rate_, &remainder_);
    tokens_ = std::min(burst_, tokens_ + static_cast<int64_t>(gained));
  }
  started_ = true;
  now_ns_ = std::max(now_ns_, now_ns);
}

uint64_t Pacer::Allowed(uint64_t wanted) const {
  if (!limited()) return wanted;
  if (tokens_ <= 0) return 0;
  // Cut where what follows is aligned.
  const uint64_t most = std::max(static_cast<uint64_t>(tokens_), kSmallest);
  return std::min(wanted, (most + kAlignment - 1) & ~(kAlignment - 1));
}

uint64_t Pacer::DueNs() const {
  if (Ready()) return now_ns_;
  // Rounded up.
  const auto missing =
      static_cast<unsigned __int128>(worth_ - tokens_) * kSecond;
  const auto wait = (missing - remainder_ + rate_ - 1) / rate_;
  const uint64_t room = UINT64_MAX - 1 - now_ns_;
  return now_ns_ + (wait > room ? room : static_cast<uint64_t>(wait));
}

}  // namespace mig::rdma
