// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <sys/prctl.h>

#include "cli/arguments.h"

int main(int argc, char** argv) {
  // The destination of `run` is started through /proc/self/exe, and would be
  // called "exe".
  prctl(PR_SET_NAME, "mig-host-sim");
  return mig::sim::RunCommandLine(argc, argv);
}
