// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the peer says. Everything in it is hostile until checked (H6).
#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/peer_error.h"
#include "common/session_base.h"

namespace mig {

absl::Status SessionBase::OnSharedFrame(SharedFrame frame, uint64_t argument) {
  switch (frame) {
    case SharedFrame::kBusy:
      // More than a host may ask for is cut (rule 13.6).
      peer_busy_until_ns_ =
          host_->NowNs() + std::min<uint64_t>(argument, MIG_HOST_BUSY_MAX_NS);
      return absl::OkStatus();
    case SharedFrame::kCredit:
      return messages_.OnCredit(argument);
    case SharedFrame::kOffer:
      return OnOffer();
    case SharedFrame::kCommitted:
      MIG_RETURN_IF_ERROR(rules_.PeerCommitted());
      PushEvent(MIG_EVENT_COMMITTED);
      return absl::OkStatus();
    case SharedFrame::kRefused:
      return OnRefused();
    case SharedFrame::kWithdraw:
      return OnWithdraw();
    case SharedFrame::kBye:
      return OnBye();
    case SharedFrame::kByeAck:
      if (!bye_sent_) {
        return PeerBroke("an answer to a farewell that was not said");
      }
      bye_over_ = true;
      return absl::OkStatus();
    default:
      return absl::OkStatus();  // a heartbeat: that it came is all it says
  }
}

absl::Status SessionBase::OnAbort(uint8_t flags, uint64_t argument,
                                  std::span<const uint8_t> text) {
  StopReading();
  Fail(PeerGaveUp(argument, text), Tell::kNobody,
       (flags & kAbortGuestNotTaken) != 0);
  return absl::OkStatus();
}

void SessionBase::Deliver(uint32_t type, std::vector<uint8_t> payload) {
  struct mig_event event = messages_.Keep(type, std::move(payload));
  event.time_ns = host_->NowNs();
  events_.Push(event);
}

absl::Status SessionBase::OnOffer() {
  if (rules_.closing()) return absl::OkStatus();  // refused by our BYE
  if (InsideRoundOrExchange()) {
    return PeerBroke("an offer of the guest inside a round or an exchange");
  }
  MIG_RETURN_IF_ERROR(rules_.PeerOffer());
  PushEvent(MIG_EVENT_HANDOVER);
  return absl::OkStatus();
}

absl::Status SessionBase::OnWithdraw() {
  // Taken before: COMMITTED is on its way, and stands. Refused before: so is
  // that.
  if (rules_.closing()) return absl::OkStatus();
  MIG_RETURN_IF_ERROR(rules_.PeerWithdrew());
  if (rules_.phase() == Phase::kTaken) return absl::OkStatus();
  rules_.RenounceOffer();
  Fail(MakeError(MIG_E_PEER_CANCELLED,
                 "the source withdrew its offer and runs the guest itself"),
       Tell::kCaller);
  QueueFrame(SharedFrame::kRefused, 0);
  StopReading();
  return absl::OkStatus();
}

absl::Status SessionBase::OnRefused() {
  MIG_RETURN_IF_ERROR(rules_.PeerRefused());
  PushEvent(MIG_EVENT_HANDOVER_REFUSED);
  DropUnsent();
  drain_deadline_ns_ = host_->NowNs() + close_timeout_ns_;
  // The destination waits for it in its close.
  QueueFrame(SharedFrame::kBye, 0);
  StopReading();
  return absl::OkStatus();
}

absl::Status SessionBase::OnBye() {
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
  QueueFrame(SharedFrame::kByeAck, 0);
  StopReading();
  return absl::OkStatus();
}

}  // namespace mig
