// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What happens inside progress: moving bytes, timers, failing, closing.
#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "tcp/session.h"

namespace mig::tcp {
namespace {

// Rule 3: what one step reads at most, so that a call with timeout 0 is short.
constexpr uint64_t kReadBudget = 16u << 20;
// A write is not worth waking a host for while this many ranges have no room.
constexpr size_t kWriteReadyRanges = kMaxBatchRanges;
// Nothing more is read while so many wait for the peer, whose frames would else
// fill this side's memory.
constexpr size_t kMaxAcks = 1024;

}  // namespace

uint64_t Session::Queue(FrameType type, uint64_t argument,
                        std::span<const uint8_t> payload) {
  FrameHeader header{.type = type};
  header.argument = argument;
  return link_->writer().Queue(header, payload);
}

uint64_t Session::QueueFrame(SharedFrame frame, uint64_t argument) {
  const uint64_t place =
      Queue(kSharedTypes[static_cast<size_t>(frame)], argument);
  if (frame == SharedFrame::kCredit) credit_place_ = place;
  // The switchover is worth a system call of its own, and before a host is busy
  // Progress will not be called soon.
  if (frame == SharedFrame::kOffer || frame == SharedFrame::kCommitted ||
      frame == SharedFrame::kBusy) {
    SendNow();
  }
  return place;
}

void Session::QueueAbort(const absl::Status& why, bool guest_not_taken) {
  const Abort abort = MakeAbort(why, guest_not_taken);
  FrameHeader header{.type = FrameType::kAbort};
  header.flags = abort.flags;
  header.argument = abort.argument;
  link_->writer().Queue(header, abort.text);
}

void Session::QueueMessage(uint32_t type,
                           std::span<const struct mig_iov> pieces) {
  FrameHeader header{.type = FrameType::kMessage};
  header.argument = type;
  link_->writer().Queue(header, {}, pieces);
}

// What fails here is told inside Progress.
void Session::SendNow() {
  if (send_failure_.ok()) send_failure_ = link_->PumpOut(host_->NowNs());
}

void Session::CountMessage(bool sent) {
  counters_.Add(sent ? Counter::kMessagesSent : Counter::kMessagesReceived, 1);
}

void Session::Step() {
  poller_->Wait(0);
  const uint64_t now_ns = host_->NowNs();
  StepConnection(now_ns);
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
  if (rules_.source()) link_->writer().EnableData(settings_.batches);
  Linked(link_->peer(), opened.agreement);
}

void Session::StepLink(uint64_t now_ns) {
  ReadLink(now_ns);
  if (usable()) CheckTimers(now_ns);
  if (usable()) GiveCredit();
  if (usable()) WriteLink(now_ns);
  if (!rules_.failed()) AnswerWaiters();
}

bool Session::MayRead() const {
  return !events_.full() && (ack_places_.size() < kMaxAcks ||
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
    if (events_.full()) link_->NoteHeld(now_ns);
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
  if (rules_.closing() && bye_sent_) return LinkEndedInPeace();
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

bool Session::RemovalDue() const {
  return !removals_.empty() &&
         link_->writer().HasFinished(removals_.front().place);
}

bool Session::WriteReadyDue() const {
  return write_waits_ && rules_.phase() == Phase::kRound &&
         rules_.WritesMayStart() &&
         link_->writer().RangeRoom() >= kWriteReadyRanges;
}

// Never two that wait to go out, or a peer that does not read would fill the
// queue.
bool Session::MayGiveCredit() const {
  return !credit_place_ || link_->writer().HasFinished(*credit_place_);
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
  TellSendReady();
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
  if (!ReadyToClose(now_ns)) return;
  link_.reset();
  opener_.reset();
  Closed();
}

bool Session::HasTransportWork() {
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
         WriteReadyDue() || messages_.SendReadyDue() || CreditDue();
}

uint64_t Session::TransportDeadlineNs() const {
  if (opener_ != nullptr) return opener_->DeadlineNs();
  if (link_ == nullptr || link_over_) return MIG_NO_DEADLINE;
  return link_->DueNs(/*reading=*/!rules_.failed() && MayRead());
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
