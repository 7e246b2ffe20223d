// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>

#include "cli/commands.h"
#include "cli/destination_host.h"
#include "cli/host_setup.h"
#include "cli/report_pipe.h"

namespace mig::sim {

ExitCode DestinationCommand(const RawOptions& raw) {
  absl::StatusOr<std::unique_ptr<DestinationHost>> host =
      DestinationHost::Create(raw);
  if (!host.ok()) {
    Console("destination", raw.quiet, MIG_LOG_WARNING)
        .Say(host.status().message());
    return kExitUsage;
  }
  if (raw.report_fd >= 0) {
    (*host)->set_on_address([&raw](const std::string& address) {
      SendReportLine(raw.report_fd,
                     DumpJson(Json{{"address", address}}, false));
    });
  }
  const ExitCode code = (*host)->Serve();
  if (code == kExitUsage) return code;
  const Json& json = (*host)->json();
  if (raw.report_fd >= 0) SendReportLine(raw.report_fd, DumpJson(json, false));
  if (raw.json) {
    PrintToStdout(DumpJson(json, true));
  } else if (raw.report_fd < 0) {
    PrintToStdout((*host)->table());
  }
  return code;
}

}  // namespace mig::sim
