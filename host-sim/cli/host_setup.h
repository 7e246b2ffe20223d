// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_HOST_SETUP_H_
#define MIGTRANSPORT_HOST_SIM_CLI_HOST_SETUP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cli/settings.h"
#include "engine/phase.h"
#include "engine/plugin_host.h"
#include "engine/sim_guest.h"
#include "report/console.h"
#include "report/report_json.h"

namespace mig::sim {

// Loads the plugin of `settings`, makes a context that logs to `console` and
// sets the options. InvalidArgument if one of them is bad.
absl::StatusOr<std::unique_ptr<PluginContext>> OpenPlugin(
    const CommonSettings& settings, Console* console);

// True once SIGINT or SIGTERM came; from the first call on they no longer end
// the process by themselves.
const std::atomic<bool>* InterruptFlag();

// Lets the guest run on for `length`, or until it ends or the process is
// interrupted; then stops it and checks its memory.
RunOnReport RunOn(const char* side, SimGuest* guest, const RunLength& length);

// Stops this process in phase `pause_at`, once, after saying "paused at PHASE"
// (for tests). Does nothing in another phase.
void MaybePause(std::optional<Phase>* pause_at, Phase phase, Console* console);

// Writes all of `text` to stdout.
void PrintToStdout(absl::string_view text);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_HOST_SETUP_H_
