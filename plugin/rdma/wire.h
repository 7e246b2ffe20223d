// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The control channel's wire format, version 1: frames and what is in them. See
// WIRE.md. Everything is in network byte order and of fixed width; nothing here
// trusts a length or count that a peer sent (H6).
#ifndef PLUGIN_RDMA_WIRE_H_
#define PLUGIN_RDMA_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hello_mac.h"
#include "common/peer_error.h"

namespace mig::rdma {

inline constexpr uint32_t kWireVersion = 1;
inline constexpr size_t kHeaderSize = 16;
// The largest frame that is sent often; what inline room is asked for.
inline constexpr size_t kMaxFixedPayload = 40;
// What every receive has room for: one SEND, header and all.
inline constexpr size_t kSlotSize = 16384;
inline constexpr size_t kMaxFragment = kSlotSize - kHeaderSize;
inline constexpr uint32_t kMaxHandshakePayload = 1024;

enum class FrameType : uint8_t {
  kHello = 1,
  kAuth = 2,
  kAbort = 3,          // argument: the sender's error code, as int64; text
  kSlots = 4,          // nothing but the header's slots
  kHeartbeat = 5,      //
  kBusy = 6,           // argument: nanoseconds
  kMessage = 7,        // long; low half of the argument: the host's type
  kCredit = 8,         // argument: charge of messages given back
  kBlocks = 9,         // long; block table
  kPrepared = 10,      // the blocks of the exchange are registered here
  kAsk = 11,           // chunk spans whose keys are wanted
  kKeys = 12,          // keys of chunks
  kZero = 13,          // zero runs
  kRoundEnd = 14,      // argument: the round; RoundSums
  kRoundAck = 15,      // argument: the round
  kBlockRemoved = 16,  // argument: the source's block id
  kOffer = 17,
  kCommitted = 18,
  kRefused = 19,
  kWithdraw = 20,
  kBye = 21,
  kByeAck = 22,
};
inline constexpr uint8_t kMaxFrameType = 22;

// One SEND is a header and `length` bytes. A long frame whose total does not
// fit goes in several, all but the last full.
struct FrameHeader {
  uint16_t length = 0;
  uint16_t slots = 0;  // receives that the sender has posted again
  FrameType type = FrameType::kHeartbeat;
  uint8_t flags = 0;
  uint16_t channel = 0;
  uint64_t argument = 0;
};

void EncodeHeader(const FrameHeader& header,
                  std::span<uint8_t, kHeaderSize> to);
// Of a whole SEND; the payload is what follows the header. `source`: whether
// the sender is. `max_message` is the negotiated one, 0 before. Errors:
// PROTOCOL for a type, flag, channel, length, total or sender that version 1
// does not have.
absl::StatusOr<FrameHeader> DecodeHeader(std::span<const uint8_t> send,
                                         bool source, uint64_t max_message);

// Whether a frame may go in several SENDs. Its argument is its total length in
// the upper half, and a value of its own in the lower one.
bool IsLong(FrameType type);
constexpr uint64_t LongArgument(uint64_t total, uint32_t value) {
  return total << 32 | value;
}
constexpr uint32_t LongTotal(uint64_t argument) {
  return static_cast<uint32_t>(argument >> 32);
}
constexpr uint32_t LongValue(uint64_t argument) {
  return static_cast<uint32_t>(argument);
}
// "HELLO", for messages.
const char* FrameName(FrameType type);

// What a round held, so that what came is checked at its end.
struct RoundSums {
  uint64_t data_bytes = 0;
  uint64_t zero_bytes = 0;
};
inline constexpr size_t kRoundSumsSize = 16;
std::array<uint8_t, kRoundSumsSize> EncodeSums(const RoundSums& sums);
RoundSums DecodeSums(std::span<const uint8_t, kRoundSumsSize> from);

// A run of zero pages. `block` is the source's id.
struct WireZeroRun {
  uint32_t block = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};
inline constexpr size_t kZeroRunSize = 24;
inline constexpr size_t kMaxZeroRuns = kMaxFragment / kZeroRunSize;

// Chunks [first, first + count) of a block of the source.
struct ChunkSpan {
  uint32_t block = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};
inline constexpr size_t kChunkSpanSize = 16;
inline constexpr size_t kMaxChunkSpans = kMaxFragment / kChunkSpanSize;

// The key of one chunk on one of the destination's devices; 0 is a key.
struct ChunkKey {
  uint32_t block = 0;  // the source's id
  uint32_t chunk = 0;
  uint32_t rail = 0;
  uint32_t rkey = 0;
};
inline constexpr size_t kChunkKeySize = 16;
inline constexpr size_t kMaxChunkKeys = kMaxFragment / kChunkKeySize;

// Lists of one frame. Decoding errors: PROTOCOL for an empty list, a rest, and
// for spans and runs that are empty or whose end overflows.
std::vector<uint8_t> EncodeZeroRuns(std::span<const WireZeroRun> runs);
absl::StatusOr<std::vector<WireZeroRun>> DecodeZeroRuns(
    std::span<const uint8_t> payload);
std::vector<uint8_t> EncodeChunkSpans(std::span<const ChunkSpan> spans);
absl::StatusOr<std::vector<ChunkSpan>> DecodeChunkSpans(
    std::span<const uint8_t> payload);
std::vector<uint8_t> EncodeChunkKeys(std::span<const ChunkKey> keys);
absl::StatusOr<std::vector<ChunkKey>> DecodeChunkKeys(
    std::span<const uint8_t> payload);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WIRE_H_
