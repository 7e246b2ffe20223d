// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the peer sends on control. Everything in it is hostile until checked
// (H6).
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/session.h"

namespace mig::rdma {
absl::Status Session::OnFrame(const FrameHeader& header,
                              std::span<const uint8_t> payload,
                              std::vector<uint8_t>* whole) {
  if (rules_.failed()) return absl::OkStatus();
  switch (header.type) {
    case FrameType::kAbort:
      return OnAbort(header, payload);
    case FrameType::kBlocks:
      return OnBlocks(payload);
    case FrameType::kPrepared:
      if (std::exchange(peer_prepared_, true) || !preparing_) {
        return PeerBroke("word that it is prepared out of place");
      }
      return absl::OkStatus();
    case FrameType::kAsk:
      return OnAsk(payload);
    case FrameType::kKeys:
      return OnKeys(payload);
    case FrameType::kZero:
      return OnZero(payload);
    case FrameType::kRoundEnd:
      return OnRoundEnd(header.argument, payload);
    case FrameType::kRoundAck:
      return OnRoundAck(header.argument);
    case FrameType::kMessage:
      return OnMessage(header, whole);
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
      return OnBlockRemoved(header.argument);
    case FrameType::kHello:
    case FrameType::kAuth:
      return PeerBroke("a second handshake");
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
  channel().StopReading();
  Fail(MakeError(ours, absl::StrCat("the peer gave up: ", text)), Tell::kNobody,
       (header.flags & kAbortGuestNotTaken) != 0);
  return absl::OkStatus();
}

// One that comes while a round's data is on its way was sent after round_end,
// and is the host's after ROUND_DONE (C35).
absl::Status Session::OnMessage(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  if (!incoming_.Fits(payload->size())) {
    return PeerBroke(absl::StrCat("a message of ", payload->size(),
                                  " bytes beyond its credit"));
  }
  incoming_.Take(payload->size());
  counters_.Add(Counter::kMessagesReceived, 1);
  if (rules_.closing()) return absl::OkStatus();
  const uint32_t type = LongValue(header.argument);
  if (round_end_) {
    undelivered_.push_back({type, std::move(*payload)});
  } else {
    Deliver(type, std::move(*payload));
  }
  return absl::OkStatus();
}

void Session::Deliver(uint32_t type, std::vector<uint8_t> payload) {
  auto message = std::make_unique<Message>();
  message->payload = std::move(payload);
  struct mig_event event = {};
  event.type = MIG_EVENT_MESSAGE;
  event.time_ns = host_->NowNs();
  event.message = reinterpret_cast<struct mig_message*>(message.get());
  event.length = message->payload.size();
  event.data = event.length == 0 ? nullptr : message->payload.data();
  event.message_type = type;
  events_.push_back(event);
  messages_[message.get()] = std::move(message);
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
  if (round_end_ || zero_bytes_ != 0 || their_table_ || preparing_) {
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
  channel().Send(FrameType::kRefused);
  channel().StopReading();
  return absl::OkStatus();
}

absl::Status Session::OnRefused() {
  MIG_RETURN_IF_ERROR(rules_.PeerRefused());
  PushEvent(MIG_EVENT_HANDOVER_REFUSED);
  BreakData();
  channel().DropUnsent();
  drain_deadline_ns_ = host_->NowNs() + settings_.close_timeout_ns;
  channel().Send(FrameType::kBye);  // the destination waits for it in its close
  channel().StopReading();
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
  channel().Send(FrameType::kByeAck);
  channel().StopReading();
  return absl::OkStatus();
}

}  // namespace mig::rdma
