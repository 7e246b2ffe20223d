// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "cli/source_host.h"
#include "report/insight.h"

namespace mig::sim {

ExitCode SourceCommand(const RawOptions& raw) {
  Console early("source", raw.quiet, MIG_LOG_WARNING);
  absl::StatusOr<std::unique_ptr<SourceHost>> host = SourceHost::Create(raw);
  if (!host.ok()) {
    early.Say(host.status().message());
    return kExitUsage;
  }
  absl::Status status = (*host)->Migrate();
  if (!status.ok()) {
    early.Say(status.message());
    return kExitFailed;
  }
  const ExitCode code = (*host)->Finish();
  if (code == kExitUsage) return code;
  const Json& json = (*host)->json();
  PrintToStdout(
      raw.json ? DumpJson(json, true)
               : absl::StrCat((*host)->table(),
                              InsightText((*host)->plugin().counters(), json)));
  return code;
}

}  // namespace mig::sim
