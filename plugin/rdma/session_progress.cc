// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What happens inside progress: moving frames, timers, failing, closing.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/session.h"

namespace mig::rdma {
namespace {

// What one step takes at most, so that a call with timeout 0 is short.
constexpr int kFrameBudget = 256;

}  // namespace

void Session::PushEvent(uint32_t type, int32_t code, uint64_t number,
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
  events_.push_back(event);
}

void Session::SendAbort(const absl::Status& why) {
  FrameHeader header{.type = FrameType::kAbort};
  // Nothing is read after this, so an offer on its way will not be seen.
  if (!rules_.MayTake()) header.flags = kAbortGuestNotTaken;
  header.argument = static_cast<uint64_t>(int64_t{ErrorCode(why)});
  const absl::string_view text = why.message().substr(0, kMaxAbortPayload);
  const struct mig_iov piece = {text.data(), text.size()};
  channel().Send(header, std::span<const struct mig_iov>(&piece, 1));
}

// The first error ends everything but answering (rule 15).
void Session::Fail(const absl::Status& why, Tell tell, bool peer_renounced) {
  if (rules_.failed()) return;
  const std::string prefix =
      peer_.empty() ? absl::StrCat(rules_.Doing(), ": ")
                    : absl::StrCat("peer ", peer_, ", ", rules_.Doing(), ": ");
  const absl::Status failure = Annotate(why, prefix);
  OfferFate offer = OfferFate::kNotLeft;
  if (offer_place_ && linked() && channel().HasStarted(*offer_place_)) {
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
  opener_.reset();
  write_waits_ = send_waits_ = false;
  if (!linked()) return;
  BreakData();
  channel().DropUnsent();
  drain_deadline_ns_ = host_->NowNs() + settings_.close_timeout_ns;
  if (tell == Tell::kPeer) SendAbort(why);
  if (tell != Tell::kCaller) channel().StopReading();
  if (tell == Tell::kNobody) link_over_ = true;
}

// No byte moves from here on, in either direction; what was posted completes.
void Session::BreakData() {
  for (const auto& qp : opened_.data) qp->Break();
}

// Queue pairs first: afterwards no device touches what they used (C07).
void Session::DropLink() {
  if (!linked()) return;
  BreakData();
  for (const auto& qp : opened_.data) qp->Disconnect();
  opened_.control->qp().Disconnect();
  PublishCounters();
  opened_.data.clear();
  opened_.control.reset();
  writer_.reset();
  fences_.reset();
}

void Session::HandleCancel(uint64_t now_ns) {
  if (cancel_handled_) return;
  cancel_handled_ = true;
  if (rules_.phase() == Phase::kTaken || closed_) return;
  // Also after an error: a host that cancelled does not take the guest.
  rules_.RenounceOffer();
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].type == MIG_EVENT_HANDOVER) events_[i].type = 0;
  }
  if (rules_.failed()) return;
  if (rules_.phase() == Phase::kOffered && rules_.source()) {
    if (withdraw_deadline_ns_) return;
    channel().Send(FrameType::kWithdraw);
    withdraw_deadline_ns_ = now_ns + opened_.agreement.peer_timeout_ns;
    return;
  }
  Fail(MakeError(MIG_E_CANCELLED, "the host cancelled"), Tell::kPeer);
}

void Session::Step() {
  poller_->Wait(0);
  const uint64_t now_ns = host_->NowNs();
  if (cm_events_ != nullptr) more_events_ = io().Pump();
  if (cancel_asked_.load(std::memory_order_acquire)) HandleCancel(now_ns);
  if (opener_ != nullptr) StepOpener(now_ns);
  if (linked()) {
    if (rules_.failed() || link_over_) {
      StepFailedLink(now_ns);
    } else {
      StepLink(now_ns);
    }
  }
  StepRegistrations();
  if (rules_.closing() && !closed_) StepClosing(now_ns);
  PublishCounters();
  // What was posted goes at once, where nobody but this moves it.
  if (cm_events_ != nullptr) pool_->verbs()->Drive();
}

void Session::StepOpener(uint64_t now_ns) {
  const absl::StatusOr<bool> done = opener_->Step(now_ns, &opened_);
  if (!done.ok()) {
    Fail(done.status(), Tell::kNobody);
    return;
  }
  if (!*done) return;
  opener_.reset();
  peer_ = opened_.peer;
  outgoing_.Open(opened_.agreement.peer_window);
  last_received_ns_ = last_sent_ns_ = now_ns;
  rules_.Connected();
  PushEvent(MIG_EVENT_CONNECTED);
  const absl::Status data = OpenData();
  if (!data.ok()) Fail(data, Tell::kPeer);
}

void Session::StepLink(uint64_t now_ns) {
  const auto usable = [this] { return !rules_.failed() && !link_over_; };
  PollData();
  if (usable()) ReadLink(now_ns);
  if (usable()) CheckConnections(now_ns);
  if (usable()) FinishRound();
  if (usable()) PumpData();
  if (usable()) StepRemovals();
  if (usable()) CheckTimers(now_ns);
  if (usable()) GiveCredit();
  if (!rules_.failed()) AnswerWaiters();
  NoteTraffic(now_ns);
}

