// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/source_host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"

namespace mig::model {

bool SourceHost::MayBegin() const {
  return round_ == round_done_ || habits().begins_early;
}

bool SourceHost::CanAct() const {
  switch (stage_) {
    case Stage::kStart:
      return !const_cast<SourceHost*>(this)->world().uri.empty();
    case Stage::kConnecting:
      return connected_;
    case Stage::kExchanging:
      return blocks_ready_;
    case Stage::kBetween:
      return MayBegin();
    case Stage::kWriting:
      return write_ready_;
    case Stage::kLastRound:
      return round_ == round_done_;
    case Stage::kState:
      return outbox_empty();
    case Stage::kOffered:
    case Stage::kOver:
      return false;
  }
  return false;
}

bool SourceHost::Act() {
  switch (stage_) {
    case Stage::kStart:
      if (habits().adds_before && !Went(AddBlocks(), "add_block")) return false;
      stage_ = Stage::kConnecting;
      return Went(session_->Connect(world().uri), "connect");
    case Stage::kConnecting:
      if (!habits().adds_before && !Went(AddBlocks(), "add_block")) {
        return false;
      }
      stage_ = Stage::kExchanging;
      return Went(session_->Exchange(), "exchange");
    case Stage::kExchanging:
      stage_ = Stage::kBetween;
      return true;
    case Stage::kBetween:
      return Begin();
    case Stage::kWriting:
      return Write();
    case Stage::kLastRound:
      SendState();
      return true;
    case Stage::kState:
      stage_ = Stage::kOffered;
      offered_ = true;
      world().all_sent = true;
      world().state_messages_sent = messages_sent();
      world().Offered(true);
      return Went(session_->Handover(), "handover");
    case Stage::kOffered:
    case Stage::kOver:
      return false;
  }
  return false;
}

bool SourceHost::Begin() {
  const bool few = round_ > 0 && world().dirty_pages() <= habits().few_pages;
  if (round_ >= habits().rounds || few) {
    last_ = true;
    world().StopGuest(Actor::kSource);
  }
  ++round_;
  world().Log(side_, "begins round", round_, world().dirty_pages());
  const uint32_t flags =
      (habits().strict ? MIG_ROUND_STRICT : 0) | (last_ ? MIG_ROUND_FINAL : 0);
  if (!Went(session_->RoundBegin(round_, flags), "round_begin")) return false;
  ListDirty();
  first_written_ = UINT64_MAX;
  stage_ = Stage::kWriting;
  write_ready_ = true;
  return true;
}

// The pages of this round. Which of them are dirty again by then is for the
// next one; those that become clean by being handed over are so only then.
void SourceHost::ListDirty() {
  list_.clear();
  for (uint64_t page = 0; page < world().dirty().size(); ++page) {
    if (world().dirty()[page]) list_.push_back(page);
  }
  if (habits().in_order) return;
  for (size_t i = list_.size(); i > 1; --i) {
    std::swap(list_[i - 1], list_[draw_.Below(i)]);
  }
}

bool SourceHost::PageIsZero(uint64_t page) const {
  const auto words =
      const_cast<SourceHost*>(this)->world().memory(Actor::kSource).Page(page);
  return std::all_of(words.begin(), words.end(),
                     [](uint64_t word) { return word == 0; });
}

// Clears the bits first, then looks at the pages, then hands them over (rule
// 6).
void SourceHost::NextRanges(std::vector<mig_range>* ranges) {
  const GuestMemory& memory = world().memory(Actor::kSource);
  while (ranges->size() < habits().batch && !list_.empty()) {
    const uint64_t page = list_.front();
    list_.pop_front();
    world().ClearDirty(page);
    world().oracle().HandedOver(page, round_);
    mig_range range = memory.RangeOf(page);
    if (habits().finds_zero && PageIsZero(page)) range.flags = MIG_RANGE_ZERO;
    mig_range* const last = ranges->empty() ? nullptr : &ranges->back();
    if (last != nullptr && last->block == range.block &&
        last->flags == range.flags &&
        last->offset + last->length == range.offset &&
        last->length < habits().run_pages * range.length) {
      last->length += range.length;
    } else {
      ranges->push_back(range);
    }
  }
}

bool SourceHost::Write() {
  if (HasFault(HostFault::kTwice) && habits().strict && !given_twice_ &&
      first_written_ != UINT64_MAX && list_.size() < 3) {
    return WriteTwice();
  }
  if (rest_.empty()) NextRanges(&rest_);
  if (!rest_.empty()) {
    const auto taken = session_->Write(rest_);
    if (!taken.ok()) return Went(taken.status(), "write");
    world().Log(side_, "writes", taken->first, taken->second);
    const bool all = taken->first == rest_.size();
    Accepted(rest_, taken->first, taken->second);
    write_ready_ = all;
    if (draw_.Percent(habits().flush_percent) &&
        !Went(session_->Flush(), "flush")) {
      return false;
    }
    if (draw_.Percent(habits().chat_percent)) Queue(round_ - 1);
  }
  const bool leaves =
      !last_ && draw_.Percent(habits().leave_percent) && draw_.Percent(20);
  if ((rest_.empty() && list_.empty()) || leaves) return EndRound();
  return true;
}

// What was taken goes; of a range that was taken in part, the rest stays.
void SourceHost::Accepted(const std::vector<mig_range>& ranges, size_t whole,
                          uint64_t partial) {
  std::vector<mig_range> left(
      ranges.begin() + static_cast<std::ptrdiff_t>(whole), ranges.end());
  if (whole > 0 || partial > 0) {
    const GuestMemory& memory = world().memory(Actor::kSource);
    const mig_range& first = ranges.front();
    first_written_ = memory.FirstPage(first.block - GuestMemory::kFirstId) +
                     first.offset / memory.shape().page_size;
  }
  if (partial > 0) {
    left.front().offset += partial;
    left.front().length -= partial;
  }
  rest_ = std::move(left);
}

bool SourceHost::WriteTwice() {
  given_twice_ = true;
  const mig_range again =
      world().memory(Actor::kSource).RangeOf(first_written_);
  const auto taken = session_->Write({&again, 1});
  world().Log(side_, "gives a page twice");
  if (taken.ok() && taken->first == 0) {
    given_twice_ = false;  // it had no room to look at it
    write_ready_ = false;
    return true;
  }
  if (taken.ok()) {
    world().Violate(side_, "rule 7", "strict took a page twice in a round");
  }
  // The session tells its end by an event.
  stage_ = Stage::kOver;
  return false;
}

bool SourceHost::EndRound() {
  // What was not sent is dirty, and has no place in this round.
  const GuestMemory& memory = world().memory(Actor::kSource);
  for (const mig_range& range : rest_) {
    const uint64_t size = memory.shape().page_size;
    const uint64_t first =
        memory.FirstPage(range.block - GuestMemory::kFirstId) +
        range.offset / size;
    for (uint64_t i = 0; i < range.length / size; ++i) {
      world().oracle().TakenBack(first + i, round_);
      world().MarkDirty(first + i);
    }
  }
  rest_.clear();
  list_.clear();
  world().Log(side_, "ends round", round_, world().dirty_pages());
  stage_ = last_ ? Stage::kLastRound : Stage::kBetween;
  return Went(session_->RoundEnd(round_), "round_end");
}

void SourceHost::SendState() {
  for (uint64_t i = 0; i < habits().state_messages; ++i) Queue(round_);
  stage_ = Stage::kState;
}

void SourceHost::OnEvent(const mig_event& event) {
  switch (event.type) {
    case MIG_EVENT_ROUND_DONE: {
      const absl::Status done = world().oracle().RoundDone(event.number);
      if (!done.ok()) {
        world().Violate(side_, "rule 8", done.message());
      }
      break;
    }
    case MIG_EVENT_WRITE_READY:
      write_ready_ = true;
      break;
    case MIG_EVENT_COMMITTED:
      if (!world().taken()) {
        world().Violate(side_, "rule 12",
                        "COMMITTED, and the destination has no guest");
      }
      End(Outcome::kCommitted);
      break;
    case MIG_EVENT_HANDOVER_REFUSED:
      End(Outcome::kRefused);
      break;
    case MIG_EVENT_IN_DOUBT:
      End(Outcome::kInDoubt);
      break;
    case MIG_EVENT_ERROR:
      End(Outcome::kError);
      break;
    default:
      break;
  }
  if (outcome() != Outcome::kNone) Close();
}

// Who may run the guest now.
void SourceHost::OnOutcome() {
  stage_ = Stage::kOver;
  if (killed()) {
    if (world().runs_at() == Actor::kSource) world().StopGuest(side_);
    return;
  }
  if (outcome() != Outcome::kError && outcome() != Outcome::kRefused) return;
  world().Offered(false);
  if (world().runs_at() != Actor::kSource) world().RunGuest(Actor::kSource);
}

void SourceHost::OnClosed() {
  if (outcome() != Outcome::kNone) return;
  if (offered_) {
    world().Violate(side_, "rule 12",
                    "CLOSED without a word on who has the guest");
  }
  End(Outcome::kError);  // its own host's doing
}

// Ranges that there is no room for are not looked at.
absl::Status SourceHost::WrongWrite(const mig_range& range) {
  const auto taken = session_->Write({&range, 1});
  if (!taken.ok()) return taken.status();
  if (taken->first != 0 || taken->second != 0) return absl::OkStatus();
  mig_error none = sim::NewError();
  return sim::MigToStatus(MIG_E_RANGE, none, "nothing was taken");
}

absl::Status SourceHost::Misuse() {
  mig_range range = world().memory(Actor::kSource).RangeOf(0);
  switch (draw_.Below(6)) {
    case 0:
      return session_->RoundBegin(round_ + 7, 0);
    case 1:
      return session_->RoundEnd(round_ + 1);
    case 2:
      return session_->Listen("rdma://127.0.0.1:0");
    case 3:
      range.length = uint64_t{1} << 40;
      return WrongWrite(range);
    case 4:
      range.block = 4711;
      return WrongWrite(range);
    default:
      if (stage_ == Stage::kState || stage_ == Stage::kOver) {
        return session_->RoundBegin(0, 0);
      }
      return session_->Handover();
  }
}

}  // namespace mig::model
