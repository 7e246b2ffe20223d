// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The RDMA plugin's face: what it says of itself, its options, and how a
// session's settings come of them.
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/abi_glue.h"
#include "common/error.h"
#include "common/host.h"
#include "common/options.h"
#include "common/session_options.h"
#include "rdma/counters.h"
#include "rdma/gid.h"
#include "rdma/probe.h"
#include "rdma/session.h"
#include "rdma/wire.h"
#include "soft-verbs/soft_verbs.h"
#include "verbs/real_verbs.h"

namespace mig::rdma {
namespace {

constexpr int kMaxServiceLevel = 15;
static_assert(kHeaderSize + kMaxFixedPayload == 56,
              "the default of control-inline holds every such message");

constexpr std::array kOptions = {
    mig_option{"device", "", "a device's name, or soft[:MODEL[,NAME=VALUE]...]",
               "the only RDMA device to use; soft is one in software",
               MIG_OPTION_STRING, 0},
    mig_option{"data-qps", "1", "1..16",
               "queue pairs that guest memory is spread over",
               MIG_OPTION_INTEGER, 0},
    mig_option{"registration", "pinned", "pinned|dynamic|odp",
               "guest memory: all pinned at exchange, by chunk when it is "
               "sent, or on demand by the device",
               MIG_OPTION_ENUM, 0},
    mig_option{"chunk-size", "32M", "1M..1G",
               "unit of registration, a power of 2; the smaller of both sides",
               MIG_OPTION_SIZE, 0},
    kKeyOption,
    kKeyFileOption,
    mig_option{"source-address", "", "a numeric address",
               "local address to connect from; empty: the system's choice",
               MIG_OPTION_STRING, 0},
    mig_option{"port", "0", "0..255", "the only port of the device; 0: any",
               MIG_OPTION_INTEGER, 0},
    mig_option{"gid", "", "an index, a GID, or the IPv4 address in one",
               "RoCE v2 GID to connect from or listen at, by the address in "
               "it; empty: the system's choice",
               MIG_OPTION_STRING, 0},
    mig_option{"service-level", "", "0..15",
               "of this side's packets: on InfiniBand one that the subnet "
               "manager allows between the two, on Ethernet the priority 0..7, "
               "on iWARP there is none; empty: the system's",
               MIG_OPTION_STRING, 0},
    mig_option{"traffic-class", "0", "0..255",
               "of the IP header (DSCP << 2); 0: the system's",
               MIG_OPTION_INTEGER, 0},
    mig_option{"queue-depth", "512", "16..8192",
               "work requests of a data queue pair", MIG_OPTION_INTEGER, 0},
    mig_option{"control-inline", "56", "0..65536",
               "bytes to send inline on the control queue pair: as many as the "
               "device grants; the default holds every message of fixed size",
               MIG_OPTION_INTEGER, 0},
    mig_option{"max-bandwidth", "0", "0..1024G",
               "bytes of guest memory a second; 0: no limit", MIG_OPTION_SIZE,
               0},
    mig_option{"find-zero", "off", "on|off",
               "look whether pages are zero before they are sent",
               MIG_OPTION_BOOL, 0},
    mig_option{"prefault", "off", "on|off",
               "destination: fault memory in before it is registered",
               MIG_OPTION_BOOL, 0},
    kPeerTimeoutOption,
    kConnectTimeoutOption,
    kHandshakeTimeoutOption,
    kCloseTimeoutOption,
    kMaxMessageOption,
    mig_option{"threads", "4", "0..64",
               "that register memory; 0: registered and names looked up inside "
               "progress",
               MIG_OPTION_INTEGER, 0},
    mig_option{"writes-per-chunk", "many", "many|1",
               "1: one write under way to a chunk, only to compare with older "
               "transports",
               MIG_OPTION_ENUM, 0},
    mig_option{
        "drain", "round", "round|iterate",
        "iterate: wait for all at each flush, only to compare with older "
        "transports",
        MIG_OPTION_ENUM, 0},
};

class Context {
 public:
  static absl::StatusOr<std::unique_ptr<Context>> Create(const Host& host) {
    return std::unique_ptr<Context>(new Context(host));
  }
  Options& options() { return options_; }
  absl::StatusOr<std::vector<struct mig_device>> Probe();
  absl::StatusOr<std::unique_ptr<Session>> CreateSession(
      const struct mig_session_params& params);

