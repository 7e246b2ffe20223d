// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The TCP plugin's wire format, version 1: pure encoding and decoding. See
// WIRE.md. Everything is in network byte order and of fixed width; nothing
// here trusts a length that a peer sent.
#ifndef PLUGIN_TCP_WIRE_H_
#define PLUGIN_TCP_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/hello.h"
#include "common/hello_mac.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig::tcp {

inline constexpr uint32_t kWireVersion = 1;
inline constexpr size_t kHeaderSize = 16;
inline constexpr size_t kWireRangeSize = 24;
inline constexpr size_t kHelloFixedSize = 128;
// Payload limits by what the peer has shown so far.
inline constexpr uint32_t kMaxHandshakePayload = 1024;
inline constexpr size_t kMaxBatchRanges = 512;
inline constexpr uint64_t kMaxBatchBytes = 4u << 20;

enum class FrameType : uint8_t {
  kHello = 1,
  kAuth = 2,
  kAbort = 3,  // argument: the sender's error code, as int32; payload: text
  kBlocks = 4,
  kData = 5,      // argument: the round; payload: wire ranges; then the bytes
  kRoundEnd = 6,  // argument: the round; payload: two sums, see RoundSums
  kRoundAck = 7,
  kMessage = 8,  // argument: the host's message type
  kCredit = 9,   // argument: bytes given back
  kHeartbeat = 10,
  kBusy = 11,  // argument: nanoseconds
  kOffer = 12,
  kCommitted = 13,
  kRefused = 14,
  kWithdraw = 15,
  kBye = 16,
  kByeAck = 17,
  kBlockRemoved = 18,  // argument: the sender's block id
};
inline constexpr uint8_t kMaxFrameType = 18;

struct FrameHeader {
  uint32_t length = 0;  // payload bytes, without the bytes of kData's ranges
  FrameType type = FrameType::kHeartbeat;
  uint8_t flags = 0;
  uint16_t channel = 0;
  uint64_t argument = 0;
};

void EncodeHeader(const FrameHeader& header,
                  std::span<uint8_t, kHeaderSize> to);
// Errors: PROTOCOL for a type that version 1 does not have.
absl::StatusOr<FrameHeader> DecodeHeader(
    std::span<const uint8_t, kHeaderSize> from);
// The largest payload that version 1 allows a frame of this type;
// `max_message` is the negotiated one.
uint32_t PayloadLimit(FrameType type, uint64_t max_message);

struct WireRange {
  uint32_t block = 0;  // the source's id
  uint32_t flags = 0;  // MIG_RANGE_ZERO
  uint64_t offset = 0;
  uint64_t length = 0;
};
void EncodeRange(const WireRange& range, std::span<uint8_t, kWireRangeSize> to);
WireRange DecodeRange(std::span<const uint8_t, kWireRangeSize> from);

// What a round held, so that the receiver's count is checked at its fence.
struct RoundSums {
  uint64_t data_bytes = 0;
  uint64_t zero_bytes = 0;
};
std::array<uint8_t, 16> EncodeSums(const RoundSums& sums);
absl::StatusOr<RoundSums> DecodeSums(std::span<const uint8_t> payload);

struct Hello : CommonHello {
  Hello() { wire_min = wire_max = kWireVersion; }
  uint32_t connections = 1;
  uint32_t connection_index = 0;
};
std::vector<uint8_t> EncodeHello(const Hello& hello);
// Errors: PROTOCOL: wrong magic, lengths, text.
absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload);

std::vector<uint8_t> EncodeBlocks(std::span<const BlockDescription> blocks);
absl::StatusOr<std::vector<BlockDescription>> DecodeBlocks(
    std::span<const uint8_t> payload);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_WIRE_H_
