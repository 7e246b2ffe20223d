// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "report/compare_table.h"

namespace mig::sim {
namespace {

absl::StatusOr<Json> ReadReport(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' can't be read: give a file that 'run --json' wrote"));
  }
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("outcome")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path,
                     "' is no report of a migration: give a file that 'run "
                     "--json' wrote"));
  }
  return json;
}

}  // namespace

ExitCode CompareCommand(const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, Json>> reports;
  for (const std::string& path : paths) {
    absl::StatusOr<Json> report = ReadReport(path);
    if (!report.ok()) {
      Console("", false, MIG_LOG_WARNING).Say(report.status().message());
      return kExitUsage;
    }
    reports.emplace_back(std::filesystem::path(path).stem().string(),
                         *std::move(report));
  }
  PrintToStdout(CompareTable(reports));
  return kExitOk;
}

}  // namespace mig::sim
