// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the host calls. Nothing here waits.
#include "tcp/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/zero_pages.h"

namespace mig::tcp {

Session::Session(const Host* host, SessionSettings settings,
                 std::unique_ptr<Poller> poller)
    : SessionBase(host, std::move(poller), settings.opener.hello,
                  settings.close_timeout_ns),
      settings_(std::move(settings)) {}

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

absl::Status Session::AddBlock(const struct mig_block& block) {
  MIG_RETURN_IF_ERROR(rules_.CheckAddBlock());
  return blocks_.Add(block, /*pins=*/false);
}

void Session::BeginRemoval(Block* block) {
  link_->writer().Seal();
  removals_.push_back({block->id, Queue(FrameType::kBlockRemoved, block->id)});
}

absl::Status Session::Exchange() {
  MIG_RETURN_IF_ERROR(rules_.CheckExchange());
  const std::vector<BlockDescription> added = blocks_.NewBlocks();
  const std::vector<uint8_t> table = EncodeBlocks(added);
  MIG_RETURN_IF_ERROR(CheckTableFits(added.size(), table.size()));
  Queue(FrameType::kBlocks, 0, table);
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
  *accepted = 0;
  *partial = 0;
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
  if (!writer.empty()) SendNow();
  return absl::OkStatus();
}

absl::Status Session::Flush() {
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  link_->writer().Seal();
  SendNow();
  return absl::OkStatus();
}

absl::Status Session::RoundEnd(uint64_t number) {
  MIG_RETURN_IF_ERROR(rules_.RoundEnd(number));
  link_->writer().Seal();
  write_waits_ = false;
  Queue(FrameType::kRoundEnd, number, EncodeSums(sums_));
  SendNow();
  return absl::OkStatus();
}

void Session::GetCaps(struct mig_caps* caps) {
  const Hello& hello = settings_.opener.hello;
  const Agreement& agreement = this->agreement();
  const auto capability = [](const char* name, const char* unit, uint64_t asked,
                             uint64_t negotiated) {
    return mig_capability{name, unit, asked, asked, negotiated, ""};
  };
  capabilities_ = {
      capability("wire-version", "1", hello.wire_max, agreement.wire_version),
      capability("connections", "1", hello.connections,
                 agreement.wire_version == 0 ? 0 : hello.connections),
      capability("max-message", "B", hello.max_message, agreement.max_message),
      capability("message-window", "B", hello.window, agreement.peer_window),
      capability("peer-timeout", "ns", hello.peer_timeout_ns,
                 agreement.peer_timeout_ns),
      capability("authentication", "1", hello.auth,
                 agreement.authenticated ? 1 : 0),
  };
  caps->flags = 0;
  FillCaps(hello, caps);
  caps->details = capabilities_.data();
  caps->detail_count = capabilities_.size();
  caps->detail_size = sizeof(struct mig_capability);
}

}  // namespace mig::tcp
