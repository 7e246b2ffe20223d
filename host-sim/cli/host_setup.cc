// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/host_setup.h"

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mig::sim {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int /*signal*/) { interrupted = true; }

}  // namespace

absl::StatusOr<std::unique_ptr<PluginContext>> OpenPlugin(
    const CommonSettings& settings, Console* console) {
  absl::StatusOr<std::shared_ptr<const Plugin>> plugin =
      Plugin::Open(settings.plugin);
  if (!plugin.ok()) return plugin.status();
  absl::StatusOr<std::unique_ptr<PluginContext>> context =
      PluginContext::Create(*plugin, console->Services());
  if (!context.ok()) return context.status();
  for (const auto& [name, value] : settings.plugin_options) {
    absl::Status status = (*context)->SetOption(name, value);
    if (!status.ok()) return status;
  }
  return context;
}

const std::atomic<bool>* InterruptFlag() {
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

RunOnReport RunOn(const char* side, SimGuest* guest, const RunLength& length) {
  RunOnReport report;
  report.side = side;
  const uint64_t steps_before = guest->steps();
  const uint64_t start = MonotonicNs();
  const auto enough = [&] {
    return length.is_time ? MonotonicNs() - start >= length.value
                          : guest->steps() - steps_before >= length.value;
  };
  while (!enough() && !guest->ended() && !interrupted) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  report.check = guest->Stop();
  report.ran_ns = MonotonicNs() - start;
  report.steps = guest->steps() - steps_before;
  report.work = guest->Work();
  if (report.check.ok()) report.check = guest->Check({});
  return report;
}

void MaybePause(std::optional<Phase>* pause_at, Phase phase, Console* console) {
  if (!pause_at->has_value() || **pause_at != phase) return;
  pause_at->reset();
  console->Say(absl::StrCat("paused at ", PhaseName(phase)));
  raise(SIGSTOP);
}

void PrintToStdout(absl::string_view text) {
  (void)fwrite(text.data(), 1, text.size(), stdout);
  (void)fflush(stdout);
}

}  // namespace mig::sim
