// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_SETTINGS_H_
#define MIGTRANSPORT_HOST_SIM_CLI_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/parse_values.h"
#include "engine/convergence.h"
#include "engine/phase.h"
#include "engine/session.h"
#include "engine/source_engine.h"
#include "guest/guest_memory.h"

namespace mig::sim {

// Options of the command line as they were given: text, not yet looked at.
struct RawOptions {
  std::string plugin = "tcp";
  std::vector<std::string> plugin_options;
  std::string log_level = "warning";

  std::string uri;  // where to connect to or listen
  std::string vm_uuid = "6d696768-6f73-7473-696d-000000000001";
  std::string attempt = "1";
  std::string peer_wait = "30s";
  std::string after = "500ms";
  std::vector<std::string> memory;
  std::string max_memory;
  std::string pause_at;
  std::string destination_pause_at;  // run only
  std::string run_log;
  std::string load_delay = "0";

  std::string workload = "uniform";
  std::string seed = "1";
  std::string tracker = "auto";
  std::string downtime_limit = "300ms";
  std::string converge = "throttle";
  std::string time_limit = "0";
  std::string max_rounds = "30";
  std::string max_bandwidth = "0";
  std::string device_state = "0";
  std::string zero_detect = "first";

  bool json = false;
  bool quiet = false;
  bool verify = true;
  bool one_process = false;  // run only
  bool prefault = false;
  bool say_busy = true;
  int report_fd = -1;
  bool strict = false;
};

// Of the command `model`.
struct RawModel {
  std::string seeds = "1-100";
  std::string jobs = "2";
  std::string max_faults = "3";
  std::string max_failures = "1";
  std::string log;           // a file
  bool twice = false;        // each seed, to compare the two
  bool every_fault = false;  // a small migration, a fault at every step
};

// Of the command `bench`.
struct RawBench {
  std::string plugin = "rdma";
  std::string reproduce;  // which experiment
  std::string profile = "100g-mlx5";
  std::vector<std::string> changes;  // of its figures
  std::string memory = "128G";
  bool show_profile = false;
  bool json = false;
  bool quiet = false;
};

// The same, read and checked.
struct CommonSettings {
  std::string plugin;  // name or path
  std::vector<std::pair<std::string, std::string>> plugin_options;
  int32_t log_level = 0;
  bool json = false;   // one object on stdout, nothing else
  bool quiet = false;  // only what a person must know on stderr
};

struct MigrationSettings {
  std::string uri;
  MigrationId id;
  uint64_t peer_wait_ns = 0;  // for the peer to appear; 0: for ever
  RunLength after;            // how long the guest goes on after the end
  bool verify = true;
  std::optional<Phase> pause_at;  // for tests: SIGSTOP in this phase
  std::string run_log;            // for tests: who ran the guest, when
};

struct SourceSettings {
  std::vector<BlockSpec> memory;
  std::string workload;
  uint64_t seed = 1;
  std::string tracker;
  ConvergeLimits limits;
  uint64_t max_bandwidth = 0;  // bytes a second while the guest runs; 0: none
  uint64_t device_state_bytes = 0;  // of filler beside the workload's own
  ZeroDetect zero_detect = ZeroDetect::kFirst;
  bool strict = false;
};

struct DestinationSettings {
  std::vector<BlockSpec> memory;  // empty: what the source has
  uint64_t max_memory = 0;        // bytes that a source may ask for
  bool prefault = false;          // touch all memory before round 1
  // For tests: loading takes this much longer, and whether the peer is told.
  uint64_t load_delay_ns = 0;
  bool say_busy = true;
};

// Each is InvalidArgument in one line for what can't be meant. Any thread.
absl::StatusOr<CommonSettings> ReadCommon(const RawOptions& raw);
absl::StatusOr<MigrationSettings> ReadMigration(const RawOptions& raw);
absl::StatusOr<SourceSettings> ReadSource(const RawOptions& raw);
absl::StatusOr<DestinationSettings> ReadDestination(const RawOptions& raw);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_SETTINGS_H_
