// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the host calls. Nothing here waits.
#include "tcp/session.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/zero_pages.h"

namespace mig::tcp {

Session::Session(const Host* host, SessionSettings settings,
                 std::unique_ptr<Poller> poller)
    : host_(host),
      settings_(std::move(settings)),
      poller_(std::move(poller)),
      rules_(settings_.opener.hello.role) {
  incoming_.Open(settings_.opener.hello.window);
}

Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Host* host, SessionSettings settings) {
  auto poller = Poller::Create();
  if (!poller.ok()) return poller.status();
  return std::unique_ptr<Session>(
      new Session(host, std::move(settings), *std::move(poller)));
}

absl::Status Session::Listen(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_DESTINATION));
  const auto parsed = ParseUri(uri);
  if (!parsed.ok()) return parsed.status();
  auto opener =
      StartListener(*parsed, settings_.opener, host_, poller_.get(), &refused_);
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  local_uri_ = opener_->LocalUri();
  rules_.Connecting();
  return absl::OkStatus();
}

absl::Status Session::Connect(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_SOURCE));
  const auto parsed = ParseUri(uri);
  if (!parsed.ok()) return parsed.status();
  auto opener = StartConnector(*parsed, settings_.opener, host_, poller_.get());
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  peer_ = parsed->text;
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
  return blocks_.Add(block, /*pins=*/false);
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
  link_->writer().Seal();
  removals_.push_back({id, QueueFrame(FrameType::kBlockRemoved, id)});
  return absl::OkStatus();
}

absl::Status Session::Exchange() {
  MIG_RETURN_IF_ERROR(rules_.CheckExchange());
  const std::vector<BlockDescription> added = blocks_.NewBlocks();
  const std::vector<uint8_t> table = EncodeBlocks(added);
  if (added.size() > kMaxBlocks || table.size() > kMaxTablePayload) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("the table of ", added.size(), " blocks takes ",
                     table.size(), " bytes, and at most ", kMaxBlocks,
                     " blocks and ", kMaxTablePayload,
                     " bytes fit: use fewer blocks or shorter names"));
  }
  QueueFrame(FrameType::kBlocks, 0, table);
  rules_.ExchangeBegun();
  table_sent_ = true;
  // The peer's table may be here already; Progress holds them together.
  return absl::OkStatus();
}

absl::Status Session::RoundBegin(uint64_t number, uint32_t flags) {
  MIG_RETURN_IF_ERROR(rules_.RoundBegin(number, flags));
  sums_ = RoundSums();
  if (rules_.strict()) {
    for (const auto& block : blocks_.blocks()) {
      block->given.Resize(block->length >> block->page_shift, false);
    }
  }
  return absl::OkStatus();
}

absl::Status Session::Write(const struct mig_range* ranges, size_t count,
                            size_t element_size, size_t* accepted,
                            uint64_t* partial) {
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  FrameWriter& writer = link_->writer();
  const size_t room = rules_.WritesMayStart() ? writer.RangeRoom() : 0;
  const size_t limit = std::min(count, room);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(ranges);
  const auto range_at = [bytes, element_size](size_t i) {
    return reinterpret_cast<const struct mig_range*>(bytes + i * element_size);
  };
  Block* block = nullptr;
  for (size_t i = 0; i < limit; ++i) {
    MIG_RETURN_IF_ERROR(blocks_.CheckRange(*range_at(i), &block));
  }
  uint64_t taken_bytes = 0;
  uint64_t zero_bytes = 0;
  for (size_t i = 0; i < limit; ++i) {
    const struct mig_range& range = *range_at(i);
    block = blocks_.Find(range.block);
    const bool zero = (range.flags & MIG_RANGE_ZERO) != 0;
    uint64_t done = 0;
    while (done < range.length) {
      const uint64_t step =
          writer.Append(rules_.round(), *block, range.offset + done,
                        range.length - done, zero);
      if (step == 0) break;
      if (rules_.strict()) {
        const uint64_t first = (range.offset + done) >> block->page_shift;
        const uint64_t pages = step >> block->page_shift;
        if (block->given.AnySet(first, pages)) {
          absl::Status twice = MakeError(
              MIG_E_STRICT,
              absl::StrCat("a page of block '", block->name, "' in ", step,
                           " bytes at offset ", range.offset + done,
                           " was given twice in round ", rules_.round(),
                           ": end the round first"));
          Fail(twice, Tell::kPeer);
          return twice;
        }
        block->given.Set(first, pages);
      }
      done += step;
    }
    taken_bytes += done;
    if (zero) zero_bytes += done;
    if (done < range.length) {
      *partial = done;
      break;
    }
    ++*accepted;
  }
  sums_.data_bytes += taken_bytes - zero_bytes;
  sums_.zero_bytes += zero_bytes;
  counters_.Add(Counter::kBytesAccepted, taken_bytes);
  counters_.Add(Counter::kZeroBytesAccepted, zero_bytes);
  if (*accepted < count) {
    write_waits_ = true;
    counters_.Add(Counter::kWriteStalls, 1);
  }
  // One system call a full batch, none while batches only fill.
  if (!writer.empty() && send_failure_.ok()) {
    send_failure_ = link_->PumpOut(host_->NowNs());
  }
  return absl::OkStatus();
}

