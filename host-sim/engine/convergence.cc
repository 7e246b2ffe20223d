// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/convergence.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace mig::sim {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kNsPerSecond = 1e9;
// A round that leaves this share of what it sent brings nothing nearer.
constexpr double kStuckShare = 0.9;
// One such round may be chance; two in a row are not.
constexpr uint32_t kStuckRounds = 2;
constexpr uint32_t kFirstThrottle = 20;
constexpr uint32_t kThrottleStep = 10;
constexpr uint32_t kMaxThrottle = 99;
// A round below this says more about latency than about bandwidth.
constexpr uint64_t kTellingBytes = 4 << 20;

}  // namespace

absl::StatusOr<ConvergeMode> ParseConvergeMode(absl::string_view text) {
  if (text == "throttle") return ConvergeMode::kThrottle;
  if (text == "stop") return ConvergeMode::kStop;
  if (text == "give-up") return ConvergeMode::kGiveUp;
  return absl::InvalidArgumentError(absl::StrFormat(
      "--converge '%s': not a mode: give throttle, stop or give-up", text));
}

double RatePerSecond(uint64_t bytes, uint64_t duration_ns) {
  if (duration_ns == 0) return 0;
  return static_cast<double>(bytes) * kNsPerSecond /
         static_cast<double>(duration_ns);
}

double ConvergencePolicy::Bandwidth() const {
  // The newest telling round; else the fastest of the small ones, which are
  // all too slow by their latency.
  double fastest = 0;
  for (size_t i = rounds_.size(); i-- > 0;) {
    const RoundFacts& round = rounds_[i];
    const double rate = RatePerSecond(round.sent_bytes, round.duration_ns);
    if (round.sent_bytes >= kTellingBytes) return std::max(rate, fastest);
    fastest = std::max(fastest, rate);
  }
  return fastest;
}

bool ConvergencePolicy::LimitReached(uint64_t elapsed_ns) const {
  return (limits_.max_rounds != 0 && rounds_.size() >= limits_.max_rounds) ||
         (limits_.time_ns != 0 && elapsed_ns >= limits_.time_ns);
}

std::string ConvergencePolicy::LimitText(uint64_t elapsed_ns) const {
  if (limits_.time_ns != 0 && elapsed_ns >= limits_.time_ns) {
    return absl::StrFormat("the time limit of %u ms is reached",
                           limits_.time_ns / 1'000'000);
  }
  return absl::StrFormat("the limit of %u rounds is reached",
                         limits_.max_rounds);
}

Decision ConvergencePolicy::AfterRound(const RoundFacts& facts,
                                       uint64_t elapsed_ns,
                                       uint64_t state_bytes) {
  rounds_.push_back(facts);
  Decision decision;
  decision.throttle_percent = throttle_percent_;
  const double left = static_cast<double>(facts.dirty_bytes + state_bytes);
  const double bandwidth = Bandwidth();
  // Nothing but zero pages was sent: there is no bandwidth to go by, and what
  // is left is small if it is less than what can't be told from latency.
  const double expected =
      bandwidth > 0 ? left / bandwidth * kNsPerSecond
                    : (left < kTellingBytes ? 0.0 : kNsPerSecond * 3600);
  decision.expected_downtime_ns = static_cast<uint64_t>(expected);
  if (decision.expected_downtime_ns <= limits_.downtime_ns) {
    decision.next = NextStep::kSwitchover;
    return decision;
  }
  if (!LimitReached(elapsed_ns)) {
    React(facts, &decision);
    return decision;
  }
  const bool stop = limits_.mode == ConvergeMode::kStop;
  decision.next = stop ? NextStep::kForcedStop : NextStep::kGiveUp;
  decision.word = absl::StrFormat(
      "%s with %.1f MiB to send, %.0f ms of downtime where %u ms are allowed: "
      "%s",
      LimitText(elapsed_ns), left / kMiB, expected / 1e6,
      limits_.downtime_ns / 1'000'000,
      stop ? "stopping the guest anyway" : "giving up");
  return decision;
}

void ConvergencePolicy::React(const RoundFacts& facts, Decision* decision) {
  const bool stuck = facts.sent_bytes > 0 &&
                     static_cast<double>(facts.dirty_bytes) >=
                         kStuckShare * static_cast<double>(facts.sent_bytes);
  stuck_rounds_ = stuck ? stuck_rounds_ + 1 : 0;
  if (stuck_rounds_ < kStuckRounds) return;
  const std::string why = absl::StrFormat(
      "the guest does not converge: it dirties %.1f MiB/s where %.1f MiB/s "
      "are sent",
      RatePerSecond(facts.dirty_bytes, facts.duration_ns) / kMiB,
      RatePerSecond(facts.sent_bytes, facts.duration_ns) / kMiB);
  switch (limits_.mode) {
    case ConvergeMode::kGiveUp:
      decision->next = NextStep::kGiveUp;
      decision->word = why + ": giving up";
      break;
    case ConvergeMode::kStop:
      if (!said_stuck_) decision->word = why + ": it is stopped at the limit";
      break;
    case ConvergeMode::kThrottle:
      if (throttle_percent_ == kMaxThrottle) break;
      throttle_percent_ =
          throttle_percent_ == 0
              ? kFirstThrottle
              : std::min(throttle_percent_ + kThrottleStep, kMaxThrottle);
      decision->throttle_percent = throttle_percent_;
      decision->word =
          absl::StrFormat("%s: throttling it by %u%%", why, throttle_percent_);
      break;
  }
  said_stuck_ = true;
  // The next round shows what this one did: react to that alone.
  stuck_rounds_ = kStuckRounds - 1;
}

}  // namespace mig::sim
