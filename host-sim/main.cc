// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <sys/prctl.h>

#include "cli/arguments.h"

#if defined(__SANITIZE_THREAD__)
// Live migration reads pages while the guest writes them; whatever was torn is
// dirty and sent again. That race, and no other, is meant. The guest writes so
// much that tsan may have forgotten its side; then the sending one tells.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {
  return "race:Workload::Step\nrace:tcp::SocketStream::Write\n"
         "race:soft::PlaceBatch\n";
}
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_options() {
  return "history_size=7";
}
#endif

int main(int argc, char** argv) {
  // The destination of `run` is started through /proc/self/exe, and would be
  // called "exe".
  prctl(PR_SET_NAME, "mig-host-sim");
  return mig::sim::RunCommandLine(argc, argv);
}