absl::Status Session::Flush() {
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  link_->writer().Seal();
  if (send_failure_.ok()) send_failure_ = link_->PumpOut(host_->NowNs());
  return absl::OkStatus();
}

absl::Status Session::RoundEnd(uint64_t number) {
  MIG_RETURN_IF_ERROR(rules_.RoundEnd(number));
  link_->writer().Seal();
  write_waits_ = false;
  QueueFrame(FrameType::kRoundEnd, number, EncodeSums(sums_));
  if (send_failure_.ok()) send_failure_ = link_->PumpOut(host_->NowNs());
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
  uint64_t length = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& piece = *reinterpret_cast<const struct mig_iov*>(
        reinterpret_cast<const unsigned char*>(iov) + i * element_size);
    if ((piece.base == nullptr && piece.length > 0) ||
        piece.length > agreement_.max_message - length) {
      return MakeError(
          MIG_E_ARGUMENT,
          absl::StrCat("a message has a null piece or more than the ",
                       agreement_.max_message,
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
  FrameHeader header{.type = FrameType::kMessage};
  header.argument = type;

  link_->writer().Queue(header, {}, pieces);
  counters_.Add(Counter::kMessagesSent, 1);
  return true;
}

void Session::MessageRelease(struct mig_message* message) {
  const auto found = messages_.find(message);
  if (found == messages_.end()) return;
  released_ += MessageCharge(found->second->payload.size());
  messages_.erase(found);
  if (link_ != nullptr && !rules_.failed() && !link_over_) GiveCredit();
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
    offer_place_ = QueueFrame(FrameType::kOffer);
  } else if (link_ != nullptr && !rules_.failed()) {
    QueueFrame(FrameType::kCommitted);
  }
  // The switchover is worth a system call of its own.
  if (link_ != nullptr && send_failure_.ok()) {
    send_failure_ = link_->PumpOut(host_->NowNs());
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
  QueueFrame(FrameType::kBusy, max_ns);
  // Progress will not be called soon.
  if (send_failure_.ok()) send_failure_ = link_->PumpOut(host_->NowNs());
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
  if (link_ == nullptr || rules_.failed() || link_over_) return;
  if (offered && rules_.source()) {
    if (!withdraw_deadline_ns_) QueueFrame(FrameType::kWithdraw);
    withdraw_deadline_ns_ = close_deadline_ns_;
    return;
  }
  if (offered) {
    rules_.RenounceOffer();
    QueueFrame(FrameType::kRefused);
  }
  link_->writer().Seal();
  if (!bye_over_) QueueFrame(FrameType::kBye);
  bye_sent_ = true;
}

void Session::GetCaps(struct mig_caps* caps) {
  const Hello& hello = settings_.opener.hello;
  const auto capability = [](const char* name, const char* unit, uint64_t asked,
                             uint64_t negotiated) {
    return mig_capability{name, unit, asked, asked, negotiated, ""};
  };
  capabilities_ = {
      capability("wire-version", "1", hello.wire_max, agreement_.wire_version),
      capability("connections", "1", hello.connections,
                 agreement_.wire_version == 0 ? 0 : hello.connections),
      capability("max-message", "B", hello.max_message, agreement_.max_message),
      capability("message-window", "B", hello.window, agreement_.peer_window),
      capability("peer-timeout", "ns", hello.peer_timeout_ns,
                 agreement_.peer_timeout_ns),
      capability("authentication", "1", hello.auth,
                 agreement_.authenticated ? 1 : 0),
  };
  caps->flags = agreement_.authenticated ? MIG_CAP_AUTHENTICATED : 0u;
  caps->max_message =
      agreement_.wire_version == 0 ? hello.max_message : agreement_.max_message;
  caps->peer_timeout_ns = agreement_.wire_version == 0
                              ? hello.peer_timeout_ns
                              : agreement_.peer_timeout_ns;
  caps->extensions = "";
  caps->details = capabilities_.data();
  caps->detail_count = capabilities_.size();
  caps->detail_size = sizeof(struct mig_capability);
}

void Session::GetStats(uint64_t* values, size_t count) const {
  for (size_t i = 0; i < std::min(count, kCounterCount); ++i) {
    values[i] = counters_.Get(static_cast<Counter>(i));
  }
}

}  // namespace mig::tcp
