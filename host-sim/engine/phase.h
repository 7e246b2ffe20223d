// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_PHASE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_PHASE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mig::sim {

// How far a migration is. Errors name it, and tests stop a side in it.
enum class Phase {
  kConnect,   // source: before connect; destination: it listens
  kExchange,  // connected; blocks are agreed on and prepared
  kRound1,    // the first round
  kRounds,    // a later round while the guest runs
  kStopped,   // source: the guest is stopped, its last round is not sent
  kState,     // the device state is sent; destination: its first piece came
  kHandover,  // source: it has offered; destination: it was offered
  kTaken,     // destination: it has the guest, and its peer may not know
  kVerify,    // committed; digests are compared
  kDone,
};

// "connect", "round1", ... as --pause-at has it. Static.
absl::string_view PhaseName(Phase phase);
// What a person is told: "connecting", "in round 1", ... Static.
absl::string_view PhaseText(Phase phase);
std::vector<std::string> PhaseNames();

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_PHASE_H_
