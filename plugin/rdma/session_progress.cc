// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What happens inside progress: moving frames, timers, failing, closing.
#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/session.h"

namespace mig::rdma {
namespace {

// What one step takes at most, so that a call with timeout 0 is short.
constexpr int kFrameBudget = 256;

}  // namespace

uint64_t Session::QueueFrame(SharedFrame frame, uint64_t argument) {
  const uint64_t place =
      channel().Send(kSharedTypes[static_cast<size_t>(frame)], argument);
  // Progress will not be called soon.
  if (frame == SharedFrame::kBusy) pool_->verbs()->Drive();
  return place;
}

void Session::QueueAbort(const absl::Status& why, bool guest_not_taken) {
  const Abort abort = MakeAbort(why, guest_not_taken);
  FrameHeader header{.type = FrameType::kAbort};
  header.flags = abort.flags;
  header.argument = abort.argument;
  const struct mig_iov piece = {abort.text.data(), abort.text.size()};
  channel().Send(header, std::span<const struct mig_iov>(&piece, 1));
}

void Session::CountMessage(bool sent) {
  counters_.Add(sent ? Counter::kMessagesSent : Counter::kMessagesReceived, 1);
}

void Session::DropUnsent() {
  BreakData();
  channel().DropUnsent();
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

void Session::Step() {
  poller_->Wait(0);
  const uint64_t now_ns = host_->NowNs();
  if (cm_events_ != nullptr) more_events_ = io().Pump();
  StepConnection(now_ns);
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
  last_received_ns_ = last_sent_ns_ = now_ns;
  Linked(opened_.peer, opened_.agreement);
  const absl::Status data = OpenData();
  if (!data.ok()) Fail(data, Tell::kPeer);
}

void Session::StepLink(uint64_t now_ns) {
  PollData();
  if (usable()) ReadLink(now_ns);
  if (usable()) CheckConnections(now_ns);
  if (usable()) FinishRound();
  if (usable()) PumpData();
  if (usable()) StepRemovals();
  NoteTraffic(now_ns);
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
  if (events_.full()) {
    // A host that is slow to take events says nothing of the peer.
    last_received_ns_ = now_ns;
    return;
  }
  int count = 0;
  const absl::Status status = channel().Poll(this, kFrameBudget, &count);
  if (status.ok() || rules_.failed()) return;
  const bool lost = !channel().status().ok();
  if (lost && ((rules_.closing() && bye_sent_) || bye_over_)) {
    return LinkEndedInPeace();
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
      return LinkEndedInPeace();
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
  // A SLOTS frame shows that the peer lives, for it sends nothing else while it
  // only receives.
  if (std::exchange(receives_seen_, counts.receives) != counts.receives) {
    last_received_ns_ = now_ns;
  }
  if (std::exchange(sends_seen_, counts.sends) != counts.sends) {
    last_sent_ns_ = now_ns;
  }
}

bool Session::WriteReadyDue() {
  return write_waits_ && rules_.phase() == Phase::kRound &&
         writer_->WriteReadyDue();
}

// Tells the host what it was made to wait for.
void Session::AnswerWaiters() {
  if (WriteReadyDue()) {
    write_waits_ = false;
    writer_->ToldWriteReady();
    PushEvent(MIG_EVENT_WRITE_READY);
  }
  TellSendReady();
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
  if (!ReadyToClose(now_ns)) return;
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
  Closed();
}

bool Session::HasTransportWork() {
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
         RemovalWork() || WriteReadyDue() || messages_.SendReadyDue() ||
         CreditDue();
}

uint64_t Session::TransportDeadlineNs() const {
  uint64_t deadline = MIG_NO_DEADLINE;
  const auto earlier = [&deadline](uint64_t ns) {
    deadline = std::min(deadline, ns);
  };
  if (cm_events_ != nullptr) earlier(pool_->verbs()->NextDueNs());
  if (opener_ != nullptr) earlier(opener_->DeadlineNs());
  if (!closed_) earlier(rails_.DueNs());
  if (!linked() || !usable()) return deadline;
  if (writer_ != nullptr) earlier(writer_->NextDueNs());
  if (!data_lost_.ok()) earlier(data_lost_deadline_ns_);
  return deadline;
}

}  // namespace mig::rdma
