// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/error.h"
#include "rdma/opener.h"

namespace mig::rdma {

absl::StatusOr<HostPort> ParseUri(absl::string_view uri) {
  absl::string_view rest = uri;
  HostPort parsed;
  std::string wrong = "has a scheme that this plugin does not serve";
  if (!absl::ConsumePrefix(&rest, "rdma://") ||
      !ParseHostPort(rest, &parsed, &wrong)) {
    return MakeError(MIG_E_URI, absl::StrCat("URI '", uri, "' ", wrong,
                                             ": give rdma://HOST:PORT or "
                                             "rdma://[IPV6]:PORT"));
  }
  return parsed;
}

std::string FormatUri(const SocketAddress& address) {
  const std::string name = FormatHostPort(address);
  return name.empty() ? "(unknown address)" : absl::StrCat("rdma://", name);
}

}  // namespace mig::rdma
