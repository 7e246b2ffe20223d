// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The published experiment on writes in flight to a chunk, again: a guest of
// 128 GiB at 100 Gb/s. Its text does not say how the guest writes; that 2 MiB
// writes are merged, that a 50 ms iterate ends in a drain, and that all of
// memory is one chunk after the other, is QEMU's code.
#ifndef MIGTRANSPORT_HOST_SIM_FABRIC_REPRODUCE_H_
#define MIGTRANSPORT_HOST_SIM_FABRIC_REPRODUCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/plugin_host.h"
#include "fabric/experiment.h"
#include "fabric/profile.h"

namespace mig::fabric {

struct ReproduceSettings {
  const Profile* profile = nullptr;
  std::vector<std::string> changes;  // of its figures
  uint64_t memory = uint64_t{128} << 30;
};

// How a row's plugin is set.
struct Way {
  bool dynamic = false;       // registration by chunk, when it is sent
  bool many = false;          // writes under way to a chunk, else one
  bool drains_often = false;  // at each flush, else at the round's end
  bool as_shipped = false;    // writes as long as the plugin makes them
  uint64_t chunk = uint64_t{32} << 20;
};

struct InflightRow {
  Way way;
  ExperimentResult result;
  double published_mib = 0;  // a second, in the last round; 0: none
  double published_downtime_ms = 0;
};

struct ChunkRow {
  uint64_t chunk = 0;
  double one_mb = 0;  // a second, over the first round: 10^6 bytes
  double many_mb = 0;
  double published_mb = 0;  // of another system
};

struct RoundTripRow {
  bool is_inline = false;
  double polling_us = 0;  // with a thread that never sleeps
  double sleeping_us = 0;
};

struct Reproduction {
  std::vector<InflightRow> inflight;
  std::vector<ChunkRow> chunks;
  std::vector<RoundTripRow> round_trips;
};

// Takes some seconds; `progress` gets a line now and then. Errors: what the
// plugin says of its options, or a migration that fails.
absl::StatusOr<Reproduction> ReproduceInflight(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const ReproduceSettings& settings,
    const std::function<void(const std::string&)>& progress);

// Tables in Markdown.
std::string ReproductionText(const Profile& profile,
                             const Reproduction& reproduction);

}  // namespace mig::fabric

#endif  // MIGTRANSPORT_HOST_SIM_FABRIC_REPRODUCE_H_
