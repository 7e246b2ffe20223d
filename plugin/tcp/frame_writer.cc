// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/frame_writer.h"

#include <algorithm>
#include <cerrno>

#include "common/error.h"

namespace mig::tcp {
namespace {

// Several batches a call are no faster and hold back control frames.
constexpr uint64_t kMaxGatheredBytes = 2 * kMaxBatchBytes;

absl::Status SendFailure(int error) {
  if (error == EFAULT) {
    return MakeSystemError(MIG_E_GUEST_MEMORY,
                           "guest memory can't be read: it must stay mapped "
                           "and readable until its round is done",
                           error);
  }
  return MakeSystemError(MIG_E_PEER_LOST, "sending to the peer failed", error);
}

}  // namespace

void FrameWriter::EnableData(size_t slots) {
  slots_.resize(slots);
  for (Slot& slot : slots_) {
    slot.ranges.resize(kMaxBatchRanges);
    slot.head.resize(kHeaderSize + kMaxBatchRanges * kWireRangeSize);
    slot.pieces.resize(1 + kMaxBatchRanges);
  }
}

uint64_t FrameWriter::Queue(const FrameHeader& header,
                            std::span<const uint8_t> payload,
                            std::span<const struct mig_iov> tail) {
  size_t length = payload.size();
  for (const struct mig_iov& piece : tail) length += piece.length;
  Item item;
  item.bytes.reserve(kHeaderSize + length);
  item.bytes.resize(kHeaderSize);
  FrameHeader full = header;
  full.length = static_cast<uint32_t>(length);
  EncodeHeader(full,
               std::span<uint8_t, kHeaderSize>(item.bytes.data(), kHeaderSize));
  item.bytes.insert(item.bytes.end(), payload.begin(), payload.end());
  for (const struct mig_iov& piece : tail) {
    const auto* from = static_cast<const uint8_t*>(piece.base);
    if (piece.length > 0) {
      item.bytes.insert(item.bytes.end(), from, from + piece.length);
    }
  }
  items_.push_back(std::move(item));
  return last_place();
}

size_t FrameWriter::RangeRoom() const {
  return (slots_.size() - used_slots_) * kMaxBatchRanges - open_ranges_;
}

uint64_t FrameWriter::Append(uint64_t round, const Block& block,
                             uint64_t offset, uint64_t length, bool zero) {
  if (used_slots_ == slots_.size()) return 0;
  Slot& slot = open_slot();
  if (open_ranges_ == 0) {
    slot.round = round;
    slot.data_bytes = 0;
    slot.piece_count = 1;
  }
  uint64_t take = length;
  if (!zero) {
    const uint64_t room = kMaxBatchBytes - slot.data_bytes;
    if (take > room) {
      // Whole pages; a page that is larger than a batch is a batch of its own.
      take = room & ~(block.page_size - 1);
      if (take == 0 && open_ranges_ == 0) take = block.page_size;
      if (take == 0) {
        Seal();
        return Append(round, block, offset, length, zero);
      }
    }
  }
  WireRange* const last =
      open_ranges_ == 0 ? nullptr : &slot.ranges[open_ranges_ - 1];
  if (last != nullptr && last->block == block.id &&
      last->offset + last->length == offset &&
      (last->flags == MIG_RANGE_ZERO) == zero) {
    last->length += take;
    if (!zero) slot.pieces[slot.piece_count - 1].iov_len += take;
    ++counts_.merged;
  } else {
    slot.ranges[open_ranges_] =
        WireRange{block.id, zero ? MIG_RANGE_ZERO : 0u, offset, take};
    ++open_ranges_;
    if (!zero) slot.pieces[slot.piece_count++] = {block.base + offset, take};
  }
  if (!zero) slot.data_bytes += take;
  if (open_ranges_ == kMaxBatchRanges || slot.data_bytes >= kMaxBatchBytes) {
    Seal();
  }
  return take;
}

void FrameWriter::Seal() {
  if (open_ranges_ == 0) return;
  Slot& slot = open_slot();
  const size_t head = kHeaderSize + open_ranges_ * kWireRangeSize;
  FrameHeader header;
  header.type = FrameType::kData;
  header.length = static_cast<uint32_t>(open_ranges_ * kWireRangeSize);
  header.argument = slot.round;
  EncodeHeader(header,
               std::span<uint8_t, kHeaderSize>(slot.head.data(), kHeaderSize));
  for (size_t i = 0; i < open_ranges_; ++i) {
    EncodeRange(slot.ranges[i],
                std::span<uint8_t, kWireRangeSize>(
                    slot.head.data() + kHeaderSize + i * kWireRangeSize,
                    kWireRangeSize));
  }
  slot.pieces[0] = {slot.head.data(), head};
  counts_.ranges += open_ranges_;
  ++counts_.batches;
  Item item;
  item.slot = static_cast<int>((first_slot_ + used_slots_) % slots_.size());
  items_.push_back(std::move(item));
  ++used_slots_;
  open_ranges_ = 0;
}

std::span<const struct iovec> FrameWriter::PiecesOf(Item& item,
                                                    struct iovec* control) {
  if (item.slot >= 0) {
    const Slot& slot = slots_[static_cast<size_t>(item.slot)];
    return {slot.pieces.data(), slot.piece_count};
  }
  *control = {item.bytes.data(), item.bytes.size()};
  return {control, 1};
}

size_t FrameWriter::Gather() {
  size_t pieces = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    struct iovec control;
    std::span<const struct iovec> item = PiecesOf(items_[i], &control);
    size_t skip = 0;
    if (i == 0) {
      item = item.subspan(front_piece_);
      skip = front_offset_;
    }
    for (const struct iovec& piece : item) {
      if (pieces == kMaxPieces || bytes >= kMaxGatheredBytes) return pieces;
      gathered_[pieces++] = {static_cast<uint8_t*>(piece.iov_base) + skip,
                             piece.iov_len - skip};
      bytes += piece.iov_len - skip;
      skip = 0;
    }
  }
  return pieces;
}

