// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_CHILD_PROCESS_H_
#define MIGTRANSPORT_HOST_SIM_CLI_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/report_pipe.h"

namespace mig::sim {

// This program once more, in a process of its own, with a socket for reports.
class ChildProcess {
 public:
  // Runs this executable with `arguments` (argv without the first) and
  // `--report-fd 3` after them. Its stderr is ours, its stdout our stderr.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      std::vector<std::string> arguments);

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Leaves a child that still runs alone: it may have the guest.
  ~ChildProcess() = default;

  ReportReader& reports() { return reports_; }
  pid_t pid() const { return pid_; }
  // Its exit code (128 and the signal that ended it), or nothing if it still
  // runs after `limit_ns`.
  std::optional<int> Wait(uint64_t limit_ns);
  // Ends it by SIGKILL. Only when it is certain that it has no guest.
  void Kill();

 private:
  ChildProcess(pid_t pid, int fd) : pid_(pid), reports_(fd) {}

  const pid_t pid_;
  ReportReader reports_;
  std::optional<int> code_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_CHILD_PROCESS_H_
