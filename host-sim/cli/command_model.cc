// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "cli/parse_values.h"
#include "model/every_fault.h"
#include "model/swarm.h"

namespace mig::sim {
namespace {

constexpr uint64_t kMaxSeed = uint64_t{1} << 56;

// "7" or "1-2000".
absl::Status ParseSeeds(const std::string& text, model::SwarmOptions* options) {
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  const auto first = ParseCount("--seeds", ends.first, 0, kMaxSeed);
  if (!first.ok()) return first.status();
  options->first_seed = options->last_seed = *first;
  if (ends.second.empty()) return absl::OkStatus();
  const auto last = ParseCount("--seeds", ends.second, *first, kMaxSeed);
  if (!last.ok()) return last.status();
  options->last_seed = *last;
  return absl::OkStatus();
}

absl::StatusOr<model::SwarmOptions> ReadOptions(const RawModel& raw) {
  model::SwarmOptions options;
  const absl::Status seeds = ParseSeeds(raw.seeds, &options);
  if (!seeds.ok()) return seeds;
  const auto jobs = ParseCount("--jobs", raw.jobs, 1, 256);
  if (!jobs.ok()) return jobs.status();
  options.jobs = static_cast<uint32_t>(*jobs);
  const auto faults = ParseCount("--max-faults", raw.max_faults, 0, 100);
  if (!faults.ok()) return faults.status();
  options.limits.max_faults = *faults;
  const auto failures = ParseCount("--max-failures", raw.max_failures, 1, 1000);
  if (!failures.ok()) return failures.status();
  options.most_failures = *failures;
  options.twice = raw.twice;
  return options;
}

std::string TotalsText(const model::SwarmTotals& totals) {
  using model::Outcome;
  const auto of = [&totals](Outcome outcome) {
    return totals.outcomes[static_cast<size_t>(outcome)];
  };
  return absl::StrFormat(
      "%d runs (%d with faults): %d committed, %d refused, %d failed, %d in "
      "doubt, %d without outcome; %d taken by the destination. %d steps, %d "
      "guest writes, %d pages compared, %.0f s of virtual time",
      totals.runs, totals.with_faults, of(Outcome::kCommitted),
      of(Outcome::kRefused), of(Outcome::kError), of(Outcome::kInDoubt),
      of(Outcome::kNone), totals.taken, totals.steps, totals.guest_writes,
      totals.pages_compared, static_cast<double>(totals.virtual_ns) / 1e9);
}

// One seed, with all that happens.
ExitCode LogOne(const std::shared_ptr<const Plugin>& plugin,
                const model::SwarmOptions& options, const std::string& path,
                Console* console) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "w"), std::fclose);
  if (file == nullptr) {
    console->Say(absl::StrCat("--log '", path,
                              "' can't be written: give a "
                              "file in a folder that exists"));
    return kExitUsage;
  }
  const model::Scenario scenario = model::DrawScenario(
      options.first_seed, plugin->ops().name, options.limits);
  for (const model::Fault& fault : scenario.faults) {
    console->Say(absl::StrCat("fault: ", model::FaultText(fault)));
  }
  const model::RunResult result =
      model::RunScenario(plugin, scenario, file.get());
  console->Say(absl::StrCat(
      model::OutcomeText(result), " after ", result.steps, " steps",
      result.source_why.empty() ? "" : "; source: ", result.source_why,
      result.destination_why.empty() ? "" : "; destination: ",
      result.destination_why));
  if (result.verdict.ok()) return kExitOk;
  PrintToStdout(absl::StrCat(result.verdict.message(), "\n"));
  return kExitFailed;
}

ExitCode Everywhere(const std::shared_ptr<const Plugin>& plugin,
                    const model::SwarmOptions& options, Console* console) {
  const model::EveryFaultResult result = model::RunEveryFault(
      plugin, options.first_seed,
      [console](const std::string& line) { console->Progress(line); });
  PrintToStdout(result.table);
  for (const std::string& failure : result.failures) PrintToStdout(failure);
  return result.failures.empty() ? kExitOk : kExitFailed;
}

}  // namespace

ExitCode ModelCommand(const RawOptions& raw, const RawModel& raw_model) {
  Console console("", raw.quiet, MIG_LOG_WARNING);
  const absl::StatusOr<model::SwarmOptions> options = ReadOptions(raw_model);
  if (!options.ok()) {
    console.Say(options.status().message());
    return kExitUsage;
  }
  const auto plugin = Plugin::Open(raw.plugin);
  if (!plugin.ok()) {
    console.Say(plugin.status().message());
    return kExitUsage;
  }
  const absl::string_view name = (*plugin)->ops().name;
  if (name != "rdma" && name != "tcp") {
    console.Say(absl::StrCat("plugin '", name,
                             "' has no network inside one "
                             "process to run the model on: use rdma or tcp"));
    return kExitUsage;
  }
  if (raw_model.every_fault) return Everywhere(*plugin, *options, &console);
  if (!raw_model.log.empty()) {
    return LogOne(*plugin, *options, raw_model.log, &console);
  }
  const auto swarm =
      model::RunSwarm(*plugin, *options, [&](const model::SwarmTotals& totals) {
        if (!console.shows_progress()) return;
        console.Progress(absl::StrCat(
            totals.runs, " of ", options->last_seed - options->first_seed + 1,
            " seeds"));
      });
  if (!swarm.ok()) {
    console.Say(swarm.status().message());
    return kExitFailed;
  }
  for (const model::SwarmFailure& failure : swarm->failures) {
    PrintToStdout(absl::StrCat("FAILED: ", failure.text));
  }
  PrintToStdout(absl::StrCat(name, ": ", TotalsText(swarm->totals), "\n"));
  return swarm->failures.empty() ? kExitOk : kExitFailed;
}

}  // namespace mig::sim
