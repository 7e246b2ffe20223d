// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Flow control of control messages, both directions (rule 11): what is under
// way or not released yet never exceeds a window, so that neither side's memory
// is the other's to fill.
#ifndef PLUGIN_COMMON_MESSAGE_CREDIT_H_
#define PLUGIN_COMMON_MESSAGE_CREDIT_H_

#include <cstdint>

namespace mig {

// What one message is counted for: its bytes and what keeping it costs.
inline constexpr uint64_t kMessageOverhead = 256;
constexpr uint64_t MessageCharge(uint64_t length) {
  return length + kMessageOverhead;
}

// One direction. A single message may always be under way, however small the
// window. Not thread-safe.
class CreditWindow {
 public:
  void Open(uint64_t window) { window_ = window; }
  bool Fits(uint64_t length) const {
    return used_ == 0 || used_ + MessageCharge(length) <= window_;
  }
  void Take(uint64_t length) { used_ += MessageCharge(length); }
  // False if more is given back than was taken.
  bool GiveBack(uint64_t charge) {
    if (charge > used_) return false;
    used_ -= charge;
    return true;
  }
  uint64_t used() const { return used_; }
  uint64_t window() const { return window_; }

 private:
  uint64_t window_ = 0;
  uint64_t used_ = 0;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_MESSAGE_CREDIT_H_
