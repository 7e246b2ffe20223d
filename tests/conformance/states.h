// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Every state that a migration can be in, for tests of all of them.
#ifndef TESTS_CONFORMANCE_STATES_H_
#define TESTS_CONFORMANCE_STATES_H_

#include <string>

#include "pair.h"

namespace mig::conformance {

enum class State {
  kNew,
  kConnecting,  // listen and connect were called, nothing was driven
  kConnected,
  kExchanging,  // the source exchanges, the destination does not yet
  kReady,
  kInRound,     // with writes accepted
  kRoundEnded,  // ROUND_DONE is outstanding
  kRoundDone,
  kOffered,  // the destination has seen HANDOVER
  kTaken,    // the destination has the guest; the source does not know
  kFailed,   // the source was cancelled
  kClosing,  // the source closes, nothing was driven since
};

inline constexpr State kAllStates[] = {
    State::kNew,     State::kConnecting, State::kConnected,  State::kExchanging,
    State::kReady,   State::kInRound,    State::kRoundEnded, State::kRoundDone,
    State::kOffered, State::kTaken,      State::kFailed,     State::kClosing};

std::string StateName(State state);

// Brings a new pair there.
testing::AssertionResult Reach(Pair& pair, State state);

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_STATES_H_
