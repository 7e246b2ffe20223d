// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_MIG_STATUS_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_MIG_STATUS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mig_transport.h"

namespace mig::sim {

// An empty error struct, ready to be passed to an op.
mig_error NewError();

// The name of `code` as the ABI header spells it, without "MIG_": "E_RANGE".
// A code of a later ABI reads "E_<category>/<number>". Any thread.
std::string MigStatusName(int32_t code);

// The name of an event's type: "ROUND_DONE", or "event ?". Lives for ever.
const char* MigEventName(uint32_t type);

// Turns what an op answered into a Status. MIG_OK and positive answers are OK.
// The message is `doing` if there is one, the plugin's own words, the code and
// the system's and the provider's number; the canonical code follows the
// category (rule 5), so that codes of later ABIs are told apart as well.
absl::Status MigToStatus(int32_t code, const mig_error& error,
                         absl::string_view doing);

// The plugin's code inside a Status made by MigToStatus, MIG_OK if it has none.
int32_t MigCodeOf(const absl::Status& status);

// `status` with `context` put before its message and its payloads kept.
absl::Status WithContext(const absl::Status& status, absl::string_view context);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_MIG_STATUS_H_
