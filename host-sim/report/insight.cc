// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/insight.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mig::sim {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kIndent = 13;

// A label and what belongs to it, wrapped between two items.
void AppendItems(absl::string_view label, const std::vector<std::string>& items,
                 std::string* text) {
  if (items.empty()) return;
  std::string line = absl::StrFormat("  %-11s", label);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string item =
        absl::StrCat(items[i], i + 1 < items.size() ? "," : "");
    if (line.size() > kIndent && line.size() + item.size() + 1 > kColumns) {
      absl::StrAppend(text, line, "\n");
      line.assign(kIndent, ' ');
    }
    absl::StrAppend(&line, line.size() > kIndent ? " " : "", item);
  }
  absl::StrAppend(text, line, "\n");
}

std::vector<std::string> CapsItems(const Json& caps) {
  std::vector<std::string> items;
  for (const Json& each : caps.value("details", Json::array())) {
    const std::string unit = each.value("unit", "");
    const uint64_t asked = each.value("asked", uint64_t{0});
    const uint64_t granted = each.value("granted", uint64_t{0});
    const uint64_t agreed = each.value("negotiated", uint64_t{0});
    std::string item =
        absl::StrCat(each.value("name", ""), " ", AmountText(granted, unit));
    if (asked != granted) {
      absl::StrAppend(&item, " (asked ", AmountText(asked, unit), ")");
    }
    if (agreed != granted) {
      absl::StrAppend(&item, " (agreed ", AmountText(agreed, unit), ")");
    }
    items.push_back(item);
  }
  return items;
}

// Totals and momentary values, the largest values, and what made the host
// wait: by convention the last have "stalls" in their name.
struct CounterItems {
  std::vector<std::string> counts, peaks, stalls;
};

CounterItems SortCounters(const std::vector<mig_counter>& table,
                          const Json& values) {
  CounterItems items;
  for (const mig_counter& each : table) {
    const uint64_t value = values.value(each.name, uint64_t{0});
    if (value == 0) continue;
    const std::string item =
        absl::StrCat(each.name, " ", AmountText(value, each.unit));
    if (absl::StrContains(each.name, "stalls")) {
      items.stalls.push_back(item);
    } else if (each.kind == MIG_COUNTER_PEAK) {
      items.peaks.push_back(item);
    } else {
      items.counts.push_back(item);
    }
  }
  return items;
}

void AppendSide(absl::string_view side, const std::vector<mig_counter>& table,
                const Json& report, const std::vector<std::string>& caps,
                std::string* text) {
  const CounterItems items =
      SortCounters(table, report.value("counters", Json::object()));
  if (caps.empty() && items.counts.empty()) return;
  absl::StrAppend(text, "  the transport at the ", side, "\n");
  AppendItems("  caps", caps, text);
  AppendItems("  counts", items.counts, text);
  AppendItems("  peaks", items.peaks, text);
  AppendItems("  stalls", items.stalls, text);
}

}  // namespace

std::string AmountText(uint64_t value, const std::string& unit) {
  const auto number = static_cast<double>(value);
  if (unit == "B") {
    if (value >= 10 << 20) return absl::StrFormat("%.0f MiB", number / 1048576);
    if (value >= 10 << 10) return absl::StrFormat("%.0f KiB", number / 1024);
    return absl::StrCat(value, " B");
  }
  if (unit == "ns") {
    if (value >= 10'000'000'000) return absl::StrFormat("%.0f s", number / 1e9);
    if (value >= 10'000'000) return absl::StrFormat("%.0f ms", number / 1e6);
    return absl::StrFormat("%.0f us", number / 1e3);
  }
  if (unit == "1" || unit.empty()) return absl::StrCat(value);
  return absl::StrCat(value, " ", unit);
}

std::string RttText(const Json& rtt) {
  if (rtt.value("count", 0) == 0) return "none";
  return absl::StrFormat("p50 %.1f us, p99 %.1f us (%d)",
                         rtt.value("p50_us", 0.0), rtt.value("p99_us", 0.0),
                         rtt.value("count", 0));
}

std::string InsightText(const std::vector<mig_counter>& table,
                        const Json& report) {
  std::string text;
  if (const auto rtt = report.find("control_rtt"); rtt != report.end()) {
    absl::StrAppend(&text, "  control    round trips: before round 1 ",
                    RttText(rtt->at("idle")), "; in rounds ",
                    RttText(rtt->at("rounds")), "\n");
  }
  const std::vector<std::string> caps =
      CapsItems(report.value("caps", Json::object()));
  const std::string side = report.value("side", "");
  AppendSide(side == "both" ? "source" : side, table, report, caps, &text);
  if (const auto there = report.find("destination"); there != report.end()) {
    std::vector<std::string> theirs =
        CapsItems(there->value("caps", Json::object()));
    if (theirs == caps && !caps.empty()) theirs = {"as at the source"};
    AppendSide("destination", table, *there, theirs, &text);
  }
  return text;
}

}  // namespace mig::sim