absl::Status FrameWriter::Pump(ByteStream* stream, bool* blocked) {
  *blocked = false;
  while (!items_.empty()) {
    const size_t pieces = Gather();
    const ssize_t sent =
        stream->Write(std::span<const struct iovec>(gathered_.data(), pieces));
    ++counts_.send_calls;
    if (sent == -EINTR) continue;
    if (sent == -EAGAIN) {
      *blocked = true;
      return absl::OkStatus();
    }
    if (sent < 0) return SendFailure(static_cast<int>(-sent));
    Advance(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

void FrameWriter::Advance(size_t sent) {
  counts_.wire_bytes += sent;
  while (sent > 0) {
    front_started_ = true;
    struct iovec control;
    const auto pieces = PiecesOf(items_.front(), &control);
    const size_t left = pieces[front_piece_].iov_len - front_offset_;
    const size_t step = std::min(left, sent);
    sent -= step;
    front_offset_ += step;
    if (step < left) return;
    front_offset_ = 0;
    if (++front_piece_ == pieces.size()) FinishFront();
  }
}

void FrameWriter::FinishFront() {
  if (items_.front().slot >= 0) {
    counts_.data_bytes +=
        slots_[static_cast<size_t>(items_.front().slot)].data_bytes;
    first_slot_ = (first_slot_ + 1) % slots_.size();
    --used_slots_;
  }
  items_.pop_front();
  ++finished_;
  front_started_ = false;
  front_piece_ = 0;
}

void FrameWriter::DropUnstarted() {
  open_ranges_ = 0;
  const size_t keep = front_started_ ? 1 : 0;
  while (items_.size() > keep) {
    if (items_.back().slot >= 0) --used_slots_;
    items_.pop_back();
  }
}

}  // namespace mig::tcp
