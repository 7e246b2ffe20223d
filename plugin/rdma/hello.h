// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What each side says of itself first, and what both come to.
#ifndef PLUGIN_RDMA_HELLO_H_
#define PLUGIN_RDMA_HELLO_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mig_transport.h"
#include "rdma/wire.h"

namespace mig::rdma {

inline constexpr size_t kNonceSize = 32;
inline constexpr size_t kHelloFixedSize = 144;
inline constexpr size_t kMaxExtensions = 512;
inline constexpr uint32_t kMaxDataQps = 16;
inline constexpr uint64_t kLeastChunkSize = 1u << 20;
inline constexpr uint64_t kMostChunkSize = 1u << 30;
// A window must hold the largest message with its overhead, and no more than
// what a receiver can be made to keep.
inline constexpr uint64_t kMostMaxMessage = 64u << 20;
inline constexpr uint64_t kMostWindow = 4 * kMostMaxMessage;

struct Hello {
  uint32_t wire_min = kWireVersion;
  uint32_t wire_max = kWireVersion;
  uint32_t role = 0;
  uint32_t auth = 0;  // 0: none, 1: HMAC-SHA256 over a pre-shared key
  std::array<uint8_t, MIG_UUID_SIZE> uuid = {};
  uint64_t attempt = 0;
  std::array<uint8_t, kNonceSize> nonce = {};
  uint64_t max_message = 0;
  uint64_t window = 0;  // bytes of messages that may be under way to me
  uint64_t peer_timeout_ns = 0;
  uint64_t chunk_size = 0;  // the largest that I can register as one
  uint32_t data_qps = 0;
  uint64_t features = 0;
  std::string extensions;
};
std::vector<uint8_t> EncodeHello(const Hello& hello);
// Errors: PROTOCOL: wrong magic, lengths, text.
absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload);

// What both sides' hellos come to.
struct Agreement {
  uint32_t wire_version = 0;
  uint64_t max_message = 0;
  uint64_t peer_window = 0;      // what I may have under way to the peer
  uint64_t peer_timeout_ns = 0;  // the shorter of both
  uint64_t chunk_size = 0;       // the smaller of both
  uint32_t data_qps = 0;
  bool authenticated = false;
};

// Holds the hellos against each other; both sides come to the same answer.
// Errors: MISMATCH naming both values (C27, C30). *other_vm: it is another VM
// or attempt, which the real peer may still come after.
absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_HELLO_H_
