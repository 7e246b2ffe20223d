// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/wire_table.h"

namespace mig::tcp {
namespace {

// Its carriage return and line feed show a text protocol or a terminal that
// rewrites line ends.
constexpr HelloLayout kHelloLayout = {
    {'M', 'I', 'G', 'T', 'C', 'P', '\r', '\n'}, 120, kHelloFixedSize};

}  // namespace

void EncodeHeader(const FrameHeader& header,
                  std::span<uint8_t, kHeaderSize> to) {
  Put<uint32_t>(to.data(), header.length);
  to[4] = static_cast<uint8_t>(header.type);
  to[5] = header.flags;
  Put<uint16_t>(to.data() + 6, header.channel);
  Put<uint64_t>(to.data() + 8, header.argument);
}

absl::StatusOr<FrameHeader> DecodeHeader(
    std::span<const uint8_t, kHeaderSize> from) {
  if (from[4] == 0 || from[4] > kMaxFrameType) {
    return NoSuchPeer(absl::StrCat("a frame of unknown type ", from[4]));
  }
  FrameHeader header;
  header.length = Get<uint32_t>(from.data());
  header.type = static_cast<FrameType>(from[4]);
  header.flags = from[5];
  header.channel = Get<uint16_t>(from.data() + 6);
  header.argument = Get<uint64_t>(from.data() + 8);
  const uint8_t known_flags =
      header.type == FrameType::kAbort ? kAbortGuestNotTaken : 0;
  if ((header.flags & ~known_flags) != 0 || header.channel != 0) {
    return NoSuchPeer(absl::StrCat("a frame with flags ", header.flags,
                                   " on channel ", header.channel,
                                   ", which version 1 does not have"));
  }
  return header;
}

uint32_t PayloadLimit(FrameType type, uint64_t max_message) {
  switch (type) {
    case FrameType::kHello:
      return kMaxHandshakePayload;
    case FrameType::kAuth:
      return kMacSize;
    case FrameType::kAbort:
      return kMaxAbortPayload;
    case FrameType::kBlocks:
      return kMaxTablePayload;
    case FrameType::kData:
      return kMaxBatchRanges * kWireRangeSize;
    case FrameType::kRoundEnd:
      return 16;
    case FrameType::kMessage:
      return static_cast<uint32_t>(max_message);
    default:
      return 0;
  }
}

void EncodeRange(const WireRange& range,
                 std::span<uint8_t, kWireRangeSize> to) {
  Put<uint32_t>(to.data(), range.block);
  Put<uint32_t>(to.data() + 4, range.flags);
  Put<uint64_t>(to.data() + 8, range.offset);
  Put<uint64_t>(to.data() + 16, range.length);
}

WireRange DecodeRange(std::span<const uint8_t, kWireRangeSize> from) {
  return WireRange{Get<uint32_t>(from.data()), Get<uint32_t>(from.data() + 4),
                   Get<uint64_t>(from.data() + 8),
                   Get<uint64_t>(from.data() + 16)};
}

std::array<uint8_t, 16> EncodeSums(const RoundSums& sums) {
  std::array<uint8_t, 16> bytes;
  Put<uint64_t>(bytes.data(), sums.data_bytes);
  Put<uint64_t>(bytes.data() + 8, sums.zero_bytes);
  return bytes;
}

absl::StatusOr<RoundSums> DecodeSums(std::span<const uint8_t> payload) {
  if (payload.size() != 16) {
    return NoSuchPeer(
        absl::StrCat("a round end of ", payload.size(), " bytes"));
  }
  return RoundSums{Get<uint64_t>(payload.data()),
                   Get<uint64_t>(payload.data() + 8)};
}

std::vector<uint8_t> EncodeHello(const Hello& hello) {
  std::vector<uint8_t> bytes = EncodeCommonHello(hello, kHelloLayout);
  Put<uint32_t>(bytes.data() + 104, hello.connections);
  Put<uint32_t>(bytes.data() + 108, hello.connection_index);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload) {
  Hello hello;
  MIG_RETURN_IF_ERROR(DecodeCommonHello(payload, kHelloLayout, &hello));
  hello.connections = Get<uint32_t>(payload.data() + 104);
  hello.connection_index = Get<uint32_t>(payload.data() + 108);
  return hello;
}

std::vector<uint8_t> EncodeBlocks(std::span<const BlockDescription> blocks) {
  return EncodeTable(blocks.size(), 0,
                     [blocks](size_t i, uint8_t*) -> const BlockDescription& {
                       return blocks[i];
                     });
}

absl::StatusOr<std::vector<BlockDescription>> DecodeBlocks(
    std::span<const uint8_t> payload) {
  std::vector<BlockDescription> blocks;
  MIG_RETURN_IF_ERROR(DecodeTable(
      payload, 0, [&blocks](BlockDescription&& block, const uint8_t*) {
        blocks.push_back(std::move(block));
        return absl::OkStatus();
      }));
  return blocks;
}

}  // namespace mig::tcp
