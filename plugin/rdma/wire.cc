// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/wire.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/block_table.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig::rdma {
namespace {

enum class Who : uint8_t { kBoth, kSource, kDestination };

// What version 1 allows of each type. `most` is the payload's, or a long
// frame's total.
struct FrameRule {
  const char* name;
  Who who;
  uint32_t least;
  uint32_t most;
  bool is_long = false;
};

constexpr std::array<FrameRule, kMaxFrameType + 1> kRules = {{
    {"", Who::kBoth, 0, 0},
    {"HELLO", Who::kBoth, 1, kMaxHandshakePayload},
    {"AUTH", Who::kBoth, 0, kMacSize},
    {"ABORT", Who::kBoth, 0, kMaxAbortPayload},
    {"SLOTS", Who::kBoth, 0, 0},
    {"HEARTBEAT", Who::kBoth, 0, 0},
    {"BUSY", Who::kBoth, 0, 0},
    {"MESSAGE", Who::kBoth, 0, std::numeric_limits<uint32_t>::max(), true},
    {"CREDIT", Who::kBoth, 0, 0},
    {"BLOCKS", Who::kBoth, 4, kMaxTablePayload, true},
    {"PREPARED", Who::kBoth, 0, 0},
    {"ASK", Who::kSource, kChunkSpanSize, kMaxFragment},
    {"KEYS", Who::kDestination, kChunkKeySize, kMaxFragment},
    {"ZERO", Who::kSource, kZeroRunSize, kMaxFragment},
    {"ROUND_END", Who::kSource, kRoundSumsSize, kRoundSumsSize},
    {"ROUND_ACK", Who::kDestination, 0, 0},
    {"BLOCK_REMOVED", Who::kSource, 0, 0},
    {"OFFER", Who::kSource, 0, 0},
    {"COMMITTED", Who::kDestination, 0, 0},
    {"REFUSED", Who::kDestination, 0, 0},
    {"WITHDRAW", Who::kSource, 0, 0},
    {"BYE", Who::kBoth, 0, 0},
    {"BYE_ACK", Who::kBoth, 0, 0},
}};

const FrameRule& RuleOf(FrameType type) {
  return kRules[static_cast<size_t>(type)];
}

absl::Status CheckLengths(const FrameHeader& header, uint64_t max_message) {
  const FrameRule& rule = RuleOf(header.type);
  uint64_t most = rule.most;
  if (header.type == FrameType::kMessage) most = max_message;
  const uint64_t total =
      rule.is_long ? LongTotal(header.argument) : header.length;
  // What does not fit into one SEND goes in several, none of them empty; which
  // of them may be short is the Reassembler's to see.
  const bool whole = header.length == total && total <= kMaxFragment;
  const bool part = rule.is_long && header.length > 0 &&
                    header.length <= kMaxFragment && total > kMaxFragment;
  if (total < rule.least || total > most || !(whole || part)) {
    return NoSuchPeer(absl::StrCat("a ", rule.name, " frame of ", header.length,
                                   " of ", total, " bytes, where ", rule.least,
                                   " to ", most, " are allowed"));
  }
  return absl::OkStatus();
}

// A list fills its frame: a count that is told could be wrong.
absl::Status CheckList(std::span<const uint8_t> payload, size_t entry,
                       absl::string_view name) {
  if (payload.empty() || payload.size() % entry != 0) {
    return NoSuchPeer(absl::StrCat(name, " of ", payload.size(),
                                   " bytes, no multiple of ", entry));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLong(FrameType type) { return RuleOf(type).is_long; }
const char* FrameName(FrameType type) { return RuleOf(type).name; }

void EncodeHeader(const FrameHeader& header,
                  std::span<uint8_t, kHeaderSize> to) {
  Put<uint16_t>(to.data(), header.length);
  Put<uint16_t>(to.data() + 2, header.slots);
  to[4] = static_cast<uint8_t>(header.type);
  to[5] = header.flags;
  Put<uint16_t>(to.data() + 6, header.channel);
  Put<uint64_t>(to.data() + 8, header.argument);
}

absl::StatusOr<FrameHeader> DecodeHeader(std::span<const uint8_t> send,
                                         bool source, uint64_t max_message) {
  if (send.size() < kHeaderSize) {
    return NoSuchPeer(absl::StrCat(send.size(), " bytes, less than a header"));
  }
  if (send[4] == 0 || send[4] > kMaxFrameType) {
    return NoSuchPeer(absl::StrCat("a frame of unknown type ", send[4]));
  }
  FrameHeader header;
  header.length = Get<uint16_t>(send.data());
  header.slots = Get<uint16_t>(send.data() + 2);
  header.type = static_cast<FrameType>(send[4]);
  header.flags = send[5];
  header.channel = Get<uint16_t>(send.data() + 6);
  header.argument = Get<uint64_t>(send.data() + 8);
  if (header.length != send.size() - kHeaderSize) {
    return NoSuchPeer(absl::StrCat("a frame of ", send.size() - kHeaderSize,
                                   " bytes that claims ", header.length));
  }
  const uint8_t known_flags =
      header.type == FrameType::kAbort ? kAbortGuestNotTaken : 0;
  if ((header.flags & ~known_flags) != 0 || header.channel != 0) {
    return NoSuchPeer(absl::StrCat("a frame with flags ", header.flags,
                                   " on channel ", header.channel,
                                   ", which version 1 does not have"));
  }
  const Who who = RuleOf(header.type).who;
  if (who != Who::kBoth && (who == Who::kSource) != source) {
    return NoSuchPeer(absl::StrCat(FrameName(header.type), ", which only a ",
                                   source ? "destination" : "source",
                                   " may send"));
  }
  MIG_RETURN_IF_ERROR(CheckLengths(header, max_message));
  return header;
}

std::array<uint8_t, kRoundSumsSize> EncodeSums(const RoundSums& sums) {
  std::array<uint8_t, kRoundSumsSize> bytes;
  Put<uint64_t>(bytes.data(), sums.data_bytes);
  Put<uint64_t>(bytes.data() + 8, sums.zero_bytes);
  return bytes;
}

RoundSums DecodeSums(std::span<const uint8_t, kRoundSumsSize> from) {
  return RoundSums{Get<uint64_t>(from.data()), Get<uint64_t>(from.data() + 8)};
}

std::vector<uint8_t> EncodeZeroRuns(std::span<const WireZeroRun> runs) {
  std::vector<uint8_t> bytes(runs.size() * kZeroRunSize);
  uint8_t* to = bytes.data();
  for (const WireZeroRun& run : runs) {
    Put<uint32_t>(to, run.block);
    Put<uint32_t>(to + 4, 0);
    Put<uint64_t>(to + 8, run.offset);
    Put<uint64_t>(to + 16, run.length);
    to += kZeroRunSize;
  }
  return bytes;
}

absl::StatusOr<std::vector<WireZeroRun>> DecodeZeroRuns(
    std::span<const uint8_t> payload) {
  MIG_RETURN_IF_ERROR(CheckList(payload, kZeroRunSize, "zero runs"));
  std::vector<WireZeroRun> runs(payload.size() / kZeroRunSize);
  const uint8_t* from = payload.data();
  for (WireZeroRun& run : runs) {
    run = {Get<uint32_t>(from), Get<uint64_t>(from + 8),
           Get<uint64_t>(from + 16)};
    if (Get<uint32_t>(from + 4) != 0 || run.length == 0 ||
        run.length > std::numeric_limits<uint64_t>::max() - run.offset) {
      return NoSuchPeer(absl::StrCat("a zero run of ", run.length,
                                     " bytes at offset ", run.offset));
    }
    from += kZeroRunSize;
  }
  return runs;
}

std::vector<uint8_t> EncodeChunkSpans(std::span<const ChunkSpan> spans) {
  std::vector<uint8_t> bytes(spans.size() * kChunkSpanSize);
  uint8_t* to = bytes.data();
  for (const ChunkSpan& span : spans) {
    Put<uint32_t>(to, span.block);
    Put<uint32_t>(to + 4, span.first);
    Put<uint32_t>(to + 8, span.count);
    Put<uint32_t>(to + 12, 0);
    to += kChunkSpanSize;
  }
  return bytes;
}

absl::StatusOr<std::vector<ChunkSpan>> DecodeChunkSpans(
    std::span<const uint8_t> payload) {
  MIG_RETURN_IF_ERROR(CheckList(payload, kChunkSpanSize, "chunk spans"));
  std::vector<ChunkSpan> spans(payload.size() / kChunkSpanSize);
  const uint8_t* from = payload.data();
  for (ChunkSpan& span : spans) {
    span = {Get<uint32_t>(from), Get<uint32_t>(from + 4),
            Get<uint32_t>(from + 8)};
    if (Get<uint32_t>(from + 12) != 0 || span.count == 0 ||
        span.count > std::numeric_limits<uint32_t>::max() - span.first) {
      return NoSuchPeer(
          absl::StrCat("a span of ", span.count, " chunks from ", span.first));
    }
    from += kChunkSpanSize;
  }
  return spans;
}

std::vector<uint8_t> EncodeChunkKeys(std::span<const ChunkKey> keys) {
  std::vector<uint8_t> bytes(keys.size() * kChunkKeySize);
  uint8_t* to = bytes.data();
  for (const ChunkKey& key : keys) {
    Put<uint32_t>(to, key.block);
    Put<uint32_t>(to + 4, key.chunk);
    Put<uint32_t>(to + 8, key.rail);
    Put<uint32_t>(to + 12, key.rkey);
    to += kChunkKeySize;
  }
  return bytes;
}

absl::StatusOr<std::vector<ChunkKey>> DecodeChunkKeys(
    std::span<const uint8_t> payload) {
  MIG_RETURN_IF_ERROR(CheckList(payload, kChunkKeySize, "chunk keys"));
  std::vector<ChunkKey> keys(payload.size() / kChunkKeySize);
  const uint8_t* from = payload.data();
  for (ChunkKey& key : keys) {
    key = {Get<uint32_t>(from), Get<uint32_t>(from + 4),
           Get<uint32_t>(from + 8), Get<uint32_t>(from + 12)};
    from += kChunkKeySize;
  }
  return keys;
}

}  // namespace mig::rdma
