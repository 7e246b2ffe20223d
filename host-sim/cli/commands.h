// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_COMMANDS_H_
#define MIGTRANSPORT_HOST_SIM_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/settings.h"

namespace mig::sim {

// The commands of mig-host-sim. Each prints what it has to say and answers the
// process's exit code. On the main thread, once a process.

// One plugin, or every one that is found: what it is and can do here.
ExitCode ProbeCommand(const RawOptions& raw, bool plugin_given);
// The options of one plugin, with the values that hold.
ExitCode OptionsCommand(const RawOptions& raw);
// Sends a guest to a destination.
ExitCode SourceCommand(const RawOptions& raw);
// Waits for one guest and takes it.
ExitCode DestinationCommand(const RawOptions& raw);
// Both, in two processes on this machine.
ExitCode RunCommand(const RawOptions& raw);

// One table of several migrations' reports, read from files.
ExitCode CompareCommand(const std::vector<std::string>& paths);

// Whole migrations in this process, under a virtual clock, and the oracle's
// verdict.
ExitCode ModelCommand(const RawOptions& raw, const RawModel& raw_model);

// Published experiments again, on a modelled network.
ExitCode BenchCommand(const RawBench& raw);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_COMMANDS_H_
