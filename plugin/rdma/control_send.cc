// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What goes out.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/control_channel.h"
#include "rdma/control_wr.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// One place in the send queue and one of the peer's receives are kept for a
// SLOTS frame: were both sides out of receives, neither could say so.
constexpr uint32_t kSpareForSlots = 1;

// A whole fixed frame, for queue pairs with a single SGE.
constexpr size_t kGathered = kHeaderSize + kMaxFixedPayload;

// The sender acts on these having arrived, and sends nothing behind them that
// would bring a completion.
bool WantsCompletion(FrameType type) {
  switch (type) {
    case FrameType::kAbort:
    case FrameType::kOffer:
    case FrameType::kCommitted:
    case FrameType::kRefused:
    case FrameType::kWithdraw:
    case FrameType::kBye:
    case FrameType::kByeAck:
      return true;
    default:
      return false;
  }
}

}  // namespace

class ControlChannel::Pieces {
 public:
  explicit Pieces(std::span<const struct mig_iov> pieces) : pieces_(pieces) {
    for (const struct mig_iov& piece : pieces) left_ += piece.length;
    SkipEmpty();
  }
  size_t left() const { return left_; }
  // Where the next `size` bytes lie, null if in several pieces.
  const uint8_t* Contiguous(size_t size) const {
    if (pieces_.empty() || pieces_.front().length - offset_ < size) {
      return nullptr;
    }
    return static_cast<const uint8_t*>(pieces_.front().base) + offset_;
  }
  // Copies without going on.
  void Peek(uint8_t* to, size_t size) const {
    Pieces copy = *this;
    copy.Move(to, size);
  }
  void Skip(size_t size) { Move(nullptr, size); }

