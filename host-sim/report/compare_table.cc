// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/compare_table.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/insight.h"

namespace mig::sim {
namespace {

constexpr char kNothing[] = "-";

// One line of the table: what a report has there. Reading may throw, since a
// file may hold anything; it is then kNothing.
struct Row {
  const char* label;
  std::function<std::string(const Json&)> cell;
};

std::function<std::string(const Json&)> Ms(const char* pointer) {
  return [at = Json::json_pointer(pointer)](const Json& report) {
    return absl::StrFormat("%.2f ms", report.at(at).get<double>());
  };
}

std::function<std::string(const Json&)> Text(const char* pointer) {
  return [at = Json::json_pointer(pointer)](const Json& report) {
    return report.at(at).get<std::string>();
  };
}

std::function<std::string(const Json&)> SumOverRounds(const char* key) {
  return [key](const Json& report) {
    uint64_t sum = 0;
    for (const Json& each : report.at("rounds")) {
      sum += each.at(key).get<uint64_t>();
    }
    return absl::StrCat(sum);
  };
}

std::function<std::string(const Json&)> Rtt(const char* when,
                                            const char* which) {
  return [when, which](const Json& report) {
    return absl::StrFormat(
        "%.1f us", report.at("control_rtt").at(when).at(which).get<double>());
  };
}

std::string OptionsCell(const Json& report) {
  std::string text;
  for (const auto& [name, value] : report.at("plugin_options").items()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=",
                    value.get<std::string>());
  }
  return text;
}

std::string LastRoundCell(const Json& report) {
  const Json& last = report.at("rounds").back();
  if (!last.at("final").get<bool>()) return kNothing;
  return absl::StrFormat("%.1f MiB/s", last.at("mib_s").get<double>());
}

std::string GuestCell(const Json& report) {
  const Json& guest = report.at("guest");
  return absl::StrFormat("%s, at the %s",
                         guest.at("good").get<bool>() ? "right" : "WRONG",
                         guest.at("side").get<std::string>());
}

std::vector<Row> Rows() {
  return {
      {"plugin",
       [](const Json& report) {
         return absl::StrCat(report.at("plugin").get<std::string>(), " ",
                             report.at("plugin_version").get<std::string>());
       }},
      {"options", OptionsCell},
      {"outcome", Text("/outcome")},
      {"total", Ms("/total_ms")},
      {"downtime", Ms("/downtime_ms")},
      {"  stop", Ms("/downtime/stop_ms")},
      {"  last round", Ms("/downtime/last_round_ms")},
      {"  state", Ms("/downtime/state_ms")},
      {"  resume", Ms("/downtime/resume_ms")},
      {"rounds",
       [](const Json& report) {
         return absl::StrCat(report.at("rounds").size());
       }},
      {"pages", SumOverRounds("pages")},
      {"  of them zero", SumOverRounds("zero_pages")},
      {"last round", LastRoundCell},
      {"control RTT p50", Rtt("idle", "p50_us")},
      {"            p99", Rtt("idle", "p99_us")},
      {"  in rounds p50", Rtt("rounds", "p50_us")},
      {"            p99", Rtt("rounds", "p99_us")},
      {"verified",
       [](const Json& report) {
         return report.at("verified").get<bool>() ? "yes" : "NO";
       }},
      {"guest", GuestCell},
  };
}

std::string Cell(const Row& row, const Json& report) {
  try {
    const std::string cell = row.cell(report);
    return cell.empty() ? kNothing : cell;
  } catch (const Json::exception&) {
    return kNothing;
  }
}

std::string TextAt(const Json& report, const char* pointer) {
  try {
    return Text(pointer)(report);
  } catch (const Json::exception&) {
    return "";
  }
}

// What only fits into a line of its own.
void AppendWords(const std::string& name, const Json& report,
                 std::string* text) {
  for (const auto& [label, pointer] :
       {std::pair("guest", "/guest/work"),
        std::pair("failed", "/error/message"),
        std::pair("NOT verified", "/unverified")}) {
    const std::string word = TextAt(report, pointer);
    if (word.empty()) continue;
    absl::StrAppend(text, "  ", label, " over ", name, ": ", word, "\n");
  }
}

}  // namespace

std::string CompareTable(
    const std::vector<std::pair<std::string, Json>>& reports) {
  const std::vector<Row> rows = Rows();
  std::vector<size_t> widths;
  for (const auto& [name, report] : reports) {
    size_t width = name.size();
    for (const Row& row : rows) {
      width = std::max(width, Cell(row, report).size());
    }
    widths.push_back(width);
  }
  std::string text = absl::StrFormat("  %-17s", "");
  for (size_t i = 0; i < reports.size(); ++i) {
    absl::StrAppendFormat(&text, "  %*s", widths[i], reports[i].first);
  }
  absl::StrAppend(&text, "\n");
  for (const Row& row : rows) {
    absl::StrAppendFormat(&text, "  %-17s", row.label);
    for (size_t i = 0; i < reports.size(); ++i) {
      absl::StrAppendFormat(&text, "  %*s", widths[i],
                            Cell(row, reports[i].second));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [name, report] : reports) AppendWords(name, report, &text);
  return text;
}

}  // namespace mig::sim
