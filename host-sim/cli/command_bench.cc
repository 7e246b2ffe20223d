// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "fabric/reproduce.h"
#include "guest/parse.h"
#include "report/report_json.h"

namespace mig::sim {
namespace {

constexpr uint64_t kLeastMemory = uint64_t{64} << 20;
constexpr uint64_t kMostMemory = uint64_t{16} << 40;

absl::StatusOr<fabric::ReproduceSettings> ReadSettings(const RawBench& raw) {
  fabric::ReproduceSettings settings;
  if (raw.reproduce != "inflight") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--reproduce '", raw.reproduce, "' is unknown: use inflight"));
  }
  const auto profile = fabric::FindProfile(raw.profile);
  if (!profile.ok()) return profile.status();
  settings.profile = *profile;
  for (const std::string& change : raw.changes) {
    if (absl::StrContains(change, ',') || !absl::StrContains(change, '=')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set '", change,
                       "': give one NAME=VALUE of those that "
                       "--show-profile lists"));
    }
  }
  settings.changes = raw.changes;
  const auto memory = ParseSize("--memory", raw.memory);
  if (!memory.ok()) return memory.status();
  if (*memory < kLeastMemory || *memory > kMostMemory || *memory % 4096 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory ", raw.memory,
                     " is not allowed: give 64M to 16T, whole pages of 4K"));
  }
  settings.memory = *memory;
  return settings;
}

Json InflightJson(const fabric::InflightRow& row) {
  Json json;
  json["registration"] = row.way.dynamic ? "dynamic" : "pinned";
  json["writes_per_chunk"] = row.way.many ? "many" : "1";
  json["drain"] = row.way.drains_often ? "iterate" : "round";
  json["as_shipped"] = row.way.as_shipped;
  json["last_round_mib_s"] = row.result.rounds.back().MibPerSecond();
  json["downtime_ns"] = row.result.downtime_ns;
  json["setup_ns"] = row.result.setup_ns;
  json["total_ns"] = row.result.total_ns;
  json["rounds"] = row.result.rounds.size();
  if (row.published_mib != 0) {
    json["published_mib_s"] = row.published_mib;
    json["published_downtime_ms"] = row.published_downtime_ms;
  }
  return json;
}

Json ReproductionJson(const fabric::Profile& profile,
                      const fabric::Reproduction& reproduction) {
  Json json;
  json["profile"] = profile.name;
  for (const fabric::InflightRow& row : reproduction.inflight) {
    json["inflight"].push_back(InflightJson(row));
  }
  for (const fabric::ChunkRow& row : reproduction.chunks) {
    json["chunks"].push_back({{"chunk", row.chunk},
                              {"one_mb_s", row.one_mb},
                              {"many_mb_s", row.many_mb},
                              {"published_mb_s", row.published_mb}});
  }
  for (const fabric::RoundTripRow& row : reproduction.round_trips) {
    json["round_trips"].push_back({{"inline", row.is_inline},
                                   {"polling_us", row.polling_us},
                                   {"sleeping_us", row.sleeping_us}});
  }
  return json;
}

}  // namespace

ExitCode BenchCommand(const RawBench& raw) {
  Console console("", raw.quiet, MIG_LOG_WARNING);
  const auto settings = ReadSettings(raw);
  if (!settings.ok()) {
    console.Say(settings.status().message());
    return kExitUsage;
  }
  if (raw.show_profile) {
    PrintToStdout(fabric::ProfileText(*settings->profile));
    return kExitOk;
  }
  const auto plugin = Plugin::Open(raw.plugin);
  if (!plugin.ok()) {
    console.Say(plugin.status().message());
    return kExitUsage;
  }
  if (absl::string_view((*plugin)->ops().name) != "rdma") {
    console.Say(absl::StrCat("plugin '", (*plugin)->ops().name,
                             "' has no modelled network: use rdma"));
    return kExitUsage;
  }
  const auto done = fabric::ReproduceInflight(*plugin, *settings,
                                              [&](const std::string& line) {
                                                if (console.shows_progress())
                                                  console.Progress(line);
                                              });
  if (!done.ok()) {
    console.Say(done.status().message());
    return kExitFailed;
  }
  PrintToStdout(
      raw.json ? absl::StrCat(
                     ReproductionJson(*settings->profile, *done).dump(2), "\n")
               : fabric::ReproductionText(*settings->profile, *done));
  return kExitOk;
}

}  // namespace mig::sim
