// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run_parts.h"

#include <unistd.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/destination_host.h"
#include "cli/host_setup.h"
#include "report/insight.h"

namespace mig::sim {

namespace {

// How the guest did, and a word against "verified".
void AppendGuest(const Json& merged, std::string* table) {
  if (const auto guest = merged.find("guest"); guest != merged.end()) {
    absl::StrAppendFormat(
        table, "  guest      ran on at the %s: %u steps in %.0f ms, %s; %s\n",
        guest->value("side", ""), guest->value("steps", uint64_t{0}),
        guest->value("ran_ms", 0.0),
        guest->value("good", false) ? "right" : "WRONG",
        guest->value("work", ""));
  }
  if (!merged.value("verified", false)) {
    absl::StrAppend(table, "  NOT verified: ", merged.value("unverified", ""),
                    "\n");
  }
}

}  // namespace

std::string LocalUri(const Plugin& plugin) {
  const std::vector<std::string> schemes =
      absl::StrSplit(plugin.ops().uri_schemes, ',');
  // The example plugin's places are names inside one process.
  if (schemes.front() == "example") return absl::StrCat("example:", getpid());
  return absl::StrCat(schemes.front(), "://127.0.0.1:0");
}

Json MergeReports(const Json& source, const std::optional<Json>& destination) {
  Json json = source;
  json["side"] = "both";
  if (!destination.has_value()) {
    if (json["outcome"] == "migrated") {
      json["verified"] = false;
      json["unverified"] = "the destination did not report";
    }
    return json;
  }
  const bool verified = destination->value("verified", false);
  if (json.value("verified", false) && !verified) {
    json["verified"] = false;
    json["unverified"] = destination->value("unverified", "");
  }
  if (!json.contains("guest") && destination->contains("guest")) {
    json["guest"] = destination->at("guest");
  }
  json["destination"] = *destination;
  return json;
}

std::string WholeTable(const SourceHost& source, const Json& merged) {
  std::string table = source.table();
  const bool migrated = merged.value("outcome", "") == "migrated";
  if (migrated) AppendGuest(merged, &table);
  absl::StrAppend(&table, InsightText(source.plugin().counters(), merged));
  return table;
}

ExitCode RunInOneProcess(const RawOptions& raw, SourceHost* source) {
  RawOptions there = raw;
  there.quiet = true;
  there.memory.clear();  // learnt from the source
  there.pause_at = "";
  absl::StatusOr<std::unique_ptr<DestinationHost>> destination =
      DestinationHost::Create(there);
  if (!destination.ok()) {
    Console("", raw.quiet, MIG_LOG_WARNING).Say(destination.status().message());
    return kExitUsage;
  }
  std::promise<std::string> listening;
  (*destination)->set_on_address([&listening](const std::string& address) {
    listening.set_value(address);
  });
  ExitCode there_code = kExitFailed;
  std::thread thread([&] {
    there_code = (*destination)->Serve();
    if ((*destination)->report().address.empty()) listening.set_value("");
  });
  const std::string address = listening.get_future().get();
  if (address.empty()) {
    thread.join();
    return there_code;
  }
  source->set_uri(address);
  absl::Status status = source->Migrate();
  ExitCode code = kExitFailed;
  if (status.ok()) {
    code = source->Finish();
  } else {
    Console("", raw.quiet, MIG_LOG_WARNING).Say(status.message());
  }
  thread.join();
  if (!status.ok()) return code;
  if (code == kExitOk && there_code != kExitOk) code = kExitUnverified;
  const Json json = MergeReports(source->json(), (*destination)->json());
  PrintToStdout(raw.json ? DumpJson(json, true) : WholeTable(*source, json));
  return code;
}

}  // namespace mig::sim
