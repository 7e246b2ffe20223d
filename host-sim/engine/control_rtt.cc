// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/control_rtt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/console.h"

namespace mig::sim {
namespace {

// What the measurement before round 1 may take, beyond its first round trip.
constexpr uint64_t kIdleNs = 10'000'000;
// A peer that is this late has something better to do.
constexpr uint64_t kAnswerLimitNs = 1'000'000'000;
// Between two messages of a round, so that they are no load.
constexpr uint64_t kApartNs = 1'000'000;

}  // namespace

std::optional<uint64_t> Percentile(std::vector<uint64_t> samples,
                                   uint32_t percent) {
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const size_t rank = (samples.size() * percent + 99) / 100;
  return samples[std::max<size_t>(rank, 1) - 1];
}

absl::Status ControlRtt::SendPing(bool* sent) {
  ++number_;
  sent_ns_ = MonotonicNs();
  const Bytes message = Encode(PingMessage{number_});
  absl::StatusOr<bool> result = driver_.session().Send(kPingMessage, message);
  if (!result.ok()) return driver_.Explain(result.status());
  under_way_ = *sent = *result;
  return absl::OkStatus();
}

absl::Status ControlRtt::MeasureIdle() {
  samples_ = &report_.idle;
  const uint64_t start = MonotonicNs();
  for (size_t i = 0; i < kIdlePings; ++i) {
    if (i > 0 && MonotonicNs() - start > kIdleNs) break;
    bool sent = false;
    absl::Status status = SendPing(&sent);
    if (!status.ok() || !sent) return status;
    const uint64_t limit = MonotonicNs() + kAnswerLimitNs;
    status = driver_.PumpUntil("measuring the control channel", 0, [&] {
      return !under_way_ || MonotonicNs() > limit;
    });
    if (!status.ok() || under_way_) return status;
  }
  return absl::OkStatus();
}

absl::Status ControlRtt::MayPing() {
  if (under_way_ || left_in_round_ == 0 ||
      MonotonicNs() - sent_ns_ < kApartNs) {
    return absl::OkStatus();
  }
  samples_ = &report_.rounds;
  bool sent = false;
  absl::Status status = SendPing(&sent);
  if (sent) --left_in_round_;
  return status;
}

absl::Status ControlRtt::TakeAnswer(ByteSpan data) {
  absl::StatusOr<PingMessage> answer = ParsePing(data);
  if (!answer.ok()) return answer.status();
  if (!under_way_ || answer->number != number_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the destination answers message ", answer->number,
                     " of the round-trip measurement where ", number_,
                     " is the last: run the same mig-host-sim on both sides"));
  }
  under_way_ = false;
  samples_->push_back(MonotonicNs() - sent_ns_);
  return absl::OkStatus();
}

}  // namespace mig::sim
