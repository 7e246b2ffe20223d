// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_json.h"

#include "absl/strings/str_cat.h"
#include "engine/control_rtt.h"
#include "engine/convergence.h"
#include "engine/mig_status.h"
#include "report/plugin_json.h"

namespace mig::sim {
namespace {

// Whole microseconds: more digits would be noise.
double Ms(uint64_t ns) {
  const uint64_t us = ns / 1000;
  return static_cast<double>(us) / 1000;
}

double MiBPerSecond(uint64_t bytes, uint64_t ns) {
  return RatePerSecond(bytes, ns) / (1 << 20);
}

Json ErrorJson(const absl::Status& status, Phase phase) {
  Json json;
  json["phase"] = std::string(PhaseName(phase));
  json["code"] = MigStatusName(MigCodeOf(status));
  json["message"] = std::string(status.message());
  return json;
}

Json RoundJson(const RoundReport& round) {
  Json json;
  json["number"] = round.number;
  json["pages"] = round.pages;
  json["zero_pages"] = round.zero_pages;
  json["bytes"] = round.bytes;
  json["ms"] = Ms(round.duration_ns);
  json["mib_s"] = MiBPerSecond(round.bytes, round.duration_ns);
  json["dirty_pages"] = round.dirty_pages;
  json["dirty_mib_s"] = MiBPerSecond(round.dirty_bytes, round.duration_ns);
  json["throttle_percent"] = round.throttle_percent;
  json["final"] = round.final;
  return json;
}

Json CapsJson(const CapsReport& caps) {
  Json json;
  json["max_message"] = caps.max_message;
  json["peer_timeout_ms"] = Ms(caps.peer_timeout_ns);
  json["pins_memory"] = caps.pins_memory;
  json["extensions"] = caps.extensions;
  json["details"] = Json::array();
  for (const CapsReport::Detail& each : caps.details) {
    Json detail;
    detail["name"] = each.name;
    detail["unit"] = each.unit;
    detail["asked"] = each.asked;
    detail["granted"] = each.granted;
    detail["negotiated"] = each.negotiated;
    detail["text"] = each.text;
    json["details"].push_back(detail);
  }
  return json;
}

Json CountersJson(const Counters& counters) {
  Json json = Json::object();
  for (const auto& [name, value] : counters) json[name] = value;
  return json;
}

// Which plugin it was, and how it was set: of its options those that are not
// as they are by default. The plugin hides what is secret.
Json NamePlugin(const PluginContext& context) {
  Json json;
  json["plugin"] = context.ops().name;
  json["plugin_version"] = context.ops().version;
  json["plugin_path"] = context.plugin().path();
  json["plugin_options"] = Json::object();
  for (const Json& each : OptionsJson(context)) {
    const std::string value = each.at("value").get<std::string>();
    if (each.at("secret") ? value == "(set)" : value != each.at("default")) {
      json["plugin_options"][each.at("name").get<std::string>()] = value;
    }
  }
  return json;
}

// Microseconds with a digit: a round trip may be a few of them.
double Us(uint64_t ns) {
  const uint64_t tenths = ns / 100;
  return static_cast<double>(tenths) / 10;
}

Json RttJson(const std::vector<uint64_t>& samples) {
  Json json;
  json["count"] = samples.size();
  if (samples.empty()) return json;
  json["p50_us"] = Us(*Percentile(samples, 50));
  json["p99_us"] = Us(*Percentile(samples, 99));
  return json;
}

Json RunOnJson(const RunOnReport& run_on) {
  Json json;
  json["side"] = run_on.side;
  json["ran_ms"] = Ms(run_on.ran_ns);
  json["steps"] = run_on.steps;
  json["work"] = run_on.work;
  json["good"] = run_on.check.ok();
  if (!run_on.check.ok()) {
    json["problem"] = std::string(run_on.check.message());
  }
  return json;
}

Json DowntimeJson(const Downtime& downtime) {
  Json json;
  json["stop_ms"] = Ms(downtime.stop);
  json["last_round_ms"] = Ms(downtime.last_round);
  json["state_ms"] = Ms(downtime.state);
  json["resume_ms"] = Ms(downtime.resume);
  json["measured"] = downtime.one_clock ? "both-sides" : "source-only";
  return json;
}

}  // namespace

const char* SourceEndName(SourceEnd end) {
  switch (end) {
    case SourceEnd::kMigrated:
      return "migrated";
    case SourceEnd::kGaveUp:
      return "gave-up";
    case SourceEnd::kInDoubt:
      return "in-doubt";
    case SourceEnd::kFailed:
      break;
  }
  return "failed";
}

bool IsVerified(const SourceReport& report) {
  return report.end == SourceEnd::kMigrated && report.result.has_value() &&
         report.result->outcome == VerifyOutcome::kVerified;
}

std::string UnverifiedReason(const SourceReport& report) {
  if (IsVerified(report)) return "";
  if (report.end != SourceEnd::kMigrated) return "the guest was not migrated";
  if (report.result.has_value()) return report.result->text;
  return std::string(report.digest_status.message());
}

Json SourceJson(const PluginContext& context, const SourceReport& report,
                const RunOnReport* run_on) {
  const Downtime downtime = MeasureDowntime(report);
  const uint64_t bytes = BytesSent(report);
  uint64_t round_ns = 0;
  Json json = NamePlugin(context);
  json["side"] = "source";
  json["outcome"] = SourceEndName(report.end);
  if (!report.status.ok()) {
    json["error"] = ErrorJson(report.status, report.phase);
    if (!report.peer_reason.empty()) {
      json["error"]["peer_reason"] = report.peer_reason;
    }
  }
  json["verified"] = IsVerified(report);
  if (!IsVerified(report)) json["unverified"] = UnverifiedReason(report);
  json["total_ms"] = Ms(MigrationNs(report));
  json["downtime_ms"] = Ms(downtime.total);
  json["downtime"] = DowntimeJson(downtime);
  json["expected_downtime_ms"] = Ms(report.expected_downtime_ns);
  json["verify_ms"] =
      Ms(report.result.has_value() ? report.result->verify_ns : 0);
  json["rounds"] = Json::array();
  for (const RoundReport& round : report.rounds) {
    json["rounds"].push_back(RoundJson(round));
    round_ns += round.duration_ns;
  }
  json["bytes"] = bytes;
  json["state_bytes"] = report.state_bytes;
  json["throughput_mib_s"] = MiBPerSecond(bytes, round_ns);
  json["throttle_percent"] = report.throttle_percent;
  json["forced_stop"] = report.forced_stop;
  json["control_rtt"]["idle"] = RttJson(report.rtt.idle);
  json["control_rtt"]["rounds"] = RttJson(report.rtt.rounds);
  json["caps"] = CapsJson(report.caps);
  json["counters"] = CountersJson(report.counters);
  if (run_on != nullptr) json["guest"] = RunOnJson(*run_on);
  return json;
}

Json DestinationJson(const PluginContext& context,
                     const DestinationReport& report,
                     const RunOnReport* run_on) {
  Json json = NamePlugin(context);
  json["side"] = "destination";
  json["outcome"] =
      report.end == DestinationEnd::kTaken ? "migrated" : "failed";
  if (!report.status.ok()) {
    json["error"] = ErrorJson(report.status, report.phase);
  }
  const bool verified = report.end == DestinationEnd::kTaken &&
                        report.result.outcome == VerifyOutcome::kVerified &&
                        (run_on == nullptr || run_on->check.ok());
  json["verified"] = verified;
  if (!verified) json["unverified"] = report.result.text;
  json["address"] = report.address;
  json["rounds"] = report.rounds;
  json["state_bytes"] = report.state_bytes;
  json["load_ms"] = Ms(report.load_ns);
  json["verify_ms"] = Ms(report.result.verify_ns);
  if (report.guest.has_value()) json["workload"] = report.guest->workload;
  json["caps"] = CapsJson(report.caps);
  json["counters"] = CountersJson(report.counters);
  if (run_on != nullptr) json["guest"] = RunOnJson(*run_on);
  return json;
}

std::string DumpJson(const Json& json, bool pretty) {
  return absl::StrCat(
      json.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace),
      "\n");
}

}  // namespace mig::sim