void Session::ReadLink(uint64_t now_ns) {
  // The tables meet here, so that the event comes from inside progress.
  if (table_sent_ && their_table_) {
    const absl::Status agreed = AgreeOnBlocks();
    if (!agreed.ok()) return Fail(agreed, Tell::kPeer);
  }
  if (!MayRead()) {
    // A host that is slow to take events says nothing of the peer.
    last_received_ns_ = now_ns;
    return;
  }
  int count = 0;
  const absl::Status status = channel().Poll(this, kFrameBudget, &count);
  if (status.ok() || rules_.failed()) return;
  const bool lost = !channel().status().ok();
  if (lost && ((rules_.closing() && bye_sent_) || bye_over_)) {
    bye_over_ = link_over_ = true;
    return;
  }
  Fail(status, lost ? Tell::kNobody : Tell::kPeer);
}

// A data queue pair that breaks may be the peer's way to end: then its last
// word is on its way, and says more.
void Session::DataLost(const absl::Status& why) {
  if (!data_lost_.ok()) return;
  data_lost_ = why;
  data_lost_deadline_ns_ = host_->NowNs() + kLastWordNs;
}

void Session::CheckConnections(uint64_t now_ns) {
  const absl::Status& control = opened_.control->qp().failure();
  if (!control.ok()) {
    if ((rules_.closing() && bye_sent_) || bye_over_) {
      bye_over_ = link_over_ = true;
      return;
    }
    // What the peer said before it went counts more.
    ReadLink(now_ns);
    if (!rules_.failed() && !link_over_) Fail(control, Tell::kNobody);
    return;
  }
  // Once the guest is offered nothing is written any more.
  if (rules_.phase() >= Phase::kOffered || rules_.closing()) return;
  for (const auto& qp : opened_.data) {
    if (!qp->failure().ok()) DataLost(qp->failure());
  }
  if (!data_lost_.ok() && now_ns >= data_lost_deadline_ns_) {
    Fail(data_lost_, Tell::kPeer);
  }
}

void Session::NoteTraffic(uint64_t now_ns) {
  if (!linked()) return;
  const ControlCounts& counts = channel().counts();
  if (std::exchange(frames_seen_, counts.frames_received) !=
      counts.frames_received) {
    last_received_ns_ = now_ns;
  }
  if (std::exchange(sends_seen_, counts.sends) != counts.sends) {
    last_sent_ns_ = now_ns;
  }
}

