// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What each side says of itself first, and what both come to.
#ifndef PLUGIN_RDMA_HELLO_H_
#define PLUGIN_RDMA_HELLO_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/hello.h"
#include "rdma/wire.h"

namespace mig::rdma {

inline constexpr size_t kHelloFixedSize = 144;
inline constexpr uint32_t kMaxDataQps = 16;
inline constexpr uint64_t kLeastChunkSize = 1u << 20;
inline constexpr uint64_t kMostChunkSize = 1u << 30;

struct Hello : CommonHello {
  Hello() { wire_min = wire_max = kWireVersion; }
  uint64_t chunk_size = 0;  // the largest that I can register as one
  uint32_t data_qps = 0;
};
std::vector<uint8_t> EncodeHello(const Hello& hello);
// Errors: PROTOCOL: wrong magic, lengths, text.
absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload);

struct Agreement : CommonAgreement {
  uint64_t chunk_size = 0;  // the smaller of both
  uint32_t data_qps = 0;
};

// Holds the hellos against each other; both sides come to the same answer.
// Errors: MISMATCH naming both values (C27, C30). *other_vm: it is another VM
// or attempt, which the real peer may still come after.
absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_HELLO_H_
