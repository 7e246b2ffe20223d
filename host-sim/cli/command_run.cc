// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// run: this process is the source, a second one the destination.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "cli/run_parts.h"
#include "cli/source_host.h"

namespace mig::sim {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kStartLimitNs = 30 * kSecondNs;
// Longer than any transport's own limits: the child ends by itself before.
constexpr uint64_t kEndLimitNs = 60 * kSecondNs;
constexpr uint64_t kStepsLimitNs = 3600 * kSecondNs;
constexpr uint64_t kDoubtLimitNs = 2 * kSecondNs;

// What the destination is started with. Memory and workload it learns from the
// source.
std::vector<std::string> DestinationArguments(const RawOptions& raw) {
  std::vector<std::string> arguments = {"destination",
                                        raw.uri,
                                        "--quiet",
                                        "--plugin",
                                        raw.plugin,
                                        "--vm-uuid",
                                        raw.vm_uuid,
                                        "--attempt",
                                        raw.attempt,
                                        "--after",
                                        raw.after,
                                        "--peer-wait",
                                        raw.peer_wait,
                                        "--log-level",
                                        raw.log_level,
                                        "--run-log",
                                        raw.run_log,
                                        "--pause-at",
                                        raw.destination_pause_at,
                                        "--load-delay",
                                        raw.load_delay};
  if (!raw.say_busy) arguments.emplace_back("--no-host-busy");
  if (raw.prefault) arguments.emplace_back("--prefault");
  if (!raw.verify) arguments.emplace_back("--no-verify");
  for (const std::string& option : raw.plugin_options) {
    arguments.emplace_back("--plugin-option");
    arguments.push_back(option);
  }
  if (!raw.max_memory.empty()) {
    arguments.emplace_back("--max-memory");
    arguments.push_back(raw.max_memory);
  }
  return arguments;
}

uint64_t ChildLimitNs(const SourceHost& source, const RunLength& after) {
  if (source.report().end == SourceEnd::kInDoubt) return kDoubtLimitNs;
  if (source.report().end != SourceEnd::kMigrated) return kEndLimitNs;
  return after.is_time ? after.value + kEndLimitNs : kStepsLimitNs;
}

std::optional<Json> ParseReport(const std::optional<std::string>& line) {
  if (!line.has_value()) return std::nullopt;
  Json json = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

// Waits for the child, ends it if that is safe, and answers its report.
std::optional<Json> Collect(const SourceHost& source, const RunLength& after,
                            ChildProcess* child, Console* console) {
  const uint64_t limit = ChildLimitNs(source, after);
  std::optional<Json> report = ParseReport(child->reports().Line(limit));
  const std::optional<int> code =
      child->Wait(report.has_value() ? kEndLimitNs : kSecondNs);
  if (code.has_value()) return report;
  const SourceEnd end = source.report().end;
  if (end == SourceEnd::kFailed || end == SourceEnd::kGaveUp) {
    child->Kill();
  } else {
    console->Say(
        absl::StrCat("the destination does not answer; it was left "
                     "alone as process ",
                     child->pid(), ", since it may have the guest"));
  }
  return report;
}

}  // namespace

ExitCode RunCommand(const RawOptions& given) {
  RawOptions raw = given;
  Console console("", raw.quiet, MIG_LOG_WARNING);
  const auto fail = [&console](absl::string_view text, ExitCode code) {
    console.Say(text);
    return code;
  };
  absl::StatusOr<std::unique_ptr<SourceHost>> source = SourceHost::Create(raw);
  if (!source.ok()) return fail(source.status().message(), kExitUsage);
  if (raw.uri.empty()) raw.uri = LocalUri((*source)->plugin());
  if (raw.one_process) return RunInOneProcess(raw, source->get());
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(DestinationArguments(raw));
  if (!child.ok()) return fail(child.status().message(), kExitFailed);
  const std::optional<Json> listening =
      ParseReport((*child)->reports().Line(kStartLimitNs));
  if (!listening.has_value() || listening->value("address", "").empty()) {
    // It has said why.
    (*child)->Kill();
    return (*child)->Wait(0) == kExitUsage ? kExitUsage : kExitFailed;
  }
  (*source)->set_uri(listening->value("address", ""));
  absl::Status status = (*source)->Migrate();
  if (!status.ok()) {
    (*child)->Kill();
    return fail(status.message(), kExitFailed);
  }
  ExitCode code = (*source)->Finish();
  absl::StatusOr<RunLength> after = ParseRunLength("--after", raw.after);
  const std::optional<Json> report =
      Collect(**source, *after, child->get(), &console);
  const Json json = MergeReports((*source)->json(), report);
  if (code == kExitOk && (*child)->Wait(0) != kExitOk) code = kExitUnverified;
  PrintToStdout(raw.json ? DumpJson(json, true) : WholeTable(**source, json));
  return code;
}

}  // namespace mig::sim
