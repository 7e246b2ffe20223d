// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/wire.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::tcp {
namespace {

// Its carriage return and line feed show a text protocol or a terminal that
// rewrites line ends.
constexpr std::array<uint8_t, 8> kMagic = {'M', 'I', 'G',  'T',
                                           'C', 'P', '\r', '\n'};
constexpr size_t kMaxExtensions = 512;
constexpr size_t kBlockFixedSize = 28;

absl::Status Broken(absl::string_view what) {
  return MakeError(MIG_E_PEER_PROTOCOL,
                   absl::StrCat("the peer sent ", what,
                                ": it is no migtransport peer, faulty, or "
                                "hostile"));
}

bool PrintableWord(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > 0x20 && c < 0x7f; });
}

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
    return Broken(absl::StrCat("a frame of unknown type ", from[4]));
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
    return Broken(absl::StrCat("a frame with flags ", header.flags,
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
    return Broken(absl::StrCat("a round end of ", payload.size(), " bytes"));
  }
  return RoundSums{Get<uint64_t>(payload.data()),
                   Get<uint64_t>(payload.data() + 8)};
}

std::vector<uint8_t> EncodeHello(const Hello& hello) {
  std::vector<uint8_t> bytes(kHelloFixedSize + hello.extensions.size());
  uint8_t* const to = bytes.data();
  std::copy(kMagic.begin(), kMagic.end(), to);
  Put<uint32_t>(to + 8, hello.wire_min);
  Put<uint32_t>(to + 12, hello.wire_max);
  Put<uint32_t>(to + 16, hello.role);
  Put<uint32_t>(to + 20, hello.auth);
  std::copy(hello.uuid.begin(), hello.uuid.end(), to + 24);
  Put<uint64_t>(to + 40, hello.attempt);
  std::copy(hello.nonce.begin(), hello.nonce.end(), to + 48);
  Put<uint64_t>(to + 80, hello.max_message);
  Put<uint64_t>(to + 88, hello.window);
  Put<uint64_t>(to + 96, hello.peer_timeout_ns);
  Put<uint32_t>(to + 104, hello.connections);
  Put<uint32_t>(to + 108, hello.connection_index);
  Put<uint64_t>(to + 112, hello.features);
  Put<uint32_t>(to + 120, static_cast<uint32_t>(hello.extensions.size()));
  std::copy(hello.extensions.begin(), hello.extensions.end(),
            to + kHelloFixedSize);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload) {
  if (payload.size() < kHelloFixedSize ||
      !std::equal(kMagic.begin(), kMagic.end(), payload.begin())) {
    return Broken("no hello of this protocol first");
  }
  const uint8_t* const from = payload.data();
  Hello hello;
  hello.wire_min = Get<uint32_t>(from + 8);
  hello.wire_max = Get<uint32_t>(from + 12);
  hello.role = Get<uint32_t>(from + 16);
  hello.auth = Get<uint32_t>(from + 20);
  std::copy_n(from + 24, MIG_UUID_SIZE, hello.uuid.begin());
  hello.attempt = Get<uint64_t>(from + 40);
  std::copy_n(from + 48, kNonceSize, hello.nonce.begin());
  hello.max_message = Get<uint64_t>(from + 80);
  hello.window = Get<uint64_t>(from + 88);
  hello.peer_timeout_ns = Get<uint64_t>(from + 96);
  hello.connections = Get<uint32_t>(from + 104);
  hello.connection_index = Get<uint32_t>(from + 108);
  hello.features = Get<uint64_t>(from + 112);
  const uint32_t extensions = Get<uint32_t>(from + 120);
  if (extensions > kMaxExtensions ||
      extensions != payload.size() - kHelloFixedSize) {
    return Broken(absl::StrCat("a hello of ", payload.size(),
                               " bytes with extensions of ", extensions));
  }
  hello.extensions.assign(reinterpret_cast<const char*>(from) + kHelloFixedSize,
                          extensions);
  if (!PrintableWord(hello.extensions)) {
    return Broken("a hello with unprintable extensions");
  }
  return hello;
}

std::vector<uint8_t> EncodeBlocks(std::span<const BlockDescription> blocks) {
  std::vector<uint8_t> bytes(4);
  Put<uint32_t>(bytes.data(), static_cast<uint32_t>(blocks.size()));
  for (const BlockDescription& block : blocks) {
    const size_t at = bytes.size();
    bytes.resize(at + kBlockFixedSize + block.name.size());
    uint8_t* const to = bytes.data() + at;
    Put<uint32_t>(to, block.id);
    Put<uint32_t>(to + 4, block.flags);
    Put<uint64_t>(to + 8, block.length);
    Put<uint64_t>(to + 16, block.page_size);
    Put<uint32_t>(to + 24, static_cast<uint32_t>(block.name.size()));
    std::copy(block.name.begin(), block.name.end(), to + kBlockFixedSize);
  }
  return bytes;
}

absl::StatusOr<std::vector<BlockDescription>> DecodeBlocks(
    std::span<const uint8_t> payload) {
  if (payload.size() < 4) return Broken("a block table without a count");
  const uint32_t count = Get<uint32_t>(payload.data());
  payload = payload.subspan(4);
  if (count > kMaxBlocks || count > payload.size() / kBlockFixedSize) {
    return Broken(absl::StrCat("a block table of ", payload.size(),
                               " bytes that claims ", count, " blocks"));
  }
  std::vector<BlockDescription> blocks(count);
  for (BlockDescription& block : blocks) {
    if (payload.size() < kBlockFixedSize) return Broken("a cut block table");
    block.id = Get<uint32_t>(payload.data());
    block.flags = Get<uint32_t>(payload.data() + 4);
    block.length = Get<uint64_t>(payload.data() + 8);
    block.page_size = Get<uint64_t>(payload.data() + 16);
    const uint32_t name = Get<uint32_t>(payload.data() + 24);
    payload = payload.subspan(kBlockFixedSize);
    if (name == 0 || name > MIG_NAME_MAX || name > payload.size()) {
      return Broken(absl::StrCat("a block name of ", name, " bytes"));
    }
    block.name.assign(reinterpret_cast<const char*>(payload.data()), name);
    payload = payload.subspan(name);
  }
  if (!payload.empty()) return Broken("a block table with bytes left over");
  return blocks;
}

}  // namespace mig::tcp
