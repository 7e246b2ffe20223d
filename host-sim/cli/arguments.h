// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_ARGUMENTS_H_
#define MIGTRANSPORT_HOST_SIM_CLI_ARGUMENTS_H_

namespace mig::sim {

// Reads the command line, runs the command and answers the exit code. Errors
// are one line on stderr; --help goes to stdout.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_ARGUMENTS_H_
