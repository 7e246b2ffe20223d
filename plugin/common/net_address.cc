// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/net_address.h"

#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/error.h"

namespace mig {

std::string FormatHost(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host;
  const int failure = getnameinfo(
      reinterpret_cast<const struct sockaddr*>(&address.storage), address.size,
      host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return failure == 0 ? host.data() : "";
}

std::string FormatHostPort(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host;
  std::array<char, NI_MAXSERV> port;
  if (getnameinfo(reinterpret_cast<const struct sockaddr*>(&address.storage),
                  address.size, host.data(), host.size(), port.data(),
                  port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  const bool v6 = address.storage.ss_family == AF_INET6;
  return absl::StrCat(v6 ? "[" : "", host.data(), v6 ? "]:" : ":", port.data());
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host,
                                                   const std::string& port,
                                                   bool passive,
                                                   bool numeric_only) {
  struct addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (passive) hints.ai_flags |= AI_PASSIVE;
  if (numeric_only) hints.ai_flags |= AI_NUMERICHOST;
  struct addrinfo* list = nullptr;
  const int failure = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  port.c_str(), &hints, &list);
  if (failure != 0) {
    return MakeError(MIG_E_PEER_UNREACHABLE,
                     absl::StrCat("host '", host,
                                  "' has no address: ", gai_strerror(failure),
                                  ": check the name, or give a number"),
                     failure == EAI_SYSTEM ? errno : 0);
  }
  std::vector<SocketAddress> addresses;
  for (const struct addrinfo* entry = list; entry != nullptr;
       entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(list);
  return addresses;
}

bool ParseHostPort(absl::string_view text, HostPort* parsed,
                   std::string* wrong) {
  absl::string_view port;
  if (absl::StartsWith(text, "[")) {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos || end + 1 >= text.size() ||
        text[end + 1] != ':') {
      *wrong = "has no ']:' after its IPv6 address";
      return false;
    }
    parsed->host = absl::StrReplaceAll(text.substr(1, end - 1), {{"%25", "%"}});
    port = text.substr(end + 2);
  } else {
    const size_t colon = text.rfind(':');
    if (colon == absl::string_view::npos) {
      *wrong = "has no port";
      return false;
    }
    parsed->host = std::string(text.substr(0, colon));
    port = text.substr(colon + 1);
    if (absl::StrContains(parsed->host, ":")) {
      *wrong = "has an IPv6 address without brackets";
      return false;
    }
  }
  if (parsed->host.find_first_of("/?#@ \t") != std::string::npos ||
      parsed->host.size() > 255) {
    *wrong = "has a host name with characters or a length that none has";
    return false;
  }
  uint32_t number = 0;
  // SimpleAtoi also takes signs and surrounding blanks.
  if (port.empty() ||
      port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    *wrong = "has a port that is no number from 0 to 65535";
    return false;
  }
  parsed->port = absl::StrCat(number);
  return true;
}

}  // namespace mig
