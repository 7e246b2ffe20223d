// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_SOURCE_HOST_H_
#define MIGTRANSPORT_HOST_SIM_CLI_SOURCE_HOST_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "engine/plugin_host.h"
#include "engine/sim_guest.h"
#include "engine/source_engine.h"
#include "guest/dirty_tracker.h"
#include "guest/guest_memory.h"
#include "report/console.h"
#include "report/report_json.h"

namespace mig::sim {

// The source's host: a guest, its memory and tracker, and one migration of it.
// For `source` and `run`. One thread.
class SourceHost {
 public:
  // Reads the options and makes everything, the guest not running yet. Any
  // error is one of what was given.
  static absl::StatusOr<std::unique_ptr<SourceHost>> Create(
      const RawOptions& raw);

  const Plugin& plugin() const { return context_->plugin(); }
  void set_uri(std::string uri) { migration_.uri = std::move(uri); }

  // Lets the guest run and migrates it. An error means that nothing began.
  absl::Status Migrate();
  // Says what must be said, lets a guest that stayed here run on, and answers
  // the exit code. kExitUsage: all is said, there is no report.
  ExitCode Finish();

  const SourceReport& report() const { return report_; }
  const Json& json() const { return json_; }
  std::string table() const;

 private:
  SourceHost(CommonSettings common, MigrationSettings migration,
             SourceSettings settings)
      : common_(std::move(common)),
        migration_(std::move(migration)),
        settings_(std::move(settings)),
        console_("source", common_.quiet, common_.log_level) {}

  absl::Status Prepare();
  SourceOptions EngineOptions() const;
  SourceEngine::Hooks Hooks();
  void Explain();
  bool BadInput() const;

  const CommonSettings common_;
  MigrationSettings migration_;
  const SourceSettings settings_;
  Console console_;
  std::unique_ptr<PluginContext> context_;
  std::unique_ptr<GuestMemory> memory_;
  // The tracker is told of writes by the guest, which stops before it goes.
  std::unique_ptr<DirtyTracker> tracker_;
  std::unique_ptr<SimGuest> guest_;
  std::string tracker_why_;
  uint64_t next_progress_ns_ = 0;
  SourceReport report_;
  Json json_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_SOURCE_HOST_H_
