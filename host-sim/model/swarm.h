// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_SWARM_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_SWARM_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/plugin_host.h"
#include "model/run.h"
#include "model/scenario.h"

namespace mig::model {

struct SwarmOptions {
  uint64_t first_seed = 1;
  uint64_t last_seed = 1;
  uint32_t jobs = 1;
  uint64_t most_failures = 1;  // then it stops
  uint64_t run_limit_ns =
      60'000'000'000;  // real time of one run: else it hangs
  bool twice = false;  // each seed two times, which must be the same
  ScenarioLimits limits;
};

// A seed that broke a rule, crashed or hung.
struct SwarmFailure {
  uint64_t seed = 0;
  std::string text;  // lines
};

struct SwarmTotals {
  uint64_t runs = 0;
  uint64_t with_faults = 0;
  uint64_t steps = 0;
  uint64_t guest_writes = 0;
  uint64_t pages_compared = 0;
  uint64_t virtual_ns = 0;
  uint64_t taken = 0;
  std::array<uint64_t, 6> outcomes = {};  // of the source, by Outcome
};

struct SwarmResult {
  SwarmTotals totals;
  std::vector<SwarmFailure> failures;
};

// Runs all seeds in `jobs` processes of their own, so that one that crashes or
// hangs is found and named. `progress` is called now and then, on this thread.
// Errors: ResourceExhausted. Main thread only: it forks.
absl::StatusOr<SwarmResult> RunSwarm(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const SwarmOptions& options,
    const std::function<void(const SwarmTotals&)>& progress);

// The failed run with as few faults as it still fails with, as text: faults,
// how it may be repeated, and the last that happened.
std::string ExplainFailure(const std::shared_ptr<const sim::Plugin>& plugin,
                           Scenario scenario, const RunResult& result);

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_SWARM_H_
