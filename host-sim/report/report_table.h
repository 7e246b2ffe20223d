// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_REPORT_TABLE_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_REPORT_TABLE_H_

#include <cstdint>
#include <string>

#include "engine/plugin_host.h"
#include "engine/session_driver.h"
#include "engine/source_engine.h"
#include "report/report_json.h"

namespace mig::sim {

// What a person reads at the end, several lines: how it went, the rounds, the
// downtime and its parts.
std::string SourceTable(const Plugin& plugin, const SourceReport& report);

// One line for the terminal while it runs.
std::string SourceProgressLine(const SourceProgress& progress, uint64_t now_ns);
std::string DestinationProgressLine(const SessionState& state, Phase phase,
                                    uint64_t bytes_received);

// How the guest goes on, in one line.
std::string RunOnLine(const RunOnReport& run_on);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_REPORT_TABLE_H_
