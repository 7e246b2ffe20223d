// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Proofs over both sides' hellos, and so over their nonces: one of an earlier
// handshake is none (C37).
#ifndef PLUGIN_COMMON_HELLO_MAC_H_
#define PLUGIN_COMMON_HELLO_MAC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig {

inline constexpr size_t kMacSize = 32;

// HMAC-SHA256 over `label` and both hello payloads. Without a key the nonces
// are what only the two peers know. Errors: INTERNAL.
absl::StatusOr<std::array<uint8_t, kMacSize>> HelloMac(
    absl::string_view key, absl::string_view label,
    std::span<const uint8_t> connecting_hello,
    std::span<const uint8_t> listening_hello);

// In constant time.
bool SameMac(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace mig

#endif  // PLUGIN_COMMON_HELLO_MAC_H_
