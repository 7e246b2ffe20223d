// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/private_data.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/hello_mac.h"
#include "common/wire_bytes.h"
#include "mig_transport.h"

namespace mig::rdma {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'M', 'I', 'G', 'R'};

absl::Status Broken(absl::string_view what) {
  return MakeError(MIG_E_PEER_PROTOCOL,
                   absl::StrCat("a peer connected with ", what,
                                ": it is no migtransport peer, faulty, or "
                                "hostile"));
}

}  // namespace

std::array<uint8_t, kPrivateDataSize> EncodePrivateData(
    const PrivateData& data) {
  std::array<uint8_t, kPrivateDataSize> bytes = {};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  bytes[4] = data.version;
  bytes[5] = static_cast<uint8_t>(data.kind);
  bytes[6] = data.role;
  Put<uint16_t>(&bytes[8], data.index);
  Put<uint16_t>(&bytes[10], data.count);
  Put<uint16_t>(&bytes[12], data.slots);
  Put<uint16_t>(&bytes[14], data.rail);
  std::copy(data.session.begin(), data.session.end(), bytes.begin() + 16);
  std::copy(data.mac.begin(), data.mac.end(), bytes.begin() + 32);
  return bytes;
}

absl::StatusOr<PrivateData> DecodePrivateData(std::span<const uint8_t> from) {
  if (from.size() < kPrivateDataSize ||
      !std::equal(kMagic.begin(), kMagic.end(), from.begin())) {
    return Broken("no private data of this protocol");
  }
  PrivateData data;
  data.version = from[4];
  if (data.version != 1) {
    return MakeError(
        MIG_E_PEER_MISMATCH,
        absl::StrCat("the connection format is 1 here and ", data.version,
                     " at the peer: use plugins of one release"));
  }
  data.kind = static_cast<QpKind>(from[5]);
  data.role = from[6];
  data.index = Get<uint16_t>(&from[8]);
  data.count = Get<uint16_t>(&from[10]);
  data.slots = Get<uint16_t>(&from[12]);
  data.rail = Get<uint16_t>(&from[14]);
  std::copy_n(from.begin() + 16, kSessionIdSize, data.session.begin());
  std::copy_n(from.begin() + 32, kShortMacSize, data.mac.begin());
  const bool control = data.kind == QpKind::kControl;
  const bool known = control || data.kind == QpKind::kData;
  if (!known || from[7] != 0 ||
      (data.role != MIG_ROLE_SOURCE && data.role != MIG_ROLE_DESTINATION)) {
    return Broken(absl::StrCat("a queue pair of kind ", from[5], " and role ",
                               data.role));
  }
  if (control ? data.index != 0 || data.count != 0 || data.rail != 0 ||
                    data.slots < kLeastReceives
              : data.index >= data.count || data.rail >= data.count) {
    return Broken(absl::StrCat("queue pair ", data.index, " of ", data.count,
                               " with ", data.slots, " receives"));
  }
  return data;
}

absl::StatusOr<std::array<uint8_t, kShortMacSize>> DataQpMac(
    absl::string_view key, std::span<const uint8_t> connecting_hello,
    std::span<const uint8_t> listening_hello, uint8_t role, uint16_t index) {
  const std::string label = absl::StrCat(
      "migtransport rdma 1 data ", uint32_t{role}, " ", uint32_t{index}, " ");
  const auto mac = HelloMac(key, label, connecting_hello, listening_hello);
  if (!mac.ok()) return mac.status();
  std::array<uint8_t, kShortMacSize> cut;
  std::copy_n(mac->begin(), cut.size(), cut.begin());
  return cut;
}

}  // namespace mig::rdma
