// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The TCP plugin's face: what it says of itself, its options, and how a
// session's settings come of them.
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/abi_glue.h"
#include "common/error.h"
#include "common/host.h"
#include "common/options.h"
#include "common/session_options.h"
#include "tcp/counters.h"
#include "tcp/session.h"
#include "tcp/sim_network.h"

namespace mig::tcp {
namespace {

constexpr std::array kOptions = {
    kKeyOption,
    kKeyFileOption,
    kPeerTimeoutOption,
    kConnectTimeoutOption,
    kHandshakeTimeoutOption,
    kCloseTimeoutOption,
    kMaxMessageOption,
    mig_option{"socket-buffer", "0", "0..1G",
               "SO_SNDBUF and SO_RCVBUF; 0 leaves it to the system, which is "
               "best; less than a few segments (64 KiB on loopback) crawls",
               MIG_OPTION_SIZE, 0},
    mig_option{"batches", "8", "1..64",
               "batches of up to 512 ranges or 4 MiB that write takes ahead",
               MIG_OPTION_INTEGER, 0},
    mig_option{"threads", "1", "0..1",
               "0: look names up inside progress instead of on a thread",
               MIG_OPTION_INTEGER, 0},
    mig_option{"network", "", "sim:NAME[,KEY=VALUE]...",
               "a network inside the process, for a host whose clock is "
               "simulated: seed, latency, bandwidth, buffer, unkind=on, "
               "faults; empty: the system's",
               MIG_OPTION_STRING, 0},
};

void PutText(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

class Context {
 public:
  static absl::StatusOr<std::unique_ptr<Context>> Create(const Host& host) {
    return std::unique_ptr<Context>(new Context(host));
  }
  Options& options() { return options_; }
  absl::StatusOr<std::vector<struct mig_device>> Probe() const;
  absl::StatusOr<std::unique_ptr<Session>> CreateSession(
      const struct mig_session_params& params);

 private:
  explicit Context(const Host& host) : host_(host), options_(kOptions) {}
  absl::StatusOr<std::shared_ptr<Network>> FindNetwork();

  const Host host_;
  Options options_;
  // Kept between sessions, as its faults are counted over all of them.
  std::string network_text_;
  std::shared_ptr<Network> network_;
};

absl::StatusOr<std::vector<struct mig_device>> Context::Probe() const {
  struct ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return MakeSystemError(MIG_E_DEVICE, "can't list network interfaces",
                           errno);
  }
  std::vector<struct mig_device> devices;
  for (const struct ifaddrs* entry = list; entry != nullptr;
       entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const sa_family_t family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.size = family == AF_INET ? sizeof(struct sockaddr_in)
                                     : sizeof(struct sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.size);
    struct mig_device device = {};
    const bool up = (entry->ifa_flags & IFF_UP) != 0;
    device.flags = up ? MIG_DEVICE_USABLE : 0u;
    PutText(entry->ifa_name, device.name, sizeof(device.name));
    PutText(FormatAddress(address), device.address, sizeof(device.address));
    PutText(up ? "network interface, up"
               : "network interface is down: bring it up (ip link set up)",
            device.detail, sizeof(device.detail));
    devices.push_back(device);
  }
  freeifaddrs(list);
  return devices;
}

absl::StatusOr<std::shared_ptr<Network>> Context::FindNetwork() {
  const std::string& text = options_.Text("network");
  if (network_ == nullptr || text != network_text_) {
    auto made = text.empty() ? SystemNetwork() : MakeSimNetwork(text, &host_);
    if (!made.ok()) return made.status();
    network_ = *std::move(made);
    network_text_ = text;
  }
  return network_;
}

absl::StatusOr<std::unique_ptr<Session>> Context::CreateSession(
    const struct mig_session_params& params) {
  SessionSettings settings;
  Hello& hello = settings.opener.hello;
  MIG_RETURN_IF_ERROR(
      FillHello(params, options_, &hello, &settings.opener.key));
  auto network = FindNetwork();
  if (!network.ok()) return network.status();
  settings.opener.network = *std::move(network);
  // Neither the system's timers nor a thread follow a simulated clock.
  const bool real_time = !host_.simulated_clock();
  settings.opener.tuning = {real_time ? hello.peer_timeout_ns : 0,
                            options_.Number("socket-buffer")};
  settings.opener.connect_timeout_ns = options_.Number("connect-timeout");
  settings.opener.handshake_timeout_ns = options_.Number("handshake-timeout");
  settings.opener.threads = real_time && options_.Number("threads") > 0;
  settings.close_timeout_ns = options_.Number("close-timeout");
  settings.batches = options_.Number("batches");
  return Session::Create(&host_, std::move(settings));
}

const struct mig_transport_ops* Ops() {
  static const struct mig_transport_ops table =
      AbiGlue<Context, Session>::Table(
          {.name = "tcp",
           .version = MIG_PLUGIN_VERSION,
           .description =
               "guest memory over TCP or unix sockets, without copies",
           .licenses = "BSD-2-Clause AND Apache-2.0",
           .uri_schemes = "tcp,unix,fd",
           .wire_version = kWireVersion,
           .options = kOptions,
           .counters = CounterTable()});
  return &table;
}

}  // namespace
}  // namespace mig::tcp

extern "C" __attribute__((visibility("default"))) int32_t mig_transport_query(
    uint32_t host_abi_min, uint32_t host_abi_max,
    const struct mig_transport_ops** ops, struct mig_error* error) {
  return mig::AnswerQuery(host_abi_min, host_abi_max, mig::tcp::Ops(), ops,
                          error);
}
