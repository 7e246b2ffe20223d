// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_EXIT_CODE_H_
#define MIGTRANSPORT_HOST_SIM_CLI_EXIT_CODE_H_

namespace mig::sim {

// What mig-host-sim ends with. Scripts rely on it: never renumber.
enum ExitCode : int {
  kExitOk = 0,          // migrated, and verified if that was asked for
  kExitFailed = 1,      // not migrated; the guest runs on at the source
  kExitUsage = 2,       // bad arguments: nothing was started
  kExitInDoubt = 3,     // nobody knows who has the guest; it runs on neither
                        // side by this side's doing
  kExitUnverified = 4,  // migrated, but memory or workload is not as it was, or
                        // that could not be found out
  kExitCancelled = 5,   // cancelled by a signal or given up by --converge; the
                        // guest runs on at the source
};

// The same as a text for --help.
inline constexpr char kExitCodeHelp[] =
    "Exit codes: 0 migrated (and verified); 1 failed, the guest runs on at the "
    "source; 2 bad arguments, nothing was started; 3 in doubt, see what is "
    "printed; 4 migrated but not verified; 5 cancelled or given up, the guest "
    "runs on at the source.";

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_EXIT_CODE_H_
