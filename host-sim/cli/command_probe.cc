// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// probe and options: what plugins are there, and what they say of themselves.
#include <dirent.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "report/plugin_json.h"

namespace mig::sim {
namespace {

// The plugins in `dir`, sorted; none if it can't be read.
std::vector<std::string> PluginsIn(const std::string& dir) {
  std::vector<std::string> paths;
  DIR* const open = opendir(dir.c_str());
  if (open == nullptr) return paths;
  // The stream is this thread's own.
  while (const dirent* entry =
             readdir(open)) {  // NOLINT(concurrency-mt-unsafe)
    if (absl::EndsWith(entry->d_name, ".so")) {
      paths.push_back(absl::StrCat(dir, "/", entry->d_name));
    }
  }
  closedir(open);
  std::sort(paths.begin(), paths.end());
  return paths;
}

ExitCode Fail(Console* console, const absl::Status& status, ExitCode code) {
  console->Say(status.message());
  return code;
}

ExitCode ProbeAll(const CommonSettings& common, Console* console) {
  Json all = Json::array();
  std::string text;
  const std::vector<std::string> dirs = PluginSearchDirs();
  for (const std::string& dir : dirs) {
    for (const std::string& path : PluginsIn(dir)) {
      CommonSettings one = common;
      one.plugin = path;
      absl::StatusOr<std::unique_ptr<PluginContext>> context =
          OpenPlugin(one, console);
      if (!context.ok()) {
        // One bad file must not hide the others.
        console->Say(context.status().message());
        continue;
      }
      all.push_back(PluginJson(**context));
      absl::StrAppend(&text, text.empty() ? "" : "\n", PluginText(all.back()));
    }
  }
  if (all.empty()) {
    console->Say(absl::StrCat("no plugin in ", absl::StrJoin(dirs, ", "),
                              ": give --plugin PATH, or set ",
                              MIG_LOADER_PATH_VARIABLE));
    return kExitFailed;
  }
  PrintToStdout(common.json ? DumpJson(Json{{"plugins", all}}, true) : text);
  return kExitOk;
}

}  // namespace

ExitCode ProbeCommand(const RawOptions& raw, bool plugin_given) {
  Console console("", raw.quiet, MIG_LOG_WARNING);
  absl::StatusOr<CommonSettings> common = ReadCommon(raw);
  if (!common.ok()) return Fail(&console, common.status(), kExitUsage);
  if (!plugin_given) return ProbeAll(*common, &console);
  absl::StatusOr<std::unique_ptr<PluginContext>> context =
      OpenPlugin(*common, &console);
  if (!context.ok()) return Fail(&console, context.status(), kExitUsage);
  const Json json = PluginJson(**context);
  PrintToStdout(common->json ? DumpJson(json, true) : PluginText(json));
  return kExitOk;
}

ExitCode OptionsCommand(const RawOptions& raw) {
  Console console("", raw.quiet, MIG_LOG_WARNING);
  absl::StatusOr<CommonSettings> common = ReadCommon(raw);
  if (!common.ok()) return Fail(&console, common.status(), kExitUsage);
  absl::StatusOr<std::unique_ptr<PluginContext>> context =
      OpenPlugin(*common, &console);
  if (!context.ok()) return Fail(&console, context.status(), kExitUsage);
  const Json options = OptionsJson(**context);
  if (common->json) {
    PrintToStdout(DumpJson(
        Json{{"plugin", (*context)->ops().name}, {"options", options}}, true));
  } else {
    PrintToStdout(absl::StrCat("options of ", (*context)->ops().name, ":\n",
                               OptionsText(options)));
  }
  return kExitOk;
}

}  // namespace mig::sim
