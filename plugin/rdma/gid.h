// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The choice of a GID. Under rdma_cm that is a choice of address: an id that is
// bound to the address in a GID gets that GID, in the version that the system
// prefers, which has to be RoCE v2.
#ifndef PLUGIN_RDMA_GID_H_
#define PLUGIN_RDMA_GID_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net_address.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// As IPv6 is written: "fe80::1", "::ffff:10.0.0.1".
std::string GidText(const ibv_gid& gid);
// The address in a RoCE GID, port 0.
SocketAddress AddressIn(const ibv_gid_entry& entry);

struct GidChoice {
  std::string device;
  uint8_t port = 0;
  uint32_t index = 0;
  SocketAddress address;  // port 0
};

// `text` is an index, a GID as IPv6 is written, or the IPv4 address in one.
// `device` "" and `port` 0 look everywhere; what is found must then be the only
// one. Opens devices, for a moment. Errors: OPTION, listing what there is to
// choose from; UNSUPPORTED where the library can't tell.
absl::StatusOr<GidChoice> FindGid(verbs::Verbs* verbs, absl::string_view device,
                                  uint8_t port, absl::string_view text);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_GID_H_
