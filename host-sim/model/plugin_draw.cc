// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/plugin_draw.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mig::model {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1'000'000;

// What both plugins have.
Options DrawCommon(Draw* draw) {
  static constexpr std::array kTimeouts = {"1s", "2s", "10s"};
  Options options;
  options.emplace_back("peer-timeout", draw->Of(kTimeouts));
  options.emplace_back("connect-timeout", "5s");
  options.emplace_back("handshake-timeout", "3s");
  if (draw->Percent(50)) options.emplace_back("key", "a secret of both");
  if (draw->Percent(20)) options.emplace_back("max-message", "512K");
  return options;
}

// One side's device. Faults and the network's name are added by run.
std::string DrawSoftDevice(Draw* draw, bool iwarp) {
  static constexpr std::array kModels = {"mlx5", "mlx4", "irdma", "rxe"};
  static constexpr std::array kLandings = {"random", "random", "latest",
                                           "earliest"};
  static constexpr std::array kGrants = {"model", "model", "none", "half",
                                         "more"};
  std::string device = iwarp ? "siw" : draw->Of(kModels);
  absl::StrAppend(&device, ",odp=on,seed=", draw->Next() >> 1,
                  ",landing=", draw->Of(kLandings),
                  ",inline-grant=", draw->Of(kGrants));
  if (draw->Percent(30)) absl::StrAppend(&device, ",rkey-zero=on");
  if (draw->Percent(30)) absl::StrAppend(&device, ",create-ex=off");
  if (draw->Percent(20)) absl::StrAppend(&device, ",devices=2,spread=on");
  if (draw->Percent(30)) {
    absl::StrAppend(&device, ",max-msg-size=", draw->Scaled(64 << 10, 1 << 20));
  }
  if (draw->Percent(50)) {
    absl::StrAppend(&device, ",wr-delay=", draw->Scaled(500, 200 * kUs), "ns");
  }
  if (draw->Percent(40)) {
    absl::StrAppend(&device,
                    ",bandwidth=", draw->Scaled(50'000'000, 10'000'000'000));
  }
  if (draw->Percent(30)) {
    absl::StrAppend(&device, ",cm-delay=", draw->Scaled(10 * kUs, 20 * kMs),
                    "ns");
  }
  return device;
}

// What both sides have to agree on.
struct RdmaCommon {
  bool iwarp = false;
  const char* qps = "";
};

RdmaCommon DrawRdmaCommon(Draw* draw) {
  static constexpr std::array kQps = {"1", "1", "2", "4"};
  return {.iwarp = draw->Percent(15), .qps = draw->Of(kQps)};
}

void DrawRdma(Draw* draw, const RdmaCommon& common, Options* options) {
  static constexpr std::array kRegistrations = {"pinned", "dynamic", "odp"};
  static constexpr std::array kDepths = {"16", "32", "64", "512"};
  static constexpr std::array kInlines = {"56", "0", "16", "512"};
  options->emplace_back("device", "soft:" + DrawSoftDevice(draw, common.iwarp));
  options->emplace_back("data-qps", common.qps);
  options->emplace_back("registration", draw->Of(kRegistrations));
  options->emplace_back("chunk-size", "1M");
  options->emplace_back("queue-depth", draw->Of(kDepths));
  options->emplace_back("control-inline", draw->Of(kInlines));
  if (draw->Percent(30)) options->emplace_back("find-zero", "on");
  if (draw->Percent(30)) options->emplace_back("prefault", "on");
  if (draw->Percent(10)) options->emplace_back("max-bandwidth", "1G");
}

// Errors that verbs are known to end with.
constexpr std::array kErrors = {"EINVAL", "ENOMEM", "EIO",  "ENODEV",
                                "EAGAIN", "ENOSPC", "EPERM"};

std::string DrawCall(Draw* draw) {
  static constexpr std::array kCalls = {"AllocPd",
                                        "CmAccept",
                                        "CmBindAddr",
                                        "CmConnect",
                                        "CmCreateId",
                                        "CmCreateEventChannel",
                                        "CmCreateQp",
                                        "CmCreateQpEx",
                                        "CmDisconnect",
                                        "CmEstablish",
                                        "CmInitQpAttr",
                                        "CmListen",
                                        "CmReject",
                                        "CmResolveAddr",
                                        "CmResolveRoute",
                                        "CmSetOption",
                                        "CreateCompChannel",
                                        "CreateCq",
                                        "CreateQp",
                                        "CreateQpEx",
                                        "ModifyQp",
                                        "QueryDevice",
                                        "QueryPort",
                                        "QueryQp",
                                        "QueryGid",
                                        "QueryGidEx",
                                        "GetDeviceList",
                                        "OpenDevice",
                                        "RegMr",
                                        "RegMr",
                                        "DeregMr"};
  return absl::StrCat("call ", draw->Of(kCalls), " ", draw->Scaled(1, 12), " ",
                      draw->Of(kErrors), draw->Percent(20) ? " minus-one" : "");
}

std::string DrawVerbsFault(Draw* draw) {
  static constexpr std::array kStatuses = {
      "LOC_LEN_ERR",  "LOC_QP_OP_ERR",  "LOC_PROT_ERR",      "WR_FLUSH_ERR",
      "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",
      "REM_OP_ERR",   "RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR", "FATAL_ERR",
      "GENERAL_ERR"};
  const uint64_t request = draw->Scaled(1, 500);
  const uint64_t pause = draw->Scaled(kUs, 5000 * kMs);
  switch (draw->Below(18)) {
    case 0:
    case 1:
    case 2:
      return DrawCall(draw);
    case 3:
    case 4:
      return absl::StrCat("post ", request, " ", draw->Of(kErrors),
                          draw->Percent(30) ? " minus-one" : "");
    case 5:
    case 6:
      return absl::StrCat("wc ", request, " ", draw->Of(kStatuses));
    case 7:
      return absl::StrCat("delay ", request, " ", pause);
    case 8:
      return absl::StrCat("hold ", request, " ", pause);
    case 9:
      return draw->Percent(50)
                 ? absl::StrCat("drop ", request)
                 : absl::StrCat("drop ", request, " ", draw->Between(1, 9));
    case 10:
      return absl::StrCat("disconnect ", request);
    case 11:
      return absl::StrCat("fatal ", request);
    case 12:
      return absl::StrCat("removal ", request);
    case 13:
      return absl::StrCat("qp-fatal ", request);
    case 14:
      return absl::StrCat("port-down ", request);
    case 15:
      return absl::StrCat("stop ", request, " ", draw->Percent(30) ? 0 : pause);
    case 16:
      return absl::StrCat("stop @", draw->Scaled(kUs, 200 * kMs), " ",
                          draw->Percent(30) ? 0 : pause);
    default: {
      static constexpr std::array kConnecting = {
          "no-device", "addr-error", "route-error", "reject", "connect-error"};
      return absl::StrCat(draw->Of(kConnecting), " ", draw->Between(1, 3));
    }
  }
}

void DrawTcp(Draw* draw, Options* options) {
  std::string network = absl::StrCat(",seed=", draw->Next() >> 1);
  if (draw->Percent(60)) absl::StrAppend(&network, ",unkind=on");
  if (draw->Percent(50)) {
    absl::StrAppend(&network, ",latency=", draw->Scaled(kUs, 20 * kMs), "ns");
  }
  if (draw->Percent(40)) {
    absl::StrAppend(&network,
                    ",bandwidth=", draw->Scaled(20'000'000, 10'000'000'000));
  }
  if (draw->Percent(50)) {
    absl::StrAppend(&network, ",buffer=", draw->Scaled(8192, 1 << 20));
  }
  options->emplace_back("network", network);
}

std::string DrawNetworkFault(Draw* draw) {
  static constexpr std::array kSocketErrors = {
      "ECONNRESET", "EPIPE",  "ETIMEDOUT", "EHOSTUNREACH",
      "ENOBUFS",    "ENOMEM", "EIO"};
  const uint64_t call = draw->Scaled(1, 400);
  const uint64_t pause = draw->Scaled(kUs, 5000 * kMs);
  switch (draw->Below(12)) {
    case 0:
    case 1:
      return absl::StrCat("read ", call, " ", draw->Of(kSocketErrors));
    case 2:
    case 3:
      return absl::StrCat("write ", call, " ", draw->Of(kSocketErrors));
    case 4:
      return absl::StrCat("short ", call, " ", draw->Scaled(1, 4096));
    case 5:
      return absl::StrCat("reset ", call);
    case 6:
      return absl::StrCat("eof ", call);
    case 7:
      return absl::StrCat("cut ", call);
    case 8:
      return absl::StrCat("stall ", call, " ", pause);
    case 9:
      return absl::StrCat("reset @", draw->Scaled(kUs, 200 * kMs));
    case 10:
      return absl::StrCat("cut @", draw->Scaled(kUs, 200 * kMs));
    default: {
      static constexpr std::array kCalls = {"connect", "accept", "listen"};
      return absl::StrCat(draw->Of(kCalls), " ", draw->Between(1, 2), " ",
                          draw->Of(kSocketErrors));
    }
  }
}

// Schedules of the plugin's own device or network.
std::string ScheduleOf(const Scenario& scenario, Actor side) {
  std::vector<std::string> entries;
  for (const Fault& fault : scenario.faults) {
    if (fault.side == side && fault.host == HostFault::kNone) {
      entries.push_back(fault.device);
    }
  }
  return absl::StrJoin(entries, ";");
}

bool HasOtherKey(const Scenario& scenario, Actor side) {
  for (const Fault& fault : scenario.faults) {
    if (fault.side == side && fault.host == HostFault::kPeerKey) return true;
  }
  return false;
}

}  // namespace

void DrawPluginOptions(Draw* draw, Scenario* scenario) {
  const Options common = DrawCommon(draw);
  const RdmaCommon rdma = DrawRdmaCommon(draw);
  scenario->source_options = scenario->destination_options = common;
  for (Options* options :
       {&scenario->source_options, &scenario->destination_options}) {
    if (scenario->plugin == "tcp") {
      DrawTcp(draw, options);
    } else {
      DrawRdma(draw, rdma, options);
    }
  }
}

Fault DrawDeviceFault(Draw* draw, absl::string_view plugin) {
  Fault fault;
  fault.side = draw->Percent(50) ? Actor::kSource : Actor::kDestination;
  fault.device =
      plugin == "tcp" ? DrawNetworkFault(draw) : DrawVerbsFault(draw);
  return fault;
}

Options ContextOptions(const Scenario& scenario, Actor side,
                       absl::string_view network) {
  Options options = side == Actor::kSource ? scenario.source_options
                                           : scenario.destination_options;
  const std::string schedule = ScheduleOf(scenario, side);
  const std::string faults =
      schedule.empty() ? "" : absl::StrCat(",faults=", schedule);
  for (auto& [name, value] : options) {
    if (name == "device") absl::StrAppend(&value, ",fabric=", network, faults);
    if (name == "network") value = absl::StrCat("sim:", network, value, faults);
  }
  if (HasOtherKey(scenario, side)) {
    std::erase_if(options,
                  [](const auto& option) { return option.first == "key"; });
    options.emplace_back("key", "another secret");
  }
  return options;
}

}  // namespace mig::model
