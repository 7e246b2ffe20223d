// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a soft device is made from: a model, and options that change single
// things about it. As text: "mlx5,seed=7,landing=latest,faults=wc 5 FATAL_ERR"
#ifndef PLUGIN_SOFT_VERBS_CONFIG_H_
#define PLUGIN_SOFT_VERBS_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "soft-verbs/faults.h"
#include "soft-verbs/models.h"
#include "soft-verbs/timing.h"

namespace mig::soft {

// When the bytes of a write are read and land (DESIGN section 5). kNone: never;
// the memory of a write is not touched on either side, only its keys and bounds
// are checked, so that guests of any size can be measured.
enum class Landing { kEarliest, kLatest, kRandom, kNone };
// What a queue pair is granted of the inline data it asked for.
enum class InlineGrant { kModel, kNone, kHalf, kMore };

struct Config {
  const Model* model = nullptr;
  Limits limits;      // the model's, changed by options
  uint64_t seed = 0;  // 0: from the host's randomness
  Landing landing = Landing::kEarliest;
  std::string fabric;  // those of one name see each other in this process
  std::vector<std::string> addresses;  // the i-th device's; empty: any
  uint64_t devices = 1;
  // Connections come up on the devices in turn, whatever their addresses, as
  // those of a bond may.
  bool spread = false;
  bool hidden = false;  // GetDeviceList finds none
  bool other_processes =
      false;               // reachable from, and reaching, other processes
  bool rkey_zero = false;  // the first remote key is 0
  bool create_ex = true;   // as far as the model has it
  bool odp = false;        // registrations on demand
  bool populate = false;   // other registrations fault their pages in
  InlineGrant inline_grant = InlineGrant::kModel;
  int inline_errno = 22;         // EINVAL; what too much inline data answers
  uint64_t max_queue_bytes = 0;  // of a send queue, 0: no limit (ENOMEM)
  uint64_t memlock = 0;          // bytes a device may pin, 0: no limit
  Costs costs;                   // on the host's clock
  uint64_t cm_delay_ns = 0;      // a message of the connection manager
  uint64_t cm_timeout_ns = 2'000'000'000;  // a connect or disconnect unanswered
  std::vector<Fault> faults;
};

// Parses "MODEL[,NAME=VALUE]...". The names are those in config.cc; numbers
// take K, M, G (1024), times ns, us, ms, s. "faults=" takes entries separated
// by ';', or @FILE. Errors: OPTION, naming the word and what is allowed.
absl::StatusOr<Config> ParseConfig(absl::string_view text);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_CONFIG_H_
