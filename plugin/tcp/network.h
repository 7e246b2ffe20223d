// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What connections are made of: the system's sockets, or a network inside the
// process (sim_network.h). Nothing here waits. Those with an fd are told by the
// poller when they can go on; those without say so themselves.
#ifndef PLUGIN_TCP_NETWORK_H_
#define PLUGIN_TCP_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net_address.h"
#include "common/poller.h"
#include "tcp/socket.h"
#include "tcp/stream.h"

namespace mig::tcp {

struct NamedStream {
  std::unique_ptr<ByteStream> stream;
  std::string peer;  // who is at its other end
};

// A connection that is being made; dropping it gives it up. Not thread-safe.
class Dial {
 public:
  virtual ~Dial() = default;
  // Whether it is known what came of it.
  virtual bool Done() const = 0;
  // 0: connected, else an errno. Once, after Done.
  virtual int Result() = 0;
  // Once, after a Result of 0.
  virtual NamedStream Take(const SocketTuning& tuning) = 0;
  // When it is Done by time alone; MIG_NO_DEADLINE: the poller tells.
  virtual uint64_t DueNs() const = 0;
};

// Where peers come to. Not thread-safe.
class Port {
 public:
  virtual ~Port() = default;
  // Whether Accept may find somebody.
  virtual bool Waiting() const = 0;
  // The next connection, none in `stream` if there is none now. Errors: LIMIT;
  // then nobody is Waiting before LookAgain, or somebody else comes.
  virtual absl::StatusOr<NamedStream> Accept(const SocketTuning& tuning) = 0;
  virtual void LookAgain() = 0;
  // When somebody comes by time alone; MIG_NO_DEADLINE: the poller tells.
  virtual uint64_t DueNs() const = 0;
  // What a peer connects to.
  virtual std::string Uri() const = 0;
};

// What a handed-over fd is: one of both.
struct Adopted {
  std::unique_ptr<ByteStream> stream;
  std::unique_ptr<Port> port;
};

// Thread-safe; what it makes is not, and the poller must outlive that.
class Network {
 public:
  virtual ~Network() = default;
  // Starts to connect: null, and *error is why, where it fails at once. Errors:
  // LIMIT.
  virtual absl::StatusOr<std::unique_ptr<Dial>> Connect(
      const SocketAddress& address, Poller* poller, int* error) = 0;
  // Errors: ADDRESS, PERMISSION, LIMIT.
  virtual absl::StatusOr<std::unique_ptr<Port>> Listen(
      const SocketAddress& address, Poller* poller) = 0;
  // A duplicate of the host's fd. Errors: URI, LIMIT.
  virtual absl::StatusOr<Adopted> Adopt(int fd, const SocketTuning& tuning,
                                        Poller* poller) = 0;
};

// The system's sockets.
std::shared_ptr<Network> SystemNetwork();

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_NETWORK_H_
