// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// How a session gets its connection: by connecting, or by listening for the one
// right peer.
#ifndef PLUGIN_TCP_OPENER_H_
#define PLUGIN_TCP_OPENER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/host.h"
#include "common/poller.h"
#include "common/resolver.h"
#include "tcp/handshake.h"
#include "tcp/network.h"
#include "tcp/socket.h"
#include "tcp/uri.h"

namespace mig::tcp {

struct OpenerSettings {
  Hello hello;  // without a nonce
  std::string key;
  std::shared_ptr<Network> network = SystemNetwork();
  SocketTuning tuning;
  uint64_t connect_timeout_ns = 0;
  uint64_t handshake_timeout_ns = 0;
  bool threads = true;  // whether a name may be looked up on a thread
};

struct Opened {
  std::unique_ptr<Connection> connection;
  Agreement agreement;
};

// Not thread-safe; the host, poller and refusal counter must outlive it.
class Opener {
 public:
  virtual ~Opener() = default;
  // Goes on as far as it can without waiting. True: *opened is filled.
  // Errors: the session can't be opened any more.
  virtual absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) = 0;
  virtual bool HasWork() const = 0;
  virtual uint64_t DeadlineNs() const = 0;
  // What a peer connects to, empty for a connector.
  virtual std::string LocalUri() const = 0;
};

// Errors: URI, LIMIT at once; all else by Step.
absl::StatusOr<std::unique_ptr<Opener>> StartConnector(const Uri& uri,
                                                       OpenerSettings settings,
                                                       const Host* host,
                                                       Poller* poller);

// The same for a name that was looked up already: `uri` is for messages.
std::unique_ptr<Opener> StartConnectorTo(std::vector<SocketAddress> addresses,
                                         const Uri& uri,
                                         OpenerSettings settings,
                                         const Host* host, Poller* poller);

// Errors: URI, ADDRESS, PERMISSION, LIMIT. `refused` counts peers refused.
absl::StatusOr<std::unique_ptr<Opener>> StartListener(const Uri& uri,
                                                      OpenerSettings settings,
                                                      const Host* host,
                                                      Poller* poller,
                                                      uint64_t* refused);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_OPENER_H_
