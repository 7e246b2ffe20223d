// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_REPORT_JSON_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_REPORT_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/destination_engine.h"
#include "engine/plugin_host.h"
#include "engine/source_engine.h"
#include "report/downtime.h"

namespace mig::sim {

using Json = nlohmann::ordered_json;
using Counters = std::vector<std::pair<std::string, uint64_t>>;

// How the guest did after the migration, on the side that has it.
struct RunOnReport {
  std::string side;     // "source" or "destination"
  uint64_t ran_ns = 0;  // how long it went on
  uint64_t steps = 0;   // and how many steps
  std::string work;     // what it did since it was made
  absl::Status check;   // whether its memory is right afterwards
};

// The reports as JSON. Times are in milliseconds with a fraction, sizes in
// bytes, rates in MiB/s; docs are in the manual of mig-host-sim.
Json SourceJson(const PluginContext& context, const SourceReport& report,
                const RunOnReport* run_on);
Json DestinationJson(const PluginContext& context,
                     const DestinationReport& report,
                     const RunOnReport* run_on);

// "migrated", "failed", "gave-up" or "in-doubt". Static.
const char* SourceEndName(SourceEnd end);
// Whether the destination compared all memory and found it right.
bool IsVerified(const SourceReport& report);
// Why it is not verified; empty if it is.
std::string UnverifiedReason(const SourceReport& report);

// `json` on stdout, as one line's end needs it. UTF-8 that a peer broke is
// replaced.
std::string DumpJson(const Json& json, bool pretty);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_REPORT_JSON_H_
