// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_DESTINATION_HOST_H_
#define MIGTRANSPORT_HOST_SIM_CLI_DESTINATION_HOST_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/exit_code.h"
#include "cli/settings.h"
#include "engine/destination_engine.h"
#include "engine/plugin_host.h"
#include "engine/sim_guest.h"
#include "guest/guest_memory.h"
#include "report/console.h"
#include "report/report_json.h"

namespace mig::sim {

// The destination's host: waits for one guest, makes the memory that the source
// describes, takes the guest and lets it run on. One thread.
class DestinationHost {
 public:
  // Reads the options and loads the plugin. Any error is one of what was given.
  static absl::StatusOr<std::unique_ptr<DestinationHost>> Create(
      const RawOptions& raw);

  // Called with the address once it listens, instead of saying it.
  void set_on_address(std::function<void(const std::string&)> on_address) {
    on_address_ = std::move(on_address);
  }

  // Serves one migration to its end, lets the guest run on, and answers the
  // exit code. kExitUsage: all is said, there is no report.
  ExitCode Serve();

  const DestinationReport& report() const { return report_; }
  const Json& json() const { return json_; }
  // What a person reads at the end; empty if there is no guest.
  std::string table() const;

 private:
  DestinationHost(CommonSettings common, MigrationSettings migration,
                  DestinationSettings settings)
      : common_(std::move(common)),
        migration_(std::move(migration)),
        settings_(std::move(settings)),
        console_("destination", common_.quiet, common_.log_level) {}

  DestinationEngine::Hooks Hooks();
  absl::Status MakeMemory(const std::vector<BlockSpec>& specs);
  absl::StatusOr<DestinationGuest> MakeGuest(const GuestMessage& message);
  ExitCode Finish();

  const CommonSettings common_;
  MigrationSettings migration_;
  const DestinationSettings settings_;
  Console console_;
  std::function<void(const std::string&)> on_address_;
  std::unique_ptr<PluginContext> context_;
  std::unique_ptr<GuestMemory> memory_;
  std::unique_ptr<SimGuest> guest_;
  Session* session_ = nullptr;  // while it is served
  uint64_t next_progress_ns_ = 0;
  DestinationReport report_;
  Json json_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_DESTINATION_HOST_H_
