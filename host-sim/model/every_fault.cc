// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/every_fault.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "model/run.h"
#include "model/scenario.h"
#include "model/swarm.h"

namespace mig::model {
namespace {

// A fault with its occasion left open: '#'.
struct Kind {
  HostFault host = HostFault::kNone;
  std::string device;
  uint64_t length_ns = 0;
};

constexpr uint64_t kLongNs = 30'000'000'000;

std::vector<Kind> HostKinds() {
  return {{HostFault::kCancel, "", 0},        {HostFault::kClose, "", 0},
          {HostFault::kKill, "", 0},          {HostFault::kMisuse, "", 0},
          {HostFault::kPause, "", 1'000'000}, {HostFault::kPause, "", kLongNs}};
}

std::vector<Kind> VerbsKinds() {
  std::vector<Kind> kinds;
  for (const char* call :
       {"AllocPd",           "CmAccept",       "CmBindAddr",
        "CmConnect",         "CmCreateId",     "CmCreateEventChannel",
        "CmCreateQp",        "CmCreateQpEx",   "CmDisconnect",
        "CmEstablish",       "CmInitQpAttr",   "CmListen",
        "CmResolveAddr",     "CmResolveRoute", "CmSetOption",
        "CreateCompChannel", "CreateCq",       "CreateQp",
        "CreateQpEx",        "ModifyQp",       "QueryDevice",
        "QueryDeviceEx",     "QueryPort",      "QueryQp",
        "OpenDevice",        "RegMr",          "DeregMr"}) {
    kinds.push_back(
        {HostFault::kNone, absl::StrCat("call ", call, " # EIO"), 0});
    kinds.push_back({HostFault::kNone,
                     absl::StrCat("call ", call, " # ENOMEM minus-one"), 0});
  }
  for (const char* entry : {"post # EINVAL",
                            "post # ENOMEM minus-one",
                            "wc # LOC_PROT_ERR",
                            "wc # REM_ACCESS_ERR",
                            "wc # RETRY_EXC_ERR",
                            "wc # WR_FLUSH_ERR",
                            "wc # FATAL_ERR",
                            "delay # 3000000",
                            "hold # 3000000",
                            "hold # 40000000000",
                            "drop #",
                            "drop # 2",
                            "disconnect #",
                            "fatal #",
                            "removal #",
                            "qp-fatal #",
                            "port-down #",
                            "stop # 3000000",
                            "stop # 0",
                            "no-device #",
                            "addr-error #",
                            "route-error #",
                            "reject #",
                            "connect-error #"}) {
    kinds.push_back({HostFault::kNone, entry, 0});
  }
  return kinds;
}

std::vector<Kind> NetworkKinds() {
  std::vector<Kind> kinds;
  for (const char* entry :
       {"read # ECONNRESET", "read # EIO", "write # EPIPE", "write # ENOBUFS",
        "short # 1", "reset #", "eof #", "cut #", "stall # 3000000",
        "stall # 40000000000", "connect # ECONNREFUSED", "accept # EMFILE",
        "listen # EADDRINUSE"}) {
    kinds.push_back({HostFault::kNone, entry, 0});
  }
  return kinds;
}

Fault FaultAt(const Kind& kind, Actor side, uint64_t at) {
  Fault fault;
  fault.side = side;
  fault.host = kind.host;
  fault.at = at;
  fault.length_ns = kind.length_ns;
  fault.device = absl::StrReplaceAll(kind.device, {{"#", absl::StrCat(at)}});
  return fault;
}

std::string KindText(const Kind& kind) {
  if (kind.host == HostFault::kNone) return kind.device;
  std::string text = FaultText(FaultAt(kind, Actor::kSource, 0));
  return text.substr(text.find(' ') + 1);
}

class Everywhere {
 public:
  Everywhere(const std::shared_ptr<const sim::Plugin>& plugin, uint64_t seed)
      : plugin_(plugin) {
    scenario_ = DrawScenario(seed, plugin->ops().name,
                             {.max_faults = 0, .small = true});
    scenario_.faults.clear();
    scenario_.habits.load_ns = 0;
    good_ = RunScenario(plugin_, scenario_);
  }

  const RunResult& good() const { return good_; }
  const Scenario& scenario() const { return scenario_; }

  // All occasions of one kind on one side; a line of the table.
  void Try(const Kind& kind, Actor side, EveryFaultResult* result) {
    std::array<uint64_t, 6> outcomes = {};
    uint64_t at = 1;
    for (;; ++at) {
      Scenario scenario = scenario_;
      scenario.faults.push_back(FaultAt(kind, side, at));
      const RunResult run = RunScenario(plugin_, scenario);
      if (run.hash == good_.hash) break;
      ++outcomes[static_cast<size_t>(run.source)];
      if (!run.verdict.ok()) {
        result->failures.push_back(
            absl::StrCat("FAILED: ", ExplainFailure(plugin_, scenario, run)));
        if (result->failures.size() >= kMostFailures) break;
      }
    }
    tried_ += at - 1;
    if (at == 1) return;  // this migration has no such occasion
    absl::StrAppend(
        &result->table,
        absl::StrFormat("| %-11s | %-36s | %5d | %5d | %5d | %5d | "
                        "%5d |\n",
                        ActorName(side), KindText(kind), at - 1, outcomes[1],
                        outcomes[2], outcomes[3], outcomes[4]));
  }
  uint64_t tried() const { return tried_; }

  static constexpr size_t kMostFailures = 5;

 private:
  const std::shared_ptr<const sim::Plugin> plugin_;
  Scenario scenario_;
  RunResult good_;
  uint64_t tried_ = 0;
};

}  // namespace

EveryFaultResult RunEveryFault(
    const std::shared_ptr<const sim::Plugin>& plugin, uint64_t seed,
    const std::function<void(const std::string&)>& progress) {
  EveryFaultResult result;
  Everywhere everywhere(plugin, seed);
  if (!everywhere.good().verdict.ok()) {
    result.failures.push_back(
        ExplainFailure(plugin, everywhere.scenario(), everywhere.good()));
    return result;
  }
  result.table =
      "| side        | fault                                |   at  | commit | "
      "refuse | fail | doubt |\n|---|---|--:|--:|--:|--:|--:|\n";
  std::vector<Kind> kinds = HostKinds();
  const std::vector<Kind> own =
      std::string(plugin->ops().name) == "tcp" ? NetworkKinds() : VerbsKinds();
  kinds.insert(kinds.end(), own.begin(), own.end());
  for (const Kind& kind : kinds) {
    for (const Actor side : {Actor::kSource, Actor::kDestination}) {
      everywhere.Try(kind, side, &result);
      if (result.failures.size() >= Everywhere::kMostFailures) return result;
      progress(absl::StrCat(everywhere.tried(), " faults"));
    }
  }
  absl::StrAppend(&result.table, everywhere.tried(), " runs with one fault, ",
                  result.failures.size(), " failures\n");
  return result;
}

}  // namespace mig::model
