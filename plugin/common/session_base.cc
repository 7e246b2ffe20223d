// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the host calls. Nothing here waits.
#include "common/session_base.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig {

SessionBase::SessionBase(const Host* host, std::unique_ptr<Poller> poller,
                         const CommonHello& hello, uint64_t close_timeout_ns)
    : host_(host),
      poller_(std::move(poller)),
      rules_(hello.role),
      messages_(hello.window),
      close_timeout_ns_(close_timeout_ns) {}

absl::StatusOr<std::string> SessionBase::LocalAddress() const {
  if (local_uri_.empty()) {
    return MakeError(MIG_E_STATE,
                     "only a session that listens has a local address");
  }
  return local_uri_;
}

absl::Status SessionBase::RemoveBlock(uint32_t id) {
  MIG_RETURN_IF_ERROR(rules_.CheckRemoveBlock());
  Block* const block = blocks_.Find(id);
  if (block == nullptr || block->removing) {
    return MakeError(MIG_E_BLOCK,
                     absl::StrCat("there is no block ", id, " to remove"));
  }
  if (!block->agreed) {
    blocks_.Remove(id);
    PushEvent(MIG_EVENT_BLOCK_REMOVED, MIG_OK, id);
    return absl::OkStatus();
  }
  if (!rules_.source()) {
    return MakeError(MIG_E_STATE,
                     absl::StrCat("block '", block->name,
                                  "' is in use: the source removes it, and "
                                  "BLOCK_REMOVED comes here too"));
  }
  block->removing = true;
  BeginRemoval(block);
  return absl::OkStatus();
}

// After PEER_CLOSED nothing goes out, and no credit would come back.
absl::Status SessionBase::CheckPeerThere() const {
  if (!link_over_) return absl::OkStatus();
  return MakeError(MIG_E_STATE, "the peer has left: close this session");
}

absl::StatusOr<bool> SessionBase::Send(uint32_t channel, uint32_t type,
                                       const struct mig_iov* iov, size_t count,
                                       size_t element_size) {
  MIG_RETURN_IF_ERROR(rules_.CheckSend());
  MIG_RETURN_IF_ERROR(CheckPeerThere());
  if (channel != 0) {
    return MakeError(MIG_E_ARGUMENT, absl::StrCat("channel ", channel,
                                                  " does not exist: use 0"));
  }
  const auto pieces = messages_.Pieces(iov, count, element_size);
  if (!pieces.ok()) return pieces.status();
  uint64_t length = 0;
  for (const struct mig_iov& piece : *pieces) length += piece.length;
  if (!messages_.TakeCredit(length)) {
    CountSendStall();
    return false;
  }
  QueueMessage(type, *pieces);
  CountMessage(/*sent=*/true);
  return true;
}

void SessionBase::MessageRelease(struct mig_message* message) {
  if (messages_.Release(message) && linked() && usable()) GiveCredit();
}

struct mig_event_fd SessionBase::EventFd() const {
  return {poller_->fd(), POLLIN};
}

absl::Status SessionBase::Handover() {
  if (cancel_asked_.load(std::memory_order_acquire)) {
    HandleCancel(host_->NowNs());
  }
  MIG_RETURN_IF_ERROR(rules_.Handover());
  if (rules_.source()) {
    offer_place_ = QueueFrame(SharedFrame::kOffer, 0);
    return absl::OkStatus();
  }
  GuestTaken();
  if (linked() && !rules_.failed()) QueueFrame(SharedFrame::kCommitted, 0);
  return absl::OkStatus();
}

absl::StatusOr<bool> SessionBase::HostBusy(uint64_t max_ns) {
  MIG_RETURN_IF_ERROR(rules_.CheckHostBusy());
  if (max_ns > MIG_HOST_BUSY_MAX_NS) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrCat("a host can't be busy for ", max_ns,
                                  " ns: say it again every ",
                                  MIG_HOST_BUSY_MAX_NS, " ns at the latest"));
  }
  MIG_RETURN_IF_ERROR(CheckPeerThere());
  said_busy_ = max_ns > 0;
  // Behind a long message, or without the peer's credit, it can't go yet.
  if (!busy_word_ || busy_word_->max_ns != max_ns) {
    busy_word_ = {QueueFrame(SharedFrame::kBusy, max_ns), max_ns};
  }
  if (!HasFinished(busy_word_->place)) return false;
  busy_word_.reset();
  return true;
}

void SessionBase::Cancel() {
  cancel_asked_.store(true, std::memory_order_release);
  poller_->Wake();
}

void SessionBase::Wake() {
  wake_asked_.store(true, std::memory_order_release);
  poller_->Wake();
}

void SessionBase::Close() {
  if (rules_.closing()) return;
  const uint64_t now_ns = host_->NowNs();
  const bool offered = rules_.phase() == Phase::kOffered && !rules_.failed();
  rules_.Closing();
  DropOpener();
  close_deadline_ns_ = now_ns + close_timeout_ns_;
  if (!linked() || !usable()) return;
  if (offered && rules_.source()) {
    if (!withdraw_deadline_ns_) QueueFrame(SharedFrame::kWithdraw, 0);
    withdraw_deadline_ns_ = close_deadline_ns_;
    return;
  }
  if (offered) {
    rules_.RenounceOffer();
    QueueFrame(SharedFrame::kRefused, 0);
  }
  QueueHeld();
  if (!bye_over_) QueueFrame(SharedFrame::kBye, 0);
  bye_sent_ = true;
}

void SessionBase::FillCaps(const CommonHello& hello,
                           struct mig_caps* caps) const {
  const bool agreed = agreement_.wire_version != 0;
  if (agreement_.authenticated) caps->flags |= MIG_CAP_AUTHENTICATED;
  caps->max_message = agreed ? agreement_.max_message : hello.max_message;
  caps->peer_timeout_ns =
      agreed ? agreement_.peer_timeout_ns : hello.peer_timeout_ns;
  caps->extensions = "";
}

}  // namespace mig
