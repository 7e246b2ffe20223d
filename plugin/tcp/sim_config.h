// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What one side of a simulated network is made from. As text, behind "sim:":
// "NAME,seed=7,latency=50us,unkind=on,faults=short 3 1;reset 9"
#ifndef PLUGIN_TCP_SIM_CONFIG_H_
#define PLUGIN_TCP_SIM_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tcp/sim_faults.h"

namespace mig::tcp {

// Latency, bandwidth and buffer are of what this side sends.
struct SimConfig {
  std::string name;  // sides of one name in one process reach each other
  std::optional<uint64_t> seed;  // without: from the host's randomness
  uint64_t latency_ns = 0;
  uint64_t bandwidth = 0;       // bytes a second of a connection, 0: no limit
  uint64_t buffer = 64u << 10;  // bytes sent and not read yet
  bool unkind = false;  // calls move little, or nothing for a short time
  std::vector<SimFault> faults;
};

// Parses "NAME[,KEY=VALUE]...". Errors: OPTION, naming the word and what is
// allowed.
absl::StatusOr<SimConfig> ParseSimConfig(absl::string_view text);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SIM_CONFIG_H_
