// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the host calls. Nothing here waits.
#include "rdma/session.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {

Session::Session(const Host* host, std::shared_ptr<DevicePool> pool,
                 SessionSettings settings, std::unique_ptr<Poller> poller)
    : host_(host),
      pool_(std::move(pool)),
      settings_(std::move(settings)),
      poller_(std::move(poller)),
      rules_(settings_.opener.hello.role),
      rails_(pool_.get()) {
  incoming_.Open(settings_.opener.hello.window);
  settings_.opener.guest_device = [this](const rdma_cm_id* id) {
    return rails_.Of(id);
  };
  settings_.opener.prepare = [this](uint16_t index, CmQp* qp) {
    return PrepareQp(index, qp);
  };
}

// Queue pairs go before the memory that they may touch.
Session::~Session() {
  opener_.reset();
  DropLink();
  registrations_.clear();
  if (ErrorCode(rules_.failure()) == MIG_E_DEVICE_REMOVED) rails_.Retire();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Host* host, std::shared_ptr<DevicePool> pool,
    SessionSettings settings) {
  auto poller = Poller::Create();
  if (!poller.ok()) return poller.status();
  return std::unique_ptr<Session>(new Session(
      host, std::move(pool), std::move(settings), *std::move(poller)));
}

Io Session::io() const {
  return {pool_->verbs(), host_, poller_.get(), cm_events_.get(),
          devices_.get()};
}

absl::Status Session::OpenIo() {
  if (cm_events_ != nullptr) return absl::OkStatus();
  auto events = CmEvents::Create(pool_->verbs(), poller_.get());
  if (!events.ok()) return events.status();
  cm_events_ = *std::move(events);
  devices_ = std::make_unique<DeviceSet>(pool_->verbs(), poller_.get());
  return absl::OkStatus();
}

absl::Status Session::Listen(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_DESTINATION));
  MIG_RETURN_IF_ERROR(ParseUri(uri).status());
  MIG_RETURN_IF_ERROR(OpenIo());
  auto opener = StartListener(uri, settings_.opener, io(), &refused_);
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  local_uri_ = opener_->LocalUri();
  rules_.Connecting();
  return absl::OkStatus();
}

absl::Status Session::Connect(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_SOURCE));
  MIG_RETURN_IF_ERROR(ParseUri(uri).status());
  MIG_RETURN_IF_ERROR(OpenIo());
  auto opener = StartConnector(uri, settings_.opener, io());
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  peer_ = std::string(uri);
  rules_.Connecting();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Session::LocalAddress() const {
  if (local_uri_.empty()) {
    return MakeError(MIG_E_STATE,
                     "only a session that listens has a local address");
  }
  return local_uri_;
}

absl::Status Session::AddBlock(const struct mig_block& block) {
  MIG_RETURN_IF_ERROR(rules_.CheckAddBlock());
  return blocks_.Add(block, /*pins=*/true);
}

absl::Status Session::RemoveBlock(uint32_t id) {
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
  removals_.push_back({.id = id});
  return absl::OkStatus();
}

absl::Status Session::Exchange() {
  MIG_RETURN_IF_ERROR(rules_.CheckExchange());
  std::vector<WireBlock> added;
  for (BlockDescription& about : blocks_.NewBlocks()) {
    WireBlock block;
    if (!rules_.source()) {
      block.address = reinterpret_cast<uintptr_t>(blocks_.Find(about.id)->base);
    }
    block.description = std::move(about);
    added.push_back(std::move(block));
  }
  const std::vector<uint8_t> table = EncodeBlocks(added);
  if (added.size() > kMaxBlocks || table.size() > kMaxTablePayload) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("the table of ", added.size(), " blocks takes ",
                     table.size(), " bytes, and at most ", kMaxBlocks,
                     " blocks and ", kMaxTablePayload,
                     " bytes fit: use fewer blocks or shorter names"));
  }
  channel().Send(FrameType::kBlocks, 0, table);
  rules_.ExchangeBegun();
  table_sent_ = true;
  // The peer's table may be here already; Progress holds them together.
  return absl::OkStatus();
}

absl::Status Session::RoundBegin(uint64_t number, uint32_t flags) {
  MIG_RETURN_IF_ERROR(rules_.RoundBegin(number, flags));
  writer_->RoundBegin(number, rules_.strict());
  return absl::OkStatus();
}

absl::Status Session::Write(const struct mig_range* ranges, size_t count,
                            size_t element_size, size_t* accepted,
                            uint64_t* partial) {
  *accepted = 0;
  *partial = 0;
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  absl::Status status =
      writer_->Write(ranges, count, element_size, accepted, partial);
  if (!status.ok()) {
    if (ErrorCode(status) == MIG_E_STRICT) Fail(status, Tell::kPeer);
    return status;
  }
  if (*accepted < count) {
    write_waits_ = true;
    counters_.Add(Counter::kWriteStalls, 1);
  }
  SendRequests();
  return absl::OkStatus();
}

absl::Status Session::Flush() {
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  writer_->Flush();
  SendRequests();
  return absl::OkStatus();
}

