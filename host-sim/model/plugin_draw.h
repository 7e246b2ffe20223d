// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_PLUGIN_DRAW_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_PLUGIN_DRAW_H_

#include "absl/strings/string_view.h"
#include "model/draw.h"
#include "model/scenario.h"

namespace mig::model {

// The options of both sides' contexts, but for the fault schedule: what a
// plugin's own in-process device or network can be, and how it is used.
void DrawPluginOptions(Draw* draw, Scenario* scenario);

// One entry of the schedule of a plugin's device or network.
Fault DrawDeviceFault(Draw* draw, absl::string_view plugin);

// The options with which a run's contexts are made: the scenario's, with the
// faults that are in `enabled` (by index) in the device's own schedule.
// `network` is where both sides meet, and no other run of this process.
std::vector<std::pair<std::string, std::string>> ContextOptions(
    const Scenario& scenario, Actor side, absl::string_view network);

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_PLUGIN_DRAW_H_
