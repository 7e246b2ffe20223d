// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_PLUGIN_JSON_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_PLUGIN_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/plugin_host.h"
#include "report/report_json.h"

namespace mig::sim {

// What a plugin says about itself and what it finds here, as JSON: path,
// versions, sizes, schemes, licences, options, counters, devices. The context
// is asked for the options' values and the devices.
Json PluginJson(const PluginContext& context);
// The options alone: an array.
Json OptionsJson(const PluginContext& context);

// The same for a person.
std::string PluginText(const Json& plugin);
std::string OptionsText(const Json& options);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_PLUGIN_JSON_H_
