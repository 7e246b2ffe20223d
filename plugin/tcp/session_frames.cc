// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the peer sends. Everything in it is hostile until checked (H6).
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/zero_pages.h"
#include "tcp/session.h"

namespace mig::tcp {

absl::StatusOr<uint32_t> Session::PayloadLimit(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kAuth:
      return PeerBroke("a second handshake");
    case FrameType::kData:
    case FrameType::kRoundEnd:
    case FrameType::kOffer:
    case FrameType::kWithdraw:
    case FrameType::kBlockRemoved:
      if (rules_.source()) return PeerBroke("what only a source may send");
      break;
    case FrameType::kRoundAck:
    case FrameType::kCommitted:
    case FrameType::kRefused:
      if (!rules_.source())
        return PeerBroke("what only a destination may send");
      break;
    default:
      break;
  }
  return tcp::PayloadLimit(type, agreement().max_message);
}

absl::Status Session::OnFrame(const FrameHeader& header,
                              std::vector<uint8_t>* payload) {
  switch (header.type) {
    case FrameType::kAbort:
      return OnAbort(header.flags, header.argument, *payload);
    case FrameType::kBlocks:
      return OnBlocks(*payload);
    case FrameType::kRoundEnd:
      return OnRoundEnd(header.argument, *payload);
    case FrameType::kRoundAck:
      MIG_RETURN_IF_ERROR(rules_.PeerRoundAck(header.argument));
      PushEvent(MIG_EVENT_ROUND_DONE, MIG_OK, header.argument);
      return absl::OkStatus();
    case FrameType::kMessage:
      return OnMessage(header, payload);
    case FrameType::kBlockRemoved:
      if (header.argument > std::numeric_limits<uint32_t>::max()) {
        return PeerBroke("a block id of more than 32 bits");
      }
      return OnBlockRemoved(static_cast<uint32_t>(header.argument));
    default: {
      const auto shared = SharedFrameOf(kSharedTypes, header.type);
      return shared ? OnSharedFrame(*shared, header.argument)
                    : absl::OkStatus();
    }
  }
}

absl::Status Session::OnBlocks(std::span<const uint8_t> payload) {
  if (their_table_)
    return PeerBroke("a block table before the last was answered");
  auto table = DecodeBlocks(payload);
  if (!table.ok()) return table.status();
  their_table_ = *std::move(table);
  if (!table_sent_) return absl::OkStatus();
  // Data may follow at once: agree before it is read.
  return AgreeOnBlocks();
}

absl::Status Session::AgreeOnBlocks() {
  const std::vector<BlockDescription> theirs =
      *std::exchange(their_table_, std::nullopt);
  table_sent_ = false;
  MIG_RETURN_IF_ERROR(blocks_.Agree(theirs));
  if (!rules_.source()) {
    for (const auto& block : blocks_.blocks()) {
      if (block->agreed && block->maybe_nonzero.empty()) {
        TrackNonzero(block.get());
      }
    }
  }
  rules_.Exchanged();
  PushEvent(MIG_EVENT_BLOCKS_READY);
  return absl::OkStatus();
}

absl::Status Session::OnData(const FrameHeader& header,
                             std::span<const uint8_t> ranges, DataPlan* plan) {
  MIG_RETURN_IF_ERROR(rules_.PeerData(header.argument));
  if (ranges.empty() || ranges.size() % kWireRangeSize != 0) {
    return PeerBroke(absl::StrCat("a batch with ", ranges.size(),
                                  " bytes of ranges, no multiple of 24"));
  }
  for (size_t at = 0; at < ranges.size(); at += kWireRangeSize) {
    MIG_RETURN_IF_ERROR(
        PlanRange(DecodeRange(std::span<const uint8_t, kWireRangeSize>(
                      ranges.data() + at, kWireRangeSize)),
                  plan));
  }
  return absl::OkStatus();
}

absl::Status Session::PlanRange(const WireRange& range, DataPlan* plan) {
  Block* const block = blocks_.FindByPeerId(range.block);
  if (block == nullptr) {
    return PeerBroke(absl::StrCat("a range in unknown block ", range.block));
  }
  if ((range.flags & ~MIG_RANGE_ZERO) != 0 || range.length == 0 ||
      ((range.offset | range.length) & (block->page_size - 1)) != 0 ||
      range.offset > block->length ||
      range.length > block->length - range.offset) {
    return PeerBroke(absl::StrCat(
        "a range of ", range.length, " bytes at offset ", range.offset,
        " with flags ", range.flags, " outside block '", block->name, "' of ",
        block->length, " bytes"));
  }
  if (range.flags == MIG_RANGE_ZERO) {
    plan->zero.push_back({block, range.offset, range.length});
    sums_.zero_bytes += range.length;
    counters_.Add(Counter::kZeroBytesReceived, range.length);
  } else {
    plan->fill.push_back({block->base + range.offset, range.length});
    plan->written.push_back({block, range.offset, range.length});
    sums_.data_bytes += range.length;
  }
  return absl::OkStatus();
}

absl::Status Session::OnRoundEnd(uint64_t number,
                                 std::span<const uint8_t> payload) {
  const auto theirs = DecodeSums(payload);
  if (!theirs.ok()) return theirs.status();
  MIG_RETURN_IF_ERROR(rules_.PeerRoundEnd(number));
  if (theirs->data_bytes != sums_.data_bytes ||
      theirs->zero_bytes != sums_.zero_bytes) {
    return PeerBroke(absl::StrCat(
        "round ", number, " with ", sums_.data_bytes, " bytes and ",
        sums_.zero_bytes, " zero bytes, where its end says ",
        theirs->data_bytes, " and ", theirs->zero_bytes));
  }
  sums_ = RoundSums();
  PushEvent(MIG_EVENT_ROUND_DONE, MIG_OK, number);
  ack_places_.push_back(Queue(FrameType::kRoundAck, number));
  return absl::OkStatus();
}

absl::Status Session::OnMessage(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  if (header.argument > std::numeric_limits<uint32_t>::max()) {
    return PeerBroke("a message type of more than 32 bits");
  }
  MIG_RETURN_IF_ERROR(messages_.OnMessage(payload->size()));
  CountMessage(/*sent=*/false);
  if (rules_.closing()) return absl::OkStatus();
  Deliver(static_cast<uint32_t>(header.argument),
          std::exchange(*payload, std::vector<uint8_t>()));
  return absl::OkStatus();
}

bool Session::InsideRoundOrExchange() const {
  return sums_.data_bytes != 0 || sums_.zero_bytes != 0 || their_table_;
}

absl::Status Session::OnBlockRemoved(uint32_t id) {
  MIG_RETURN_IF_ERROR(rules_.PeerBlockRemoved());
  Block* const block = blocks_.FindByPeerId(id);
  if (block == nullptr) {
    return PeerBroke(
        absl::StrCat("word that unknown block ", id, " was removed"));
  }
  const uint32_t ours = block->id;
  blocks_.Remove(ours);
  PushEvent(MIG_EVENT_BLOCK_REMOVED, MIG_OK, ours);
  return absl::OkStatus();
}

}  // namespace mig::tcp