 private:
  explicit Context(const Host& host) : host_(host), options_(kOptions) {}
  unsigned Threads() const {
    // No thread follows a simulated clock.
    if (host_.simulated_clock()) return 0;
    return static_cast<unsigned>(options_.Number("threads"));
  }
  bool soft() const {
    const std::string& device = options_.Text("device");
    return device == "soft" || absl::StartsWith(device, "soft:");
  }
  std::string SoftConfig() const;
  absl::StatusOr<std::shared_ptr<DevicePool>> Pool();
  absl::Status FillTuning(verbs::Verbs* verbs, CmTuning* tuning) const;
  absl::Status FillSource(verbs::Verbs* verbs, CmTuning* tuning) const;

  const Host host_;
  Options options_;
  // By device and registration settings; kept for what stays registered.
  std::map<std::string, std::shared_ptr<DevicePool>> pools_;
};

// A device of this process meets those of others too, where time is real.
std::string Context::SoftConfig() const {
  absl::string_view device = options_.Text("device");
  std::string config = absl::ConsumePrefix(&device, "soft:")
                           ? std::string(device)
                           : std::string("mlx5");
  if (!host_.simulated_clock() &&
      !absl::StrContains(config, "other-processes=")) {
    absl::StrAppend(&config, ",other-processes=on");
  }
  return config;
}

absl::StatusOr<std::vector<struct mig_device>> Context::Probe() {
  ProbeSettings settings;
  settings.control_inline =
      static_cast<uint32_t>(options_.Number("control-inline"));
  settings.queue_depth = static_cast<uint32_t>(options_.Number("queue-depth"));
  if (!soft()) {
    const auto real = verbs::RealVerbs();
    if (!real.ok()) return real.status();
    settings.memlock = ReadMemlock();
    return ProbeDevices(*real, settings);
  }
  settings.memlock.unlimited = true;
  settings.memlock.limit = UINT64_MAX;
  const auto made = soft::MakeSoftVerbs(SoftConfig(), &host_);
  if (!made.ok()) return made.status();
  return ProbeDevices(made->get(), settings);
}

absl::StatusOr<std::shared_ptr<DevicePool>> Context::Pool() {
  RegistrationSettings settings;
  settings.threads = Threads();
  settings.on_demand = options_.Text("registration") == "odp";
  settings.prefault = options_.Bool("prefault");
  const std::string key =
      absl::StrCat(soft() ? SoftConfig() : "", "|", settings.threads, "|",
                   settings.on_demand, "|", settings.prefault);
  std::shared_ptr<DevicePool>& pool = pools_[key];
  if (pool != nullptr) return pool;
  if (!soft()) {
    const auto real = verbs::RealVerbs();
    if (!real.ok()) return real.status();
    pool = std::make_shared<DevicePool>(nullptr, *real, &host_, settings);
    return pool;
  }
  auto made = soft::MakeSoftVerbs(SoftConfig(), &host_);
  if (!made.ok()) return made.status();
  verbs::Verbs* const table = made->get();
  pool =
      std::make_shared<DevicePool>(*std::move(made), table, &host_, settings);
  return pool;
}

absl::Status Context::FillTuning(verbs::Verbs* verbs, CmTuning* tuning) const {
  if (!soft()) tuning->device = options_.Text("device");
  tuning->port = static_cast<uint8_t>(options_.Number("port"));
  const std::string& level = options_.Text("service-level");
  if (!level.empty() &&
      (!absl::SimpleAtoi(level, &tuning->service_level) ||
       tuning->service_level < 0 || tuning->service_level > kMaxServiceLevel)) {
    return MakeError(
        MIG_E_OPTION,
        absl::StrCat("service-level '", level, "' does not exist: give 0 to ",
                     kMaxServiceLevel, ", or nothing for the system's"));
  }
  tuning->traffic_class =
      static_cast<uint8_t>(options_.Number("traffic-class"));
  return FillSource(verbs, tuning);
}

absl::Status Context::FillSource(verbs::Verbs* verbs, CmTuning* tuning) const {
  const std::string& from = options_.Text("source-address");
  const std::string& gid = options_.Text("gid");
  if (!from.empty() && !gid.empty()) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("source-address '", from, "' and gid '", gid,
                                  "' both choose the address to connect from: "
                                  "leave one out"));
  }
  if (!gid.empty()) {
    auto found = FindGid(verbs, tuning->device, tuning->port, gid);
    if (!found.ok()) return found.status();
    tuning->device = found->device;
    tuning->port = found->port;
    tuning->gid_index = static_cast<int>(found->index);
    tuning->source_address = found->address;
    return absl::OkStatus();
  }
  if (from.empty()) return absl::OkStatus();
  const auto addresses = mig::Resolve(from, "0", /*passive=*/false,
                                      /*numeric_only=*/true);
  if (!addresses.ok()) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("source-address '", from,
                                  "' is no numeric address: give one of this "
                                  "machine's"));
  }
  tuning->source_address = addresses->front();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Session>> Context::CreateSession(
    const struct mig_session_params& params) {
  SessionSettings settings;
  Hello& hello = settings.opener.hello;
  MIG_RETURN_IF_ERROR(
      FillHello(params, options_, &hello, &settings.opener.key));
  auto pool = Pool();
  if (!pool.ok()) return pool.status();
  MIG_RETURN_IF_ERROR(FillTuning((*pool)->verbs(), &settings.opener.tuning));
  const uint64_t chunk = options_.Number("chunk-size");
  if (!std::has_single_bit(chunk)) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("chunk-size ", chunk,
                                  " is no power of 2: give 1M, 2M, ... 1G"));
  }
  hello.chunk_size =
      RegistrationUnit(chunk, Threads(), host_.simulated_clock());
  hello.data_qps = static_cast<uint32_t>(options_.Number("data-qps"));
  settings.opener.data.most = {
      .max_send_wr = static_cast<uint32_t>(options_.Number("queue-depth")),
      .max_recv_wr = FenceReceiver::kReceives,
      .max_send_sge = 1,
      .max_recv_sge = 1,
      .max_inline_data = 0};
  settings.opener.data.least_send_depth = 16;
  settings.opener.data.least_receive_depth = FenceReceiver::kReceives;
  settings.opener.control.inline_bytes =
      static_cast<uint32_t>(options_.Number("control-inline"));
  settings.opener.connect_timeout_ns = options_.Number("connect-timeout");
  settings.opener.handshake_timeout_ns = options_.Number("handshake-timeout");
  settings.opener.threads = Threads() > 0;
  settings.close_timeout_ns = options_.Number("close-timeout");
  settings.pinned = options_.Text("registration") != "dynamic";
  settings.writer.max_bandwidth = options_.Number("max-bandwidth");
  settings.writer.find_zero = options_.Bool("find-zero");
  settings.writer.one_write_per_chunk =
      options_.Text("writes-per-chunk") == "1";
  settings.writer.drain_at_flush = options_.Text("drain") == "iterate";
  return Session::Create(&host_, *std::move(pool), std::move(settings));
}

const struct mig_transport_ops* Ops() {
  static const struct mig_transport_ops table =
      AbiGlue<Context, Session>::Table(
          {.name = "rdma",
           .version = MIG_PLUGIN_VERSION,
           .description = "guest memory by RDMA, or by a software device",
           .licenses = "BSD-2-Clause AND Apache-2.0",
           .uri_schemes = "rdma",
           .wire_version = kWireVersion,
           .options = kOptions,
           .counters = CounterTable()});
  return &table;
}

}  // namespace
}  // namespace mig::rdma

extern "C" __attribute__((visibility("default"))) int32_t mig_transport_query(
    uint32_t host_abi_min, uint32_t host_abi_max,
    const struct mig_transport_ops** ops, struct mig_error* error) {
  return mig::AnswerQuery(host_abi_min, host_abi_max, mig::rdma::Ops(), ops,
                          error);
}
