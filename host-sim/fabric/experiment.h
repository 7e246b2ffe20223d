// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_FABRIC_EXPERIMENT_H_
#define MIGTRANSPORT_HOST_SIM_FABRIC_EXPERIMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/plugin_host.h"
#include "fabric/dirtying.h"

namespace mig::fabric {

struct ExperimentSettings {
  // Options of the plugin, the same on both sides.
  std::vector<std::pair<std::string, std::string>> options;
  DirtyingSettings guest;
  uint64_t downtime_limit_ns = 500'000'000;
  // As often the host flushes within a round, but not in the last (QEMU's
  // ram_save_iterate ends after 50 ms); 0: never.
  uint64_t flush_every_ns = 50'000'000;
  uint32_t most_rounds = 30;  // the last one comes at the latest then
  uint32_t round_trips = 0;   // of a message of 40 bytes, before the rounds
};

struct RoundFigures {
  uint64_t bytes = 0;
  uint64_t ns = 0;  // from round_begin to ROUND_DONE
  double MibPerSecond() const;
};

// All on the virtual clock.
struct ExperimentResult {
  uint64_t setup_ns = 0;  // until BLOCKS_READY on the source
  std::vector<RoundFigures> rounds;
  uint64_t downtime_ns = 0;  // from the guest's stop to its start there
  uint64_t total_ns = 0;     // from the first round's begin to that
  double round_trip_ns = 0;
};

// Migrates a guest that has no memory, only dirty bits, both sides in this
// thread under a virtual clock, over a plugin whose device takes the time that
// `options` say. `progress` gets a line a round. Errors: what the plugin says;
// DeadlineExceeded, where nothing goes on.
absl::StatusOr<ExperimentResult> RunExperiment(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const ExperimentSettings& settings,
    const std::function<void(const std::string&)>& progress);

}  // namespace mig::fabric

#endif  // MIGTRANSPORT_HOST_SIM_FABRIC_EXPERIMENT_H_
