// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_RTT_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_RTT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/control_format.h"
#include "engine/session_driver.h"

namespace mig::sim {

// Round trips of control messages in nanoseconds, in the order they were made.
struct RttReport {
  std::vector<uint64_t> idle;    // before round 1, one after the other
  std::vector<uint64_t> rounds;  // while pages were under way
};

// The value that `percent` of `samples` do not exceed (nearest rank); nothing
// if there are none.
std::optional<uint64_t> Percentile(std::vector<uint64_t> samples,
                                   uint32_t percent);

// The source's half of measuring the control channel's round trip: small
// messages that the destination gives back at once. It is as a host sees it,
// from send to the progress that brings the answer. One thread.
class ControlRtt {
 public:
  // The driver outlives this object.
  explicit ControlRtt(SessionDriver* driver) : driver_(*driver) {}

  // While nothing else is sent: a few milliseconds at most, and one round trip
  // at least. A peer that does not answer in time is no failure.
  absl::Status MeasureIdle();

  // A round in which the guest runs begins.
  void BeginRound() { left_in_round_ = kPingsPerRound; }
  // Call now and then in it: sends one message if none is under way, the last
  // is some time ago, and the round has not had enough. Never waits.
  absl::Status MayPing();

  // The destination's answer. InvalidArgument if it answers nothing.
  absl::Status TakeAnswer(ByteSpan data);

  const RttReport& report() const { return report_; }

  static constexpr size_t kIdlePings = 64;
  static constexpr size_t kPingsPerRound = 8;

 private:
  absl::Status SendPing(bool* sent);

  SessionDriver& driver_;
  RttReport report_;
  std::vector<uint64_t>* samples_ = &report_.idle;
  size_t left_in_round_ = 0;
  uint64_t number_ = 0;     // of the last one
  bool under_way_ = false;  // the last one is not answered
  uint64_t sent_ns_ = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_RTT_H_
