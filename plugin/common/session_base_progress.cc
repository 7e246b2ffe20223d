// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What happens inside progress: timers, failing, closing, and how long to
// sleep.
#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/session_base.h"

namespace mig {

void SessionBase::PushEvent(uint32_t type, int32_t code, uint64_t number,
                            uint64_t length) {
  // A host that has closed waits for the end and for who has the guest.
  const bool outcome =
      type == MIG_EVENT_CLOSED || type == MIG_EVENT_COMMITTED ||
      type == MIG_EVENT_HANDOVER_REFUSED || type == MIG_EVENT_IN_DOUBT ||
      (type == MIG_EVENT_ERROR && offer_place_.has_value());
  if (rules_.closing() && !outcome) return;
  struct mig_event event = {};
  event.type = type;
  event.code = code;
  event.number = number;
  event.length = length;
  event.time_ns = host_->NowNs();
  events_.Push(event);
}

// The first error ends everything but answering (rule 15).
void SessionBase::Fail(const absl::Status& why, Tell tell,
                       bool peer_renounced) {
  if (rules_.failed()) return;
  const std::string prefix =
      peer_.empty() ? absl::StrCat(rules_.Doing(), ": ")
                    : absl::StrCat("peer ", peer_, ", ", rules_.Doing(), ": ");
  const absl::Status failure = Annotate(why, prefix);
  OfferFate offer = OfferFate::kNotLeft;
  if (offer_place_ && linked() && HasStarted(*offer_place_)) {
    offer = peer_renounced ? OfferFate::kRenounced : OfferFate::kMayHaveArrived;
  }
  const int32_t code = ErrorCode(failure);
  switch (rules_.Fail(failure, offer)) {
    case Ending::kPeerClosed:
      if (!std::exchange(peer_left_, true)) PushEvent(MIG_EVENT_PEER_CLOSED);
      if (tell != Tell::kCaller) link_over_ = true;
      return;
    case Ending::kInDoubt:
      PushEvent(MIG_EVENT_IN_DOUBT, code);
      break;
    case Ending::kRefused:
      PushEvent(MIG_EVENT_HANDOVER_REFUSED);
      break;
    case Ending::kError:
      PushEvent(MIG_EVENT_ERROR, code);
      break;
  }
  DropOpener();
  write_waits_ = false;
  messages_.StopWaiting();
  if (!linked()) return;
  DropUnsent();
  drain_deadline_ns_ = host_->NowNs() + close_timeout_ns_;
  // Nothing is read after this, so an offer on its way will not be seen.
  if (tell == Tell::kPeer) QueueAbort(why, !rules_.MayTake());
  if (tell != Tell::kCaller) StopReading();
  if (tell == Tell::kNobody) link_over_ = true;
}

void SessionBase::HandleCancel(uint64_t now_ns) {
  if (cancel_handled_) return;
  cancel_handled_ = true;
  if (rules_.phase() == Phase::kTaken || closed_) return;
  // Also after an error: a host that cancelled does not take the guest.
  rules_.RenounceOffer();
  events_.Withdraw(MIG_EVENT_HANDOVER);
  if (rules_.failed()) return;
  if (rules_.phase() == Phase::kOffered && rules_.source()) {
    if (withdraw_deadline_ns_) return;
    QueueFrame(SharedFrame::kWithdraw, 0);
    withdraw_deadline_ns_ = now_ns + agreement_.peer_timeout_ns;
    return;
  }
  Fail(MakeError(MIG_E_CANCELLED, "the host cancelled"), Tell::kPeer);
}

void SessionBase::StepConnection(uint64_t now_ns) {
  if (cancel_asked_.load(std::memory_order_acquire)) HandleCancel(now_ns);
  if (opening()) StepOpener(now_ns);
  if (!linked()) return;
  if (usable()) {
    StepLink(now_ns);
  } else {
    StepFailedLink(now_ns);
  }
}

void SessionBase::Linked(const std::string& peer,
                         const CommonAgreement& agreement) {
  DropOpener();
  peer_ = peer;
  agreement_ = agreement;
  last_look_ns_ = host_->NowNs();
  messages_.Open(agreement.peer_window, agreement.max_message);
  rules_.Connected();
  PushEvent(MIG_EVENT_CONNECTED);
}

uint64_t SessionBase::HeardNs() const {
  return std::max(LastReceivedNs(), peer_busy_until_ns_);
}

// A host that was busy elsewhere, as it had said, has not looked for what its
// peer sent meanwhile: that gets a moment to arrive, once in each silence.
void SessionBase::NoteLook(uint64_t now_ns, uint64_t heard_ns) {
  const uint64_t timeout = agreement_.peer_timeout_ns;
  const bool was_away = said_busy_ && now_ns - last_look_ns_ > timeout / 2;
  last_look_ns_ = now_ns;
  if (was_away && now_ns - std::min(now_ns, heard_ns) > timeout &&
      spared_silence_ns_ != heard_ns) {
    spared_silence_ns_ = heard_ns;
    spared_until_ns_ = now_ns + timeout / 4;
  }
}

void SessionBase::CheckTimers(uint64_t now_ns) {
  const uint64_t heard = HeardNs();
  const uint64_t timeout = agreement_.peer_timeout_ns;
  NoteLook(now_ns, heard);
  if (now_ns > heard && now_ns - heard > timeout &&
      now_ns >= spared_until_ns_) {
    Fail(MakeError(MIG_E_PEER_TIMEOUT,
                   absl::StrCat(
                       "the peer was silent for ", (now_ns - heard) / 1'000'000,
                       " ms, more than peer-timeout ", timeout / 1'000'000,
                       " ms: it is stopped, dead or cut off")),
         Tell::kPeer);
    return;
  }
  if (withdraw_deadline_ns_ && now_ns >= *withdraw_deadline_ns_ &&
      rules_.phase() == Phase::kOffered) {
    Fail(MakeError(MIG_E_CANCELLED,
                   "the offer was withdrawn, and the peer did not confirm it"),
         Tell::kPeer);
    return;
  }
  if (NothingQueued() && now_ns - LastSentNs() >= HeartbeatInterval()) {
    QueueFrame(SharedFrame::kHeartbeat, 0);
  }
}

void SessionBase::GiveCredit() {
  if (CreditDue()) QueueFrame(SharedFrame::kCredit, messages_.GiveCredit());
}

void SessionBase::TellSendReady() {
  if (!messages_.SendReadyDue()) return;
  messages_.StopWaiting();
  PushEvent(MIG_EVENT_SEND_READY);
}

bool SessionBase::ReadyToClose(uint64_t now_ns) {
  // The offer's outcome comes first: a withdrawal ends by its own deadline.
  if (linked() && usable() && !bye_sent_) {
    if (rules_.phase() == Phase::kOffered) return false;
    QueueFrame(SharedFrame::kBye, 0);
    bye_sent_ = true;
  }
  return !linked() || link_over_ || (bye_over_ && Settled()) ||
         now_ns >= close_deadline_ns_;
}

void SessionBase::Closed() {
  closed_ = true;
  PushEvent(MIG_EVENT_CLOSED);
}

bool SessionBase::HasWork() {
  if (!events_.empty() || wake_asked_.load(std::memory_order_acquire)) {
    return true;
  }
  if (cancel_asked_.load(std::memory_order_acquire) && !cancel_handled_) {
    return true;
  }
  return HasTransportWork();
}

uint64_t SessionBase::NextDeadline() const {
  if (closed_) return MIG_NO_DEADLINE;
  uint64_t deadline = TransportDeadlineNs();
  const auto earlier = [&deadline](uint64_t ns) {
    deadline = std::min(deadline, ns);
  };
  if (rules_.closing()) earlier(close_deadline_ns_);
  if (!linked() || link_over_) return deadline;
  if (rules_.failed()) {
    earlier(drain_deadline_ns_);
    return deadline;
  }
  earlier(
      std::max(HeardNs() + agreement_.peer_timeout_ns + 1, spared_until_ns_));
  if (NothingQueued()) earlier(LastSentNs() + HeartbeatInterval());
  if (withdraw_deadline_ns_ && rules_.phase() == Phase::kOffered) {
    earlier(*withdraw_deadline_ns_);
  }
  return deadline;
}

bool SessionBase::Arm(uint64_t* deadline_ns) {
  *deadline_ns = NextDeadline();
  return HasWork() || *deadline_ns <= host_->NowNs();
}

size_t SessionBase::TakeEvents(struct mig_event* events, size_t max,
                               size_t element_size) {
  bool offer_shown = false;
  const size_t count = events_.Take(events, max, element_size, &offer_shown);
  if (offer_shown) rules_.OfferShown();
  return count;
}

int64_t SessionBase::WaitNs(int64_t timeout_ns, int64_t slept_ns) {
  const int64_t wait_ns = timeout_ns < 0 ? -1 : timeout_ns - slept_ns;
  uint64_t deadline_ns = 0;
  if (Arm(&deadline_ns)) return 0;
  if (deadline_ns == MIG_NO_DEADLINE) return wait_ns;
  const uint64_t until = deadline_ns - std::min(deadline_ns, host_->NowNs());
  const auto bound = static_cast<int64_t>(
      std::min<uint64_t>(until, std::numeric_limits<int64_t>::max()));
  return wait_ns < 0 ? bound : std::min(wait_ns, bound);
}

absl::Status SessionBase::Progress(struct mig_event* events, size_t max,
                                   size_t element_size, int64_t timeout_ns,
                                   size_t* count) {
  if (timeout_ns < MIG_WAIT_FOREVER ||
      (host_->simulated_clock() && timeout_ns != 0)) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrCat("progress can't wait for ", timeout_ns,
                                  " ns: give 0 under a simulated clock, else "
                                  "0, a time, or MIG_WAIT_FOREVER"));
  }
  // How long this thread sleeps is real time even under a host's clock that
  // stands still.
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    try {
      Step();
    } catch (const std::bad_alloc&) {
      // What was under way is half done: only ending is safe.
      Fail(MakeError(MIG_E_MEMORY, "out of memory: free some and retry"),
           Tell::kPeer);
    }
    *count = TakeEvents(events, max, element_size);
    const bool woken = wake_asked_.exchange(false, std::memory_order_acq_rel);
    // Where nothing can come any more, waiting would be for ever.
    const bool over = !opening() && (!linked() || link_over_);
    const bool idle = closed_ || (over && !rules_.closing());
    if (*count > 0 || timeout_ns == 0 || idle || max == 0 || woken) {
      return absl::OkStatus();
    }
    const int64_t slept = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now() - start)
                              .count();
    if (timeout_ns > 0 && slept >= timeout_ns) return absl::OkStatus();
    poller_->Wait(WaitNs(timeout_ns, slept));
  }
}

}  // namespace mig