 private:
  void Move(uint8_t* to, size_t size) {
    left_ -= size;
    while (size > 0) {
      const struct mig_iov& piece = pieces_.front();
      const size_t step = std::min<size_t>(size, piece.length - offset_);
      if (to != nullptr) {
        std::memcpy(to, static_cast<const uint8_t*>(piece.base) + offset_,
                    step);
        to += step;
      }
      offset_ += step;
      size -= step;
      SkipEmpty();
    }
  }
  void SkipEmpty() {
    while (!pieces_.empty() && offset_ == pieces_.front().length) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const struct mig_iov> pieces_;
  size_t offset_ = 0;
  size_t left_ = 0;
};

uint64_t ControlChannel::Send(FrameType type, uint64_t argument,
                              std::span<const uint8_t> payload) {
  const struct mig_iov piece = {payload.data(), payload.size()};
  FrameHeader header{.type = type};
  header.argument = argument;
  return Send(header, std::span<const struct mig_iov>(&piece, 1));
}

uint64_t ControlChannel::Send(const FrameHeader& header,
                              std::span<const struct mig_iov> pieces) {
  const uint64_t place = ++places_;
  if (!status_.ok()) {
    dropped_from_ = std::min(dropped_from_, place);
    dropped_to_ = place;
    return place;
  }
  Pieces rest(pieces);
  FrameHeader frame = header;
  if (IsLong(frame.type)) {
    frame.argument =
        LongArgument(rest.left(), static_cast<uint32_t>(frame.argument));
  }
  if (unsent_.empty() && PostFrame(frame, &rest, place)) {
    TellSlots();
    return place;
  }
  Unsent unsent;
  unsent.header = frame;
  unsent.place = place;
  unsent.payload.resize(rest.left());
  rest.Peek(unsent.payload.data(), rest.left());
  unsent_bytes_ += unsent.payload.size();
  unsent_.push_back(std::move(unsent));
  ++counts_.send_stalls;
  counts_.peak_unsent = std::max(counts_.peak_unsent, unsent_bytes_);
  return place;
}

void ControlChannel::DropUnsent() {
  if (unsent_.empty()) return;
  // What is dropped once stays so, and everything behind it was queued later.
  if (dropped_to_ < dropped_from_) {
    dropped_from_ = unsent_.front().place;
    // Of a frame that was begun a part is out.
    if (dropped_from_ <= started_) ++dropped_from_;
  }
  dropped_to_ = places_;
  while (!unsent_.empty()) unsent_.pop_front();
  unsent_bytes_ = 0;
}

bool ControlChannel::PostFrame(const FrameHeader& frame, Pieces* pieces,
                               uint64_t place) {
  do {
    FrameHeader header = frame;
    header.length =
        static_cast<uint16_t>(std::min(pieces->left(), kMaxFragment));
    if (!MayPost(kSpareForSlots) || !PostPart(header, pieces)) return false;
    started_ = place;
  } while (pieces->left() > 0);
  finished_ = place;
  ++counts_.frames_sent;
  return true;
}

bool ControlChannel::PostPart(const FrameHeader& header, Pieces* pieces) {
  FrameHeader told = header;
  told.slots = static_cast<uint16_t>(std::min<uint32_t>(owed_, UINT16_MAX));
  if (!(FitsInline(header.length) && PostInline(told, pieces)) &&
      !(status_.ok() && PostFromSlot(told, pieces))) {
    return false;
  }
  owed_ -= told.slots;
  --credits_;
  pieces->Skip(header.length);
  return true;
}

// Inline data is read before the post returns: from the stack, and from the
// caller's own memory.
bool ControlChannel::PostInline(const FrameHeader& header, Pieces* pieces) {
  std::array<uint8_t, kGathered> bytes;
  EncodeHeader(header,
               std::span<uint8_t, kHeaderSize>(bytes.data(), kHeaderSize));
  std::array<ibv_sge, 2> sges = {};
  sges[0].addr = reinterpret_cast<uintptr_t>(bytes.data());
  sges[0].length = kHeaderSize;
  size_t count = 1;
  const uint8_t* const in_place = pieces->Contiguous(header.length);
  if (header.length > 0 && limits_.send_sges >= 2 && in_place != nullptr) {
    sges[1].addr = reinterpret_cast<uintptr_t>(in_place);
    sges[1].length = header.length;
    count = 2;
  } else if (header.length > 0) {
    if (header.length > bytes.size() - kHeaderSize) return false;
    pieces->Peek(bytes.data() + kHeaderSize, header.length);
    sges[0].length += header.length;
  }
  const int failure =
      PostSend(std::span<ibv_sge>(sges.data(), count), header.type, kNoSlot);
  if (failure == 0) {
    ++counts_.inline_sends;
    return true;
  }
  // ENOMEM or EINVAL may mean too much inline, whatever was granted (H4).
  limits_.inline_bytes = 0;
  return false;
}

bool ControlChannel::PostFromSlot(const FrameHeader& header, Pieces* pieces) {
  const bool last = header.type == FrameType::kSlots;
  if (last ? last_slot_busy_ : !slots_->HasFree()) return false;
  const int32_t slot = last ? kLastSlot : slots_->Take();
  uint8_t* const bytes =
      last ? slots_->last() : slots_->send(static_cast<uint16_t>(slot));
  EncodeHeader(header, std::span<uint8_t, kHeaderSize>(bytes, kHeaderSize));
  pieces->Peek(bytes + kHeaderSize, header.length);
  ibv_sge sge = {};
  sge.addr = reinterpret_cast<uintptr_t>(bytes);
  sge.length = static_cast<uint32_t>(kHeaderSize + header.length);
  sge.lkey = slots_->lkey();
  const int failure = PostSend(std::span<ibv_sge>(&sge, 1), header.type, slot);
  if (failure != 0) {
    if (!last) slots_->GiveBack(slot);
    Fail(verbs::StatusOfErrno(
        absl::StrCat("can't post a ", FrameName(header.type), " frame of ",
                     header.length, " bytes on the control queue pair, with ",
                     posted_ - retired_, " of ", limits_.send_depth,
                     " sends under way"),
        failure));
    return false;
  }
  if (last) last_slot_busy_ = true;
  ++counts_.slot_sends;
  return true;
}

// Signalled are what holds a slot, what the sender waits for, every quarter of
// the depth, and the last that has room: so what is unsignalled is always
// retired by something behind it, and never fills the queue (C05).
int ControlChannel::PostSend(std::span<ibv_sge> sges, FrameType type,
                             int32_t held) {
  const bool settles = WantsCompletion(type);
  const bool signal = held != kNoSlot || settles ||
                      posted_ + 1 - signalled_ >= limits_.send_depth / 4 ||
                      FreeSends() <= kSpareForSlots + 1;
  ibv_send_wr wr = {};
  wr.wr_id = kControlSend | posted_;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = IBV_WR_SEND;
  if (held == kNoSlot) wr.send_flags |= IBV_SEND_INLINE;
  if (signal) wr.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int failure =
      verbs::ErrnoOfCall([&] { return ibv_post_send(qp_, &wr, &bad); });
  if (failure != 0) return failure;
  held_.push_back(held);
  ++posted_;
  ++counts_.sends;
  if (signal) signalled_ = posted_;
  if (settles) settles_at_ = posted_;
  return 0;
}

void ControlChannel::PostUnsent() {
  while (!unsent_.empty() && MayPost(kSpareForSlots)) {
    Unsent& front = unsent_.front();
    const struct mig_iov piece = {front.payload.data() + front.done,
                                  front.payload.size() - front.done};
    Pieces rest(std::span<const struct mig_iov>(&piece, 1));
    const size_t before = rest.left();
    const bool done = PostFrame(front.header, &rest, front.place);
    unsent_bytes_ -= before - rest.left();
    front.done += before - rest.left();
    if (!done) return;
    unsent_.pop_front();
  }
}

// Only when nothing else could tell it, and not for a few.
void ControlChannel::TellSlots() {
  if (2 * owed_ < slots_->receives() || !MayPost(0)) return;
  Pieces none({});
  if (PostPart({.type = FrameType::kSlots}, &none)) ++counts_.slots_frames;
}

}  // namespace mig::rdma
