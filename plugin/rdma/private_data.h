// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What an id tells the peer while it connects, before a single SEND: rdma_cm
// carries 56 bytes of it at most.
#ifndef PLUGIN_RDMA_PRIVATE_DATA_H_
#define PLUGIN_RDMA_PRIVATE_DATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::rdma {

inline constexpr size_t kPrivateDataSize = 48;
inline constexpr size_t kMaxPrivateData = 56;
inline constexpr size_t kSessionIdSize = 16;
inline constexpr size_t kShortMacSize = 16;
// With fewer receives than these nothing but SLOTS frames could go.
inline constexpr uint16_t kLeastReceives = 4;

enum class QpKind : uint8_t { kControl = 1, kData = 2 };

struct PrivateData {
  uint8_t version = 1;
  QpKind kind = QpKind::kControl;
  uint8_t role = 0;    // of the sender, enum mig_role
  uint16_t index = 0;  // of a data queue pair
  uint16_t count = 0;  // of data queue pairs; 0 for control
  // Receives of kSlotSize posted before this was sent: the peer's first credit
  // on a control queue pair.
  uint16_t slots = 0;
  // In the accept of a data queue pair: which of the listening side's devices
  // it came up on, of ChunkKey's rails.
  uint16_t rail = 0;
  // Chosen at random by the connecting side for its control queue pair, so that
  // its data queue pairs find theirs.
  std::array<uint8_t, kSessionIdSize> session = {};
  // Data queue pairs only.
  std::array<uint8_t, kShortMacSize> mac = {};
};

std::array<uint8_t, kPrivateDataSize> EncodePrivateData(
    const PrivateData& data);
// More bytes than were sent may come: some fabrics pad with zeros. Errors:
// PROTOCOL for what is not this protocol, MISMATCH for another version of it.
absl::StatusOr<PrivateData> DecodePrivateData(std::span<const uint8_t> from);

// The proof of a data queue pair: that its maker took part in the handshake on
// the control queue pair and, where there is a key, has it (C37). Over both
// hellos with their nonces, the maker's role, and index. Errors: INTERNAL.
absl::StatusOr<std::array<uint8_t, kShortMacSize>> DataQpMac(
    absl::string_view key, std::span<const uint8_t> connecting_hello,
    std::span<const uint8_t> listening_hello, uint8_t role, uint16_t index);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_PRIVATE_DATA_H_
