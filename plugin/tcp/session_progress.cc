// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What happens inside progress: moving bytes, timers, failing, closing.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "tcp/session.h"

namespace mig::tcp {
namespace {

// Rule 3: what one step reads at most, so that a call with timeout 0 is short.
constexpr uint64_t kReadBudget = 16u << 20;
// A write is not worth waking a host for while this many ranges have no room.
constexpr size_t kWriteReadyRanges = kMaxBatchRanges;
// Nothing more is read while so much waits for the host or for the peer, whose
// frames would else fill this side's memory.
constexpr size_t kMaxEvents = 4096;
constexpr size_t kMaxAcks = 1024;

}  // namespace

void Session::PushEvent(uint32_t type, int32_t code, uint64_t number) {
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
  event.time_ns = host_->NowNs();
  events_.push_back(event);
}

uint64_t Session::QueueFrame(FrameType type, uint64_t argument,
                             std::span<const uint8_t> payload) {
  FrameHeader header{.type = type};
  header.argument = argument;
  return link_->writer().Queue(header, payload);
}

void Session::QueueAbort(const absl::Status& why) {
  FrameHeader header{.type = FrameType::kAbort};
  // Nothing is read after this, so an offer on its way will not be seen.
  if (!rules_.MayTake()) header.flags = kAbortGuestNotTaken;
  header.argument = static_cast<uint64_t>(int64_t{ErrorCode(why)});
  const absl::string_view text = why.message().substr(0, kMaxAbortPayload);
  link_->writer().Queue(
      header, std::span<const uint8_t>(
                  reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

// The first error ends everything but answering (rule 15).
void Session::Fail(const absl::Status& why, Tell tell, bool peer_renounced) {
  if (rules_.failed()) return;
  const std::string prefix =
      peer_.empty() ? absl::StrCat(rules_.Doing(), ": ")
                    : absl::StrCat("peer ", peer_, ", ", rules_.Doing(), ": ");
  const absl::Status failure = Annotate(why, prefix);
  OfferFate offer = OfferFate::kNotLeft;
  if (offer_place_ && link_ != nullptr &&
      link_->writer().HasStarted(*offer_place_)) {
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
  if (link_ == nullptr) return;
  link_->writer().DropUnstarted();
  drain_deadline_ns_ = host_->NowNs() + settings_.close_timeout_ns;
  if (tell == Tell::kPeer) QueueAbort(why);
  if (tell == Tell::kNobody) link_over_ = true;
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
    QueueFrame(FrameType::kWithdraw);
    withdraw_deadline_ns_ = now_ns + agreement_.peer_timeout_ns;
    return;
  }
  Fail(MakeError(MIG_E_CANCELLED, "the host cancelled"), Tell::kPeer);
}

void Session::Step() {
  poller_->Wait(0);
  const uint64_t now_ns = host_->NowNs();
  if (cancel_asked_.load(std::memory_order_acquire)) HandleCancel(now_ns);
  if (opener_ != nullptr) StepOpener(now_ns);
  if (link_ != nullptr) {
    if (rules_.failed() || link_over_) {
      StepFailedLink(now_ns);
    } else {
      StepLink(now_ns);
    }
  }
  if (rules_.closing() && !closed_) StepClosing(now_ns);
  PublishCounters();
}

void Session::StepOpener(uint64_t now_ns) {
  Opened opened;
  const absl::StatusOr<bool> done = opener_->Step(now_ns, &opened);
  if (!done.ok()) {
    Fail(done.status(), Tell::kNobody);
    return;
  }
  if (!*done) return;
  link_ = std::move(opened.connection);
  agreement_ = opened.agreement;
  opener_.reset();
  peer_ = link_->peer();
  outgoing_.Open(agreement_.peer_window);
  if (rules_.source()) link_->writer().EnableData(settings_.batches);
  rules_.Connected();
  PushEvent(MIG_EVENT_CONNECTED);
}

void Session::StepLink(uint64_t now_ns) {
  ReadLink(now_ns);
  if (!rules_.failed() && !link_over_) CheckTimers(now_ns);
  if (!rules_.failed() && !link_over_) GiveCredit();
  if (!rules_.failed() && !link_over_) WriteLink(now_ns);
  if (!rules_.failed()) AnswerWaiters();
}

bool Session::MayRead() const {
  return events_.size() < kMaxEvents &&
         (ack_places_.size() < kMaxAcks ||
          link_->writer().HasFinished(ack_places_.front()));
}

void Session::ReadLink(uint64_t now_ns) {
  // The tables meet here, so that the event comes from inside progress, and
  // before what the peer sends once it has ours.
  if (table_sent_ && their_table_) {
    const absl::Status agreed = AgreeOnBlocks();
    if (!agreed.ok()) return Fail(agreed, Tell::kPeer);
  }
  while (!ack_places_.empty() &&
         link_->writer().HasFinished(ack_places_.front())) {
    ack_places_.pop_front();
  }
  if (!MayRead()) {
    // A host that is slow to take events says nothing of the peer.
    if (events_.size() >= kMaxEvents) link_->NoteHeld(now_ns);
    return;
  }
  bool ended = false;
  const absl::Status status = link_->PumpIn(this, kReadBudget, now_ns, &ended);
  if (!status.ok()) {
    const bool lost = ErrorCode(status) == MIG_E_PEER_LOST;
    if (lost && rules_.closing() && bye_sent_) return LinkEnded();
    return Fail(status, lost ? Tell::kNobody : Tell::kPeer);
  }
  if (ended) LinkEnded();
}

void Session::LinkEnded() {
  if (rules_.closing() && bye_sent_) {
    bye_over_ = link_over_ = true;
    return;
  }
  Fail(MakeError(MIG_E_PEER_LOST,
                 "the peer closed the connection without a word: it died"),
       Tell::kNobody);
}

void Session::WriteLink(uint64_t now_ns) {
  FrameWriter& writer = link_->writer();
  // Pages that wait for company go when the link has nothing else to do.
  if (writer.empty()) writer.Seal();
  absl::Status status = std::exchange(send_failure_, absl::OkStatus());
  if (status.ok()) status = link_->PumpOut(now_ns);
  if (!status.ok()) {
    // What the peer said before it went, such as COMMITTED, counts more.
    poller_->Wait(0);
    ReadLink(now_ns);
    const bool lost = ErrorCode(status) == MIG_E_PEER_LOST;
    if (!link_over_) Fail(status, lost ? Tell::kNobody : Tell::kPeer);
  }
}

void Session::CheckTimers(uint64_t now_ns) {
  const uint64_t heard =
      std::max(link_->last_received_ns(), peer_busy_until_ns_);
  if (now_ns > heard && now_ns - heard > agreement_.peer_timeout_ns) {
    Fail(MakeError(MIG_E_PEER_TIMEOUT,
                   absl::StrCat("the peer was silent for ",
                                (now_ns - heard) / 1'000'000,
                                " ms, more than peer-timeout ",
                                agreement_.peer_timeout_ns / 1'000'000,
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
  if (link_->writer().empty() &&
      now_ns - link_->last_sent_ns() >= HeartbeatInterval()) {
    QueueFrame(FrameType::kHeartbeat);
  }
}

bool Session::RemovalDue() const {
  return !removals_.empty() &&
         link_->writer().HasFinished(removals_.front().place);
}

bool Session::WriteReadyDue() const {
  return write_waits_ && rules_.phase() == Phase::kRound &&
         rules_.WritesMayStart() &&
         link_->writer().RangeRoom() >= kWriteReadyRanges;
}

bool Session::SendReadyDue() const {
  return send_waits_ && outgoing_.Fits(agreement_.max_message);
}

// In few frames, but never so late that the peer stands still; and never two
// that wait to go out, or a peer that does not read would fill the queue.
bool Session::CreditDue() const {
  return released_ > 0 &&
         (released_ >= incoming_.window() / 4 ||
          released_ == incoming_.used()) &&
         (!credit_place_ || link_->writer().HasFinished(*credit_place_));
}

void Session::GiveCredit() {
  if (!CreditDue()) return;
  incoming_.GiveBack(released_);
  credit_place_ = QueueFrame(FrameType::kCredit, released_);
  released_ = 0;
}

// Tells the host what it was made to wait for.
void Session::AnswerWaiters() {
  while (RemovalDue()) {
    const uint32_t id = removals_.front().id;
    removals_.erase(removals_.begin());
    blocks_.Remove(id);
    PushEvent(MIG_EVENT_BLOCK_REMOVED, MIG_OK, id);
  }
  if (WriteReadyDue()) {
    write_waits_ = false;
    PushEvent(MIG_EVENT_WRITE_READY);
  }
  if (SendReadyDue()) {
    send_waits_ = false;
    PushEvent(MIG_EVENT_SEND_READY);
  }
}

// Lets the last word out, and takes what still comes, since closing a socket
// with unread bytes makes the system throw our own away (RFC 1122, 4.2.2.13).
void Session::StepFailedLink(uint64_t now_ns) {
  // Also when guest memory can't be read and a batch stays cut short: the peer
  // must see the end at once.
  if (!link_over_ && (!link_->PumpOut(now_ns).ok() || link_->writer().empty() ||
                      now_ns >= drain_deadline_ns_)) {
    link_->stream().ShutdownWrite();
    link_over_ = true;
  }
  static thread_local std::array<uint8_t, 64u << 10> discarded;
  const struct iovec to = {discarded.data(), discarded.size()};
  for (int i = 0; i < 16; ++i) {
    if (link_->stream().Read(std::span<const struct iovec>(&to, 1)) <= 0) break;
  }
}

void Session::StepClosing(uint64_t now_ns) {
  const bool late = now_ns >= close_deadline_ns_;
  // The offer's outcome comes first: a withdrawal ends by its own deadline.
  if (link_ != nullptr && !rules_.failed() && !link_over_ && !bye_sent_) {
    if (rules_.phase() == Phase::kOffered) return;
    QueueFrame(FrameType::kBye);
    bye_sent_ = true;
  }
  const bool gone =
      link_ == nullptr || link_over_ || (bye_over_ && link_->writer().empty());
  if (!gone && !late) return;
  link_.reset();
  opener_.reset();
  closed_ = true;
  PushEvent(MIG_EVENT_CLOSED);
}

bool Session::HasWork() const {
  if (!events_.empty() || wake_asked_.load(std::memory_order_acquire)) {
    return true;
  }
  if (cancel_asked_.load(std::memory_order_acquire) && !cancel_handled_) {
    return true;
  }
  if (opener_ != nullptr && opener_->HasWork()) return true;
  if (rules_.closing() && !closed_ && (link_ == nullptr || link_over_)) {
    return true;
  }
  if (link_ == nullptr || link_over_) return false;
  if (rules_.failed()) return link_->writer().empty() || link_->CanSend();
  // An open batch can only follow what the stream has not taken yet.
  const FrameWriter& writer = link_->writer();
  return (link_->CanReceive() && MayRead()) || link_->CanSend() ||
         (writer.has_open_batch() && writer.empty()) || !send_failure_.ok() ||
         (table_sent_ && their_table_.has_value()) || RemovalDue() ||
         WriteReadyDue() || SendReadyDue() || CreditDue();
}

uint64_t Session::NextDeadline() const {
  if (closed_) return MIG_NO_DEADLINE;
  uint64_t deadline = MIG_NO_DEADLINE;
  if (opener_ != nullptr) deadline = opener_->DeadlineNs();
  if (rules_.closing()) deadline = std::min(deadline, close_deadline_ns_);
  if (rules_.failed() && link_ != nullptr && !link_over_) {
    deadline = std::min(deadline, drain_deadline_ns_);
  }
  if (link_ != nullptr && !rules_.failed() && !link_over_) {
    const uint64_t heard =
        std::max(link_->last_received_ns(), peer_busy_until_ns_);
    deadline = std::min(deadline, heard + agreement_.peer_timeout_ns + 1);
    if (link_->writer().empty()) {
      deadline =
          std::min(deadline, link_->last_sent_ns() + HeartbeatInterval());
    }
    if (withdraw_deadline_ns_ && rules_.phase() == Phase::kOffered) {
      deadline = std::min(deadline, *withdraw_deadline_ns_);
    }
  }
  return deadline;
}

bool Session::Arm(uint64_t* deadline_ns) const {
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
    const bool over = opener_ == nullptr && (link_ == nullptr || link_over_);
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

void Session::PublishCounters() {
  counters_.Set(Counter::kPeersRefused, refused_);
  if (link_ == nullptr) return;
  const WriterCounts& sent = link_->writer().counts();
  counters_.Set(Counter::kBytesSent, sent.data_bytes);
  counters_.Set(Counter::kWireBytesSent, sent.wire_bytes);
  counters_.Set(Counter::kBatches, sent.batches);
  counters_.Set(Counter::kRanges, sent.ranges);
  counters_.Set(Counter::kRangesMerged, sent.merged);
  counters_.Set(Counter::kSendCalls, sent.send_calls);
  const ReaderCounts& received = link_->reader().counts();
  counters_.Set(Counter::kBytesReceived, received.data_bytes);
  counters_.Set(Counter::kWireBytesReceived, received.wire_bytes);
  counters_.Set(Counter::kReceiveCalls, received.receive_calls);
  counters_.Set(Counter::kZeroBytesWritten, received.zeroed_bytes);
  counters_.Set(Counter::kRoundsDone, rules_.done_round());
}

}  // namespace mig::tcp
