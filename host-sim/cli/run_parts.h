// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What `run` with two processes and with one have in common.
#ifndef MIGTRANSPORT_HOST_SIM_CLI_RUN_PARTS_H_
#define MIGTRANSPORT_HOST_SIM_CLI_RUN_PARTS_H_

#include <optional>
#include <string>

#include "cli/exit_code.h"
#include "cli/settings.h"
#include "cli/source_host.h"
#include "engine/plugin_host.h"
#include "report/report_json.h"

namespace mig::sim {

// A place on this machine to listen at, for the first kind of URI that the
// plugin has.
std::string LocalUri(const Plugin& plugin);

// Both sides' reports as one: verified only if both say so.
Json MergeReports(const Json& source, const std::optional<Json>& destination);

// The source's table with what only the merged report knows: how the guest did
// where it runs now, and a destination's word against "verified".
// Then what both transports say about themselves.
std::string WholeTable(const SourceHost& source, const Json& merged);

// Both sides on two threads of this process, for plugins that reach no further.
// `source` is prepared; raw.uri is where to listen.
ExitCode RunInOneProcess(const RawOptions& raw, SourceHost* source);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_RUN_PARTS_H_
