// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_CONVERGENCE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_CONVERGENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::sim {

// What to do about a guest that dirties memory as fast as it is sent.
enum class ConvergeMode {
  kThrottle,  // slow the guest down, step by step
  kStop,      // stop it at the limit of rounds or time, whatever that costs
  kGiveUp     // cancel as soon as it shows; the guest runs on here
};

// Reads `throttle`, `stop` or `give-up`. InvalidArgument in one line.
absl::StatusOr<ConvergeMode> ParseConvergeMode(absl::string_view text);

struct ConvergeLimits {
  ConvergeMode mode = ConvergeMode::kThrottle;
  uint64_t downtime_ns = 300'000'000;
  uint64_t time_ns = 0;      // of the whole migration; 0: none
  uint64_t max_rounds = 30;  // the final one not counted; 0: none
};

// What one finished round was like.
struct RoundFacts {
  uint64_t sent_bytes = 0;   // of pages that were not zero
  uint64_t duration_ns = 0;  // from the first write to ROUND_DONE
  uint64_t dirty_bytes = 0;  // dirtied meanwhile: what is left to send
};

// Bytes a second; 0 if `duration_ns` is.
double RatePerSecond(uint64_t bytes, uint64_t duration_ns);

enum class NextStep {
  kRound,       // send another round
  kSwitchover,  // what is left fits into the downtime limit
  kForcedStop,  // it does not, but a limit is reached and the mode is kStop
  kGiveUp       // a limit is reached, or the mode is kGiveUp and it can't fit
};

struct Decision {
  NextStep next = NextStep::kRound;
  uint32_t throttle_percent = 0;  // how much slower the guest is to run
  uint64_t expected_downtime_ns = 0;
  // One line for a person when something changed: why it does not converge and
  // what is done about it. Empty otherwise.
  std::string word;
};

// Decides after each round. Pure: no clock, no guest. One thread.
class ConvergencePolicy {
 public:
  explicit ConvergencePolicy(const ConvergeLimits& limits) : limits_(limits) {}

  // `facts` of the round that ended `elapsed_ns` after the migration began;
  // `state_bytes` of device state will follow the last round.
  Decision AfterRound(const RoundFacts& facts, uint64_t elapsed_ns,
                      uint64_t state_bytes);

 private:
  bool LimitReached(uint64_t elapsed_ns) const;
  std::string LimitText(uint64_t elapsed_ns) const;
  // How fast the link has proved to be, from rounds large enough to tell.
  double Bandwidth() const;
  void React(const RoundFacts& facts, Decision* decision);

  const ConvergeLimits limits_;
  std::vector<RoundFacts> rounds_;
  uint32_t throttle_percent_ = 0;
  uint32_t stuck_rounds_ = 0;  // in a row, since the last reaction
  bool said_stuck_ = false;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_CONVERGENCE_H_
