// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Sockets: making them, and naming their ends.
#ifndef PLUGIN_TCP_SOCKET_H_
#define PLUGIN_TCP_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net_address.h"
#include "tcp/stream.h"
#include "tcp/uri.h"

namespace mig::tcp {

struct SocketTuning {
  uint64_t peer_timeout_ns = 0;  // for keepalive; 0: the system's timers only
  uint64_t buffer_bytes = 0;     // SO_SNDBUF and SO_RCVBUF; 0: the system's
};

// "tcp://127.0.0.1:4444", "tcp://[fe80::1%eth0]:4444", "unix:/path".
std::string FormatAddress(const SocketAddress& address);

// Why nobody can listen there.
absl::Status ListenFailure(const SocketAddress& address, int error);

// The address of a unix: URI.
SocketAddress UnixAddress(const std::string& path);

// Starts to connect without waiting: *error is 0 when it is connected,
// EINPROGRESS, or why not. Errors: LIMIT.
absl::StatusOr<UniqueFd> StartConnect(const SocketAddress& address, int* error);
// Why a connect that was in progress failed; 0: it did not.
int ConnectResult(int fd);

// Binds and listens. A left-over unix socket that nobody serves is replaced.
// Errors: ADDRESS, PERMISSION, LIMIT.
absl::StatusOr<UniqueFd> Listen(const SocketAddress& address);
// The next connection, an invalid fd if there is none now. Errors: LIMIT.
absl::StatusOr<UniqueFd> Accept(int listener, std::string* peer);

// A CLOEXEC duplicate of the host's fd, which must be a stream socket;
// *listening says which kind. One that listens becomes non-blocking, also for
// the host; a connected one is left as it is. Errors: URI, LIMIT.
absl::StatusOr<UniqueFd> AdoptFd(int fd, bool* listening);

// No delay, keepalive, timeouts and buffers; a no-op on other than TCP. A
// system that refuses one of them is not a failure.
void Tune(int fd, const SocketTuning& tuning);

SocketAddress LocalAddress(int fd);
std::string PeerName(int fd);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SOCKET_H_