absl::Status Session::RoundEnd(uint64_t number) {
  MIG_RETURN_IF_ERROR(rules_.RoundEnd(number));
  write_waits_ = false;
  writer_->RoundEnd();
  PumpData();
  return absl::OkStatus();
}

// After PEER_CLOSED nothing goes out, and no credit would come back.
absl::Status Session::CheckPeerThere() const {
  if (!link_over_) return absl::OkStatus();
  return MakeError(MIG_E_STATE, "the peer has left: close this session");
}

absl::StatusOr<bool> Session::Send(uint32_t channel, uint32_t type,
                                   const struct mig_iov* iov, size_t count,
                                   size_t element_size) {
  MIG_RETURN_IF_ERROR(rules_.CheckSend());
  MIG_RETURN_IF_ERROR(CheckPeerThere());
  if (channel != 0) {
    return MakeError(MIG_E_ARGUMENT, absl::StrCat("channel ", channel,
                                                  " does not exist: use 0"));
  }
  std::vector<struct mig_iov> pieces;
  pieces.reserve(count);
  const uint64_t most = opened_.agreement.max_message;
  uint64_t length = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& piece = *reinterpret_cast<const struct mig_iov*>(
        reinterpret_cast<const unsigned char*>(iov) + i * element_size);
    if ((piece.base == nullptr && piece.length > 0) ||
        piece.length > most - length) {
      return MakeError(
          MIG_E_ARGUMENT,
          absl::StrCat("a message has a null piece or more than the ", most,
                       " bytes agreed: send it in several messages"));
    }
    length += piece.length;
    pieces.push_back(piece);
  }
  if (!outgoing_.Fits(length)) {
    send_waits_ = true;
    counters_.Add(Counter::kSendStalls, 1);
    return false;
  }
  outgoing_.Take(length);
  SendMessage(type, pieces);
  counters_.Add(Counter::kMessagesSent, 1);
  return true;
}

void Session::MessageRelease(struct mig_message* message) {
  const auto found = messages_.find(message);
  if (found == messages_.end()) return;
  released_ += MessageCharge(found->second->payload.size());
  messages_.erase(found);
  if (linked() && !rules_.failed() && !link_over_) GiveCredit();
}

struct mig_event_fd Session::EventFd() const {
  return {poller_->fd(), POLLIN};
}

absl::Status Session::Handover() {
  if (cancel_asked_.load(std::memory_order_acquire)) {
    HandleCancel(host_->NowNs());
  }
  MIG_RETURN_IF_ERROR(rules_.Handover());
  if (rules_.source()) {
    offer_place_ = channel().Send(FrameType::kOffer);
  } else {
    // From here on nobody may write the guest's memory, whatever a peer thinks
    // that it may (rule 12.6).
    BreakData();
    if (linked() && !rules_.failed()) channel().Send(FrameType::kCommitted);
  }
  return absl::OkStatus();
}

absl::Status Session::HostBusy(uint64_t max_ns) {
  MIG_RETURN_IF_ERROR(rules_.CheckHostBusy());
  if (max_ns > MIG_HOST_BUSY_MAX_NS) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrCat("a host can't be busy for ", max_ns,
                                  " ns: say it again every ",
                                  MIG_HOST_BUSY_MAX_NS, " ns at the latest"));
  }
  MIG_RETURN_IF_ERROR(CheckPeerThere());
  channel().Send(FrameType::kBusy, max_ns);
  // Progress will not be called soon.
  pool_->verbs()->Drive();
  return absl::OkStatus();
}

void Session::Cancel() {
  cancel_asked_.store(true, std::memory_order_release);
  poller_->Wake();
}

void Session::Wake() {
  wake_asked_.store(true, std::memory_order_release);
  poller_->Wake();
}

void Session::Close() {
  if (rules_.closing()) return;
  const uint64_t now_ns = host_->NowNs();
  const bool offered = rules_.phase() == Phase::kOffered && !rules_.failed();
  rules_.Closing();
  opener_.reset();
  close_deadline_ns_ = now_ns + settings_.close_timeout_ns;
  if (!linked() || rules_.failed() || link_over_) return;
  if (offered && rules_.source()) {
    if (!withdraw_deadline_ns_) channel().Send(FrameType::kWithdraw);
    withdraw_deadline_ns_ = close_deadline_ns_;
    return;
  }
  if (offered) {
    rules_.RenounceOffer();
    channel().Send(FrameType::kRefused);
  }
  while (!unsent_messages_.empty()) {
    Waiting& front = unsent_messages_.front();
    channel().Send(FrameType::kMessage, front.type, front.payload);
    unsent_messages_.pop_front();
  }
  if (!bye_over_) channel().Send(FrameType::kBye);
  bye_sent_ = true;
}

void Session::GetStats(uint64_t* values, size_t count) const {
  for (size_t i = 0; i < std::min(count, kCounterCount); ++i) {
    values[i] = counters_.Get(static_cast<Counter>(i));
  }
}

}  // namespace mig::rdma
