// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_SCENARIO_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_SCENARIO_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/event_log.h"
#include "model/memory.h"

namespace mig::model {

// What a host does that no peer expects, or that no host may do.
enum class HostFault : uint8_t {
  kNone,     // the device's or network's instead
  kPause,    // calls nothing for a while
  kCancel,   // cancel
  kClose,    // close, whatever is under way
  kKill,     // the process dies: context and session are gone
  kMisuse,   // a call that its state forbids
  kTwice,    // a page twice in a strict round; source
  kRefuse,   // does not take the guest that it is offered; destination
  kPeerKey,  // has another key than its peer
};

struct Fault {
  Actor side = Actor::kSource;
  HostFault host = HostFault::kNone;
  uint64_t at = 0;         // that host's step, counted from 1
  uint64_t length_ns = 0;  // of a pause
  std::string device;      // an entry of the plugin's own schedule
};
std::string FaultText(const Fault& fault);

// How a source drives its rounds, and a destination what comes.
struct Habits {
  uint64_t step_ns = 0;            // what a step takes, at most
  uint64_t write_interval_ns = 0;  // of the guest, on average
  uint64_t hot_pages = 0;          // that most writes go to
  uint64_t rounds = 0;             // at most, before the guest is stopped
  uint64_t few_pages = 0;          // dirty: few enough to stop it
  uint64_t run_pages = 1;          // of a range, at most
  uint64_t state_messages = 0;     // after the last round
  uint64_t message_bytes = 64;     // at most
  uint64_t hold_ns = 0;            // before a message is released, at most
  uint64_t load_ns = 0;            // loading the device state, without progress
  uint32_t batch = 1;              // ranges a write
  uint32_t zero_percent = 0;       // of writes
  uint32_t torn_percent = 0;       // that are caught half way
  uint32_t flush_percent = 0;      // after a write
  uint32_t leave_percent = 0;      // of rounds that end before all is sent
  uint32_t chat_percent = 0;       // of steps with a message in between
  bool in_order = true;            // pages by number, else any
  bool begins_early = false;       // the next round before ROUND_DONE
  bool finds_zero = false;
  bool strict = false;
  bool adds_before = false;  // blocks before connect and listen
  bool says_busy = false;    // of a long load
};

// All of one run, drawn from its seed.
struct Scenario {
  uint64_t seed = 0;
  std::string plugin;
  GuestShape guest;
  Habits habits;
  std::vector<std::pair<std::string, std::string>> source_options;
  std::vector<std::pair<std::string, std::string>> destination_options;
  std::vector<Fault> faults;
};

struct ScenarioLimits {
  uint64_t max_faults = 3;
  bool small = false;  // a migration of few steps, for a fault at every one
};

// Draws the scenario of `seed` for the plugin "rdma" or "tcp". The same seed
// gives the same scenario in every build of this version.
Scenario DrawScenario(uint64_t seed, absl::string_view plugin,
                      const ScenarioLimits& limits);

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_SCENARIO_H_
