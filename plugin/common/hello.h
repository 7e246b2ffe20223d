// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What each side says of itself first, whatever the transport, and what both
// come to.
#ifndef PLUGIN_COMMON_HELLO_H_
#define PLUGIN_COMMON_HELLO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mig_transport.h"

namespace mig {

inline constexpr size_t kNonceSize = 32;
inline constexpr size_t kMaxExtensions = 512;
// A window must hold the largest message with its overhead, and no more than
// what a receiver can be made to keep.
inline constexpr uint64_t kMostMaxMessage = 64u << 20;
inline constexpr uint64_t kMostWindow = 4 * kMostMaxMessage;

struct CommonHello {
  uint32_t wire_min = 0;
  uint32_t wire_max = 0;
  uint32_t role = 0;
  uint32_t auth = 0;  // 0: none, 1: HMAC-SHA256 over a pre-shared key
  std::array<uint8_t, MIG_UUID_SIZE> uuid = {};
  uint64_t attempt = 0;
  std::array<uint8_t, kNonceSize> nonce = {};
  uint64_t max_message = 0;
  uint64_t window = 0;  // bytes of messages that may be under way to me
  uint64_t peer_timeout_ns = 0;
  uint64_t features = 0;
  std::string extensions;
};

// What differs on the wire between transports. Bytes 104 to 111, and those
// from 120 that are not the extensions' length, are the transport's own.
struct HelloLayout {
  std::array<uint8_t, 8> magic;
  size_t extensions_length_at;
  size_t fixed_size;  // the extensions follow
};
// The transport's own bytes are 0.
std::vector<uint8_t> EncodeCommonHello(const CommonHello& hello,
                                       const HelloLayout& layout);
// Errors: PROTOCOL: wrong magic, lengths, text. When OK the payload has at
// least the fixed size.
absl::Status DecodeCommonHello(std::span<const uint8_t> payload,
                               const HelloLayout& layout, CommonHello* hello);

// What both sides' hellos come to.
struct CommonAgreement {
  uint32_t wire_version = 0;
  uint64_t max_message = 0;
  uint64_t peer_window = 0;      // what I may have under way to the peer
  uint64_t peer_timeout_ns = 0;  // the shorter of both
  bool authenticated = false;
};

// Whether both have a key or none. Errors: AUTH.
absl::Status CheckBothHaveKeys(const CommonHello& ours,
                               const CommonHello& theirs);
// First who it is: only the right peer may end a session by what it lacks.
// *other_vm: it is another VM or attempt, which the real peer may still come
// after. Then wire version and role. Errors: MISMATCH naming both values.
absl::Status CheckIdentity(const CommonHello& ours, const CommonHello& theirs,
                           bool* other_vm);
// Holds the rest against each other once CheckIdentity is OK; both sides come
// to the same answer. Errors: MISMATCH.
absl::StatusOr<CommonAgreement> AgreeOnCommon(const CommonHello& ours,
                                              const CommonHello& theirs);

}  // namespace mig

#endif  // PLUGIN_COMMON_HELLO_H_
