// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_NET_ADDRESS_H_
#define PLUGIN_COMMON_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig {

struct SocketAddress {
  struct sockaddr_storage storage = {};
  socklen_t size = 0;
};

// "127.0.0.1", "fe80::1%eth0"; of IPv4 and IPv6 only.
std::string FormatHost(const SocketAddress& address);
// "127.0.0.1:4444", "[fe80::1%eth0]:4444"; of IPv4 and IPv6 only.
std::string FormatHostPort(const SocketAddress& address);

// Looks a name up (getaddrinfo, may block on the network) or reads a number.
// `passive`: for listening. `numeric_only` never blocks. Errors: UNREACHABLE.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host,
                                                   const std::string& port,
                                                   bool passive,
                                                   bool numeric_only);
struct HostPort {
  std::string host;  // without brackets, with %scope; may be empty
  std::string port;  // decimal, 0..65535
};
// Parses HOST:PORT or [V6%SCOPE]:PORT (RFC 3986 brackets; the scope id of RFC
// 4007 is taken as it is, or as %25 of RFC 6874). What is wrong goes to *wrong
// ("has no port"); false then.
bool ParseHostPort(absl::string_view text, HostPort* parsed,
                   std::string* wrong);

}  // namespace mig

#endif  // PLUGIN_COMMON_NET_ADDRESS_H_
