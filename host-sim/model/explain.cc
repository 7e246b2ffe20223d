// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/swarm.h"

namespace mig::model {
namespace {

// The rule of a verdict: what comes before its details.
std::string RuleOf(const absl::Status& verdict) {
  const std::string text(verdict.message());
  return text.substr(0, text.find(':'));
}

}  // namespace

std::string ExplainFailure(const std::shared_ptr<const sim::Plugin>& plugin,
                           Scenario scenario, const RunResult& result) {
  RunResult least = result;
  const std::string rule = RuleOf(result.verdict);
  for (size_t i = scenario.faults.size(); i-- > 0;) {
    Scenario fewer = scenario;
    fewer.faults.erase(fewer.faults.begin() + static_cast<std::ptrdiff_t>(i));
    const RunResult again = RunScenario(plugin, fewer);
    if (again.verdict.ok() || RuleOf(again.verdict) != rule) continue;
    scenario = std::move(fewer);
    least = again;
  }
  std::string text =
      absl::StrCat(scenario.plugin, " seed ", scenario.seed, ": ",
                   result.verdict.message(), "\n  with the faults:\n");
  if (scenario.faults.empty()) absl::StrAppend(&text, "    none\n");
  for (const Fault& fault : scenario.faults) {
    absl::StrAppend(&text, "    ", FaultText(fault), "\n");
  }
  absl::StrAppend(&text, "  the last of ", least.events,
                  " events, with those:\n");
  for (const std::string& line : least.last_lines) {
    absl::StrAppend(&text, "    ", line, "\n");
  }
  absl::StrAppend(&text, "  again: mig-host-sim model --plugin ",
                  scenario.plugin, " --seeds ", scenario.seed,
                  " --log events.txt\n");
  return text;
}

}  // namespace mig::model