void Session::CheckTimers(uint64_t now_ns) {
  NoteTraffic(now_ns);
  const uint64_t timeout = opened_.agreement.peer_timeout_ns;
  const uint64_t heard = std::max(last_received_ns_, peer_busy_until_ns_);
  if (now_ns > heard && now_ns - heard > timeout) {
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
  if (channel().unsent_frames() == 0 &&
      now_ns - last_sent_ns_ >= HeartbeatInterval()) {
    channel().Send(FrameType::kHeartbeat);
    last_sent_ns_ = now_ns;
  }
}

bool Session::WriteReadyDue() {
  return write_waits_ && rules_.phase() == Phase::kRound &&
         writer_->WriteReadyDue();
}

// In few frames, but never so late that the peer stands still.
bool Session::CreditDue() const {
  return released_ > 0 &&
         (released_ >= incoming_.window() / 4 || released_ == incoming_.used());
}

void Session::GiveCredit() {
  if (!CreditDue()) return;
  incoming_.GiveBack(released_);
  channel().Send(FrameType::kCredit, released_);
  released_ = 0;
}

// Tells the host what it was made to wait for.
void Session::AnswerWaiters() {
  if (WriteReadyDue()) {
    write_waits_ = false;
    writer_->ToldWriteReady();
    PushEvent(MIG_EVENT_WRITE_READY);
  }
  if (SendReadyDue()) {
    send_waits_ = false;
    PushEvent(MIG_EVENT_SEND_READY);
  }
}

// Lets the last word out, and takes completions until all have come (C07).
void Session::StepFailedLink(uint64_t now_ns) {
  PollData();
  int count = 0;
  channel().Poll(this, kFrameBudget, &count).IgnoreError();
  const bool gone = !channel().status().ok() || channel().Settled() ||
                    !opened_.control->qp().failure().ok();
  if (!link_over_ && (gone || now_ns >= drain_deadline_ns_)) link_over_ = true;
  if (!link_over_) return;
  for (const auto& qp : opened_.data) qp->Disconnect();
  opened_.control->qp().Disconnect();
}

void Session::StepClosing(uint64_t now_ns) {
  const bool late = now_ns >= close_deadline_ns_;
  // The offer's outcome comes first: a withdrawal ends by its own deadline.
  if (linked() && !rules_.failed() && !link_over_ && !bye_sent_) {
    if (rules_.phase() == Phase::kOffered) return;
    channel().Send(FrameType::kBye);
    bye_sent_ = true;
  }
  const bool gone =
      !linked() || link_over_ || (bye_over_ && channel().Settled());
  if (!gone && !late) return;
  DropLink();
  opener_.reset();
  bool released = true;
  for (const auto& [id, registration] : registrations_) {
    registration->Release();
    released = released && registration->released();
  }
  // The host may unmap the memory at CLOSED.
  if (!released) return;
  registrations_.clear();
  closed_ = true;
  PushEvent(MIG_EVENT_CLOSED);
}

bool Session::HasWork() {
  if (!events_.empty() || wake_asked_.load(std::memory_order_acquire)) {
    return true;
  }
  if (cancel_asked_.load(std::memory_order_acquire) && !cancel_handled_) {
    return true;
  }
  if (more_events_) return true;
  if (opener_ != nullptr) return opener_->HasWork();
  const bool slices = pool_->settings().threads == 0 && rails_.HasWork();
  if (slices && !closed_) return true;
  if (rules_.closing() && !closed_ && (!linked() || link_over_)) {
    // What is being deregistered wakes the session when it is done.
    return linked() || std::all_of(registrations_.begin(), registrations_.end(),
                                   [](const auto& entry) {
                                     return entry.second->released();
                                   });
  }
  if (!linked()) return false;
  // A completion between the last poll and this brings no event.
  bool armed = opened_.control->qp().Arm();
  for (const auto& qp : opened_.data) armed = qp->Arm() || armed;
  if (armed) return true;
  if (link_over_) return false;
  if (rules_.failed()) return channel().Settled();
  return (table_sent_ && their_table_.has_value()) || DataWork() ||
         RemovalWork() || WriteReadyDue() || SendReadyDue() || CreditDue();
}

uint64_t Session::NextDeadline() const {
  if (closed_) return MIG_NO_DEADLINE;
  uint64_t deadline = MIG_NO_DEADLINE;
  const auto earlier = [&deadline](uint64_t ns) {
    deadline = std::min(deadline, ns);
  };
  if (cm_events_ != nullptr) earlier(pool_->verbs()->NextDueNs());
  if (opener_ != nullptr) earlier(opener_->DeadlineNs());
  if (rules_.closing()) earlier(close_deadline_ns_);
  if (!linked() || link_over_) return deadline;
  if (rules_.failed()) {
    earlier(drain_deadline_ns_);
    return deadline;
  }
  earlier(std::max(last_received_ns_, peer_busy_until_ns_) +
          opened_.agreement.peer_timeout_ns + 1);
  if (channel().unsent_frames() == 0) {
    earlier(last_sent_ns_ + HeartbeatInterval());
  }
  if (writer_ != nullptr) earlier(writer_->NextDueNs());
  if (!data_lost_.ok()) earlier(data_lost_deadline_ns_);
  if (withdraw_deadline_ns_ && rules_.phase() == Phase::kOffered) {
    earlier(*withdraw_deadline_ns_);
  }
  return deadline;
}

bool Session::Arm(uint64_t* deadline_ns) {
  *deadline_ns = NextDeadline();
  return HasWork() || *deadline_ns <= host_->NowNs();
}

size_t Session::TakeEvents(struct mig_event* events, size_t max,
                           size_t element_size) {
  auto* to = reinterpret_cast<unsigned char*>(events);
  size_t count = 0;
  while (count < max && !events_.empty()) {
    const struct mig_event event = events_.front();
    events_.pop_front();
    if (event.type == 0) continue;
    if (event.type == MIG_EVENT_HANDOVER) rules_.OfferShown();
    std::memset(to + count * element_size, 0, element_size);
    std::memcpy(to + count * element_size, &event,
                std::min(element_size, sizeof(event)));
    ++count;
  }
  return count;
}

absl::Status Session::Progress(struct mig_event* events, size_t max,
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
    const bool over = opener_ == nullptr && (!linked() || link_over_);
    const bool idle = closed_ || (over && !rules_.closing());
    if (*count > 0 || timeout_ns == 0 || idle || max == 0 || woken) {
      return absl::OkStatus();
    }
    const int64_t slept = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now() - start)
                              .count();
    if (timeout_ns > 0 && slept >= timeout_ns) return absl::OkStatus();
    int64_t wait_ns = timeout_ns < 0 ? -1 : timeout_ns - slept;
    uint64_t deadline_ns = 0;
    if (Arm(&deadline_ns)) {
      wait_ns = 0;
    } else if (deadline_ns != MIG_NO_DEADLINE) {
      const uint64_t until =
          deadline_ns - std::min(deadline_ns, host_->NowNs());
      const auto bound =
          static_cast<int64_t>(std::min<uint64_t>(until, INT64_MAX));
      wait_ns = wait_ns < 0 ? bound : std::min(wait_ns, bound);
    }
    poller_->Wait(wait_ns);
  }
}

}  // namespace mig::rdma
