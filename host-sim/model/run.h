// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_RUN_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_RUN_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/plugin_host.h"
#include "model/host.h"
#include "model/scenario.h"

namespace mig::model {

// What one run came to.
struct RunResult {
  absl::Status verdict;  // OK: every rule was kept
  Outcome source = Outcome::kNone;
  bool taken = false;      // the destination has the guest
  std::string source_why;  // why its session failed, "" if it did not
  std::string destination_why;
  uint64_t hash = 0;    // of all that happened
  uint64_t events = 0;  // lines of the log
  uint64_t steps = 0;
  uint64_t virtual_ns = 0;
  uint64_t guest_writes = 0;
  uint64_t pages_compared = 0;
  std::vector<std::string> last_lines;
};

// A whole migration in this thread, under a virtual clock: both hosts, their
// plugin's two contexts, what is between them, and the guest. The same scenario
// gives the same result, bit for bit. `every_line` gets the log; null: nobody.
RunResult RunScenario(const std::shared_ptr<const sim::Plugin>& plugin,
                      const Scenario& scenario,
                      std::FILE* every_line = nullptr);

// "committed, the destination has the guest".
std::string OutcomeText(const RunResult& result);

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_RUN_H_
