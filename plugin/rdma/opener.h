// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// How a session gets its connections: by connecting, or by listening for the
// one right peer. First control and the handshake on it, then the data queue
// pairs.
#ifndef PLUGIN_RDMA_OPENER_H_
#define PLUGIN_RDMA_OPENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/host.h"
#include "common/poller.h"
#include "rdma/cm_events.h"
#include "rdma/cm_qp.h"
#include "rdma/control_link.h"
#include "rdma/device_set.h"
#include "rdma/hello.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// Where guest memory is registered for a data queue pair.
struct GuestDevice {
  ibv_pd* guest_pd = nullptr;
  uint16_t rail = 0;  // of the wire's chunk keys
};

struct OpenerSettings {
  Hello hello;  // without a nonce
  std::string key;
  CmTuning tuning;
  ControlSize control;
  QpWants data;  // of each data queue pair
  // The device that a data queue pair's id came up on. Errors: DEVICE, LIMIT.
  std::function<absl::StatusOr<GuestDevice>(const rdma_cm_id*)> guest_device;
  // Called with each data queue pair once it is made, before it is connected or
  // accepted: what it has to receive is posted here. May be empty.
  std::function<absl::Status(uint16_t index, CmQp* qp)> prepare;
  uint64_t connect_timeout_ns = 0;
  uint64_t handshake_timeout_ns = 0;
  bool threads = true;  // whether a name may be looked up on a thread
};

// What a session moves with; all outlive its openers and connections.
struct Io {
  verbs::Verbs* verbs = nullptr;
  const Host* host = nullptr;
  Poller* poller = nullptr;
  CmEvents* events = nullptr;
  DeviceSet* devices = nullptr;

  // Drives a software device, and hands out events: before each Step. True if
  // there may be more.
  bool Pump() const {
    verbs->Drive();
    const bool more = events->Dispatch();
    devices->DrainEvents();
    return more;
  }
};

// How long a side that refuses waits for its last word to arrive.
inline constexpr uint64_t kLastWordNs = 200'000'000;

struct Opened {
  std::unique_ptr<ControlLink> control;
  std::vector<std::unique_ptr<CmQp>> data;  // by index
  // Connecting side: the peer's device of each, by index.
  std::vector<uint16_t> peer_rails;
  Agreement agreement;
  std::string peer;
};

// Not thread-safe.
class Opener {
 public:
  virtual ~Opener() = default;
  // Goes on as far as it can without waiting. True: *opened is filled.
  // Errors: the session can't be opened any more.
  virtual absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) = 0;
  // Whether Step has something to do that no descriptor tells.
  virtual bool HasWork() = 0;
  virtual uint64_t DeadlineNs() const = 0;
  // What a peer connects to, empty for a connector.
  virtual std::string LocalUri() const = 0;
};

// "rdma://HOST:PORT". Errors: URI.
absl::StatusOr<HostPort> ParseUri(absl::string_view uri);
std::string FormatUri(const SocketAddress& address);

// Errors: URI, LIMIT at once; all else by Step.
absl::StatusOr<std::unique_ptr<Opener>> StartConnector(absl::string_view uri,
                                                       OpenerSettings settings,
                                                       const Io& io);

// The same for a name that was looked up already: `uri` is for messages.
std::unique_ptr<Opener> StartConnectorTo(std::vector<SocketAddress> addresses,
                                         absl::string_view uri,
                                         OpenerSettings settings, const Io& io);

// Errors: URI, ADDRESS, PERMISSION, DEVICE. `refused` counts peers refused.
absl::StatusOr<std::unique_ptr<Opener>> StartListener(absl::string_view uri,
                                                      OpenerSettings settings,
                                                      const Io& io,
                                                      uint64_t* refused);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_OPENER_H_
