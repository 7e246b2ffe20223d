// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the peer sends. Everything in it is hostile until checked (H6).
#include <algorithm>
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
  return tcp::PayloadLimit(type, agreement_.max_message);
}

absl::Status Session::OnFrame(const FrameHeader& header,
                              std::vector<uint8_t>* payload) {
  switch (header.type) {
    case FrameType::kAbort:
      return OnAbort(header, *payload);
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
    case FrameType::kCredit:
      return OnCredit(header.argument);
    case FrameType::kBusy:
      return OnBusy(header.argument);
    case FrameType::kOffer:
      return OnOffer();
    case FrameType::kCommitted:
      MIG_RETURN_IF_ERROR(rules_.PeerCommitted());
      PushEvent(MIG_EVENT_COMMITTED);
      return absl::OkStatus();
    case FrameType::kRefused:
      return OnRefused();
    case FrameType::kWithdraw:
      return OnWithdraw();
    case FrameType::kBye:
      return OnBye();
    case FrameType::kByeAck:
      if (!bye_sent_)
        return PeerBroke("an answer to a farewell that was not said");
      bye_over_ = true;
      return absl::OkStatus();
    case FrameType::kBlockRemoved:
      if (header.argument > std::numeric_limits<uint32_t>::max()) {
        return PeerBroke("a block id of more than 32 bits");
      }
      return OnBlockRemoved(static_cast<uint32_t>(header.argument));
    default:
      return absl::OkStatus();  // a heartbeat: that it came is all it says
  }
}

absl::Status Session::OnAbort(const FrameHeader& header,
                              std::span<const uint8_t> payload) {
  const auto code = static_cast<int32_t>(static_cast<int64_t>(header.argument));
  const absl::string_view text(reinterpret_cast<const char*>(payload.data()),
                               payload.size());
  int32_t ours = MIG_E_PEER_FAILED;
  if (code == MIG_E_CANCELLED) ours = MIG_E_PEER_CANCELLED;
  if (code == MIG_E_PEER_MISMATCH) ours = MIG_E_PEER_MISMATCH;
  Fail(MakeError(ours, absl::StrCat("the peer gave up: ", text)), Tell::kNobody,
       (header.flags & kAbortGuestNotTaken) != 0);
  link_->reader().Hold();
  return absl::OkStatus();
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
  ack_places_.push_back(QueueFrame(FrameType::kRoundAck, number));
  return absl::OkStatus();
}

absl::Status Session::OnMessage(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  if (header.argument > std::numeric_limits<uint32_t>::max()) {
    return PeerBroke("a message type of more than 32 bits");
  }
  if (!incoming_.Fits(payload->size())) {
    return PeerBroke(absl::StrCat("a message of ", payload->size(),
                                  " bytes beyond its credit"));
  }
  incoming_.Take(payload->size());
  counters_.Add(Counter::kMessagesReceived, 1);
  if (rules_.closing()) return absl::OkStatus();
  auto message = std::make_unique<Message>();
  message->payload = std::move(*payload);
  *payload = std::vector<uint8_t>();
  struct mig_event event = {};
  event.type = MIG_EVENT_MESSAGE;
  event.time_ns = host_->NowNs();
  event.message = reinterpret_cast<struct mig_message*>(message.get());
  event.length = message->payload.size();
  event.data = event.length == 0 ? nullptr : message->payload.data();
  event.message_type = static_cast<uint32_t>(header.argument);
  events_.push_back(event);
  messages_[message.get()] = std::move(message);
  return absl::OkStatus();
}

absl::Status Session::OnCredit(uint64_t charge) {
  if (!outgoing_.GiveBack(charge)) {
    return PeerBroke(absl::StrCat("credit of ", charge, " bytes, where ",
                                  outgoing_.used(), " are under way"));
  }
  return absl::OkStatus();
}

absl::Status Session::OnBusy(uint64_t busy_ns) {
  // More than a host may ask for is cut (rule 13.6).
  peer_busy_until_ns_ =
      host_->NowNs() + std::min<uint64_t>(busy_ns, MIG_HOST_BUSY_MAX_NS);
  return absl::OkStatus();
}

absl::Status Session::OnOffer() {
  if (rules_.closing()) return absl::OkStatus();  // refused by our BYE
  if (sums_.data_bytes != 0 || sums_.zero_bytes != 0 || their_table_) {
    return PeerBroke("an offer of the guest inside a round or an exchange");
  }
  MIG_RETURN_IF_ERROR(rules_.PeerOffer());
  PushEvent(MIG_EVENT_HANDOVER);
  return absl::OkStatus();
}

absl::Status Session::OnWithdraw() {
  // Taken before: COMMITTED is on its way, and stands. Refused before: so is
  // that.
  if (rules_.closing()) return absl::OkStatus();
  MIG_RETURN_IF_ERROR(rules_.PeerWithdrew());
  if (rules_.phase() == Phase::kTaken) return absl::OkStatus();
  rules_.RenounceOffer();
  Fail(MakeError(MIG_E_PEER_CANCELLED,
                 "the source withdrew its offer and runs the guest itself"),
       Tell::kCaller);
  QueueFrame(FrameType::kRefused);
  link_->reader().Hold();
  return absl::OkStatus();
}

absl::Status Session::OnRefused() {
  MIG_RETURN_IF_ERROR(rules_.PeerRefused());
  PushEvent(MIG_EVENT_HANDOVER_REFUSED);
  link_->writer().DropUnstarted();
  drain_deadline_ns_ = host_->NowNs() + settings_.close_timeout_ns;
  QueueFrame(FrameType::kBye);  // the destination waits for it in its close
  link_->reader().Hold();
  return absl::OkStatus();
}

absl::Status Session::OnBye() {
  if (std::exchange(bye_received_, true)) return PeerBroke("a second farewell");
  bye_over_ = true;
  const bool offering = rules_.source() && rules_.phase() == Phase::kOffered;
  if (!rules_.closing() || offering) {
    // COMMITTED would have come before: whoever says this has no guest.
    const bool taken = rules_.phase() == Phase::kTaken;
    Fail(MakeError(MIG_E_PEER_CLOSED,
                   taken ? "the peer is done"
                         : "the peer closed before the migration was over"),
         Tell::kCaller, /*peer_renounced=*/true);
  }
  QueueFrame(FrameType::kByeAck);
  link_->reader().Hold();
  return absl::OkStatus();
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
