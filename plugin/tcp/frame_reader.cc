// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/frame_reader.h"

#include <algorithm>
#include <cerrno>

#include "common/error.h"

namespace mig::tcp {
namespace {

// Rule 3: one step never takes longer than this much memory takes.
constexpr uint64_t kZeroSlice = 64u << 20;

absl::Status ReceiveFailure(int error) {
  if (error == EFAULT) {
    return MakeSystemError(MIG_E_GUEST_MEMORY,
                           "guest memory can't be written: it must stay mapped "
                           "and writable until the session is closed",
                           error);
  }
  return MakeSystemError(MIG_E_PEER_LOST, "receiving from the peer failed",
                         error);
}

}  // namespace

absl::StatusOr<ReadOutcome> FrameReader::Pump(ByteStream* stream,
                                              FrameHandler* handler,
                                              uint64_t budget) {
  // A frame counts for a page, or empty ones would never use up a budget.
  constexpr uint64_t kFrameCost = 4096;
  uint64_t used = 0;
  hold_ = false;
  while (used < budget) {
    if (state_ == State::kZero) {
      uint64_t left = std::min(kZeroSlice, budget - used);
      used += left;
      counts_.zeroed_bytes += ZeroPages(&plan_.zero[next_zero_], &left);
      used -= left;
      if (plan_.zero[next_zero_].length == 0) ++next_zero_;
      MIG_RETURN_IF_ERROR(Complete(handler));
      continue;
    }
    const size_t targets = Targets();
    const ssize_t received =
        stream->Read(std::span<const struct iovec>(targets_.data(), targets));
    ++counts_.receive_calls;
    if (received == -EINTR) continue;
    if (received == -EAGAIN) return ReadOutcome::kDry;
    if (received < 0) return ReceiveFailure(static_cast<int>(-received));
    if (received == 0) {
      if (between_frames()) return ReadOutcome::kEnd;
      return MakeError(MIG_E_PEER_LOST,
                       "the peer closed the connection inside a frame: it died "
                       "or the link broke");
    }
    const uint64_t frames = counts_.frames;
    counts_.wire_bytes += static_cast<uint64_t>(received);
    used += static_cast<uint64_t>(received);
    Advance(static_cast<size_t>(received));
    MIG_RETURN_IF_ERROR(Complete(handler));
    used += (counts_.frames - frames) * kFrameCost;
    if (hold_) return ReadOutcome::kHeld;
  }
  return ReadOutcome::kYield;
}

size_t FrameReader::Targets() {
  targets_.clear();
  if (state_ == State::kPayload) {
    targets_.push_back({payload_.data() + got_, header_.length - got_});
    return 1;
  }
  if (state_ == State::kFill) {
    targets_.assign(
        plan_.fill.begin() + static_cast<std::ptrdiff_t>(next_fill_),
        plan_.fill.end());
  }
  // The next header comes with the last bytes of a batch in one call.
  targets_.push_back({header_bytes_.data() + got_, kHeaderSize - got_});
  return targets_.size();
}

void FrameReader::Advance(size_t received) {
  while (state_ == State::kFill && received > 0 &&
         next_fill_ < plan_.fill.size()) {
    struct iovec& piece = plan_.fill[next_fill_];
    const size_t step = std::min(piece.iov_len, received);
    piece.iov_base = static_cast<uint8_t*>(piece.iov_base) + step;
    piece.iov_len -= step;
    received -= step;
    counts_.data_bytes += step;
    if (piece.iov_len == 0) ++next_fill_;
  }
  got_ += received;
}

// Moves on over every boundary that has been reached.
absl::Status FrameReader::Complete(FrameHandler* handler) {
  if (state_ == State::kZero && next_zero_ == plan_.zero.size()) BeginFill();
  if (state_ == State::kFill && next_fill_ == plan_.fill.size()) {
    state_ = State::kHeader;
  }
  if (state_ == State::kHeader && got_ == kHeaderSize) {
    MIG_RETURN_IF_ERROR(OnHeader(handler));
  }
  if (state_ == State::kPayload && got_ == header_.length) {
    MIG_RETURN_IF_ERROR(OnPayload(handler));
  }
  return absl::OkStatus();
}

// Only now, after the zeros: a page that is given both ways must not be known
// as zero.
void FrameReader::BeginFill() {
  for (const ZeroRun& run : plan_.written) {
    MarkWritten(run.block, run.offset, run.length);
  }
  state_ = State::kFill;
}

absl::Status FrameReader::OnHeader(FrameHandler* handler) {
  const absl::StatusOr<FrameHeader> header = DecodeHeader(header_bytes_);
  if (!header.ok()) return header.status();
  header_ = *header;
  const absl::StatusOr<uint32_t> limit = handler->PayloadLimit(header_.type);
  if (!limit.ok()) return limit.status();
  if (header_.length > *limit) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("the peer sent a frame of type ",
                     static_cast<int>(header_.type), " with ", header_.length,
                     " bytes, where at most ", *limit, " are allowed"));
  }
  payload_.resize(header_.length);
  state_ = State::kPayload;
  got_ = 0;
  ++counts_.frames;
  return absl::OkStatus();
}

absl::Status FrameReader::OnPayload(FrameHandler* handler) {
  state_ = State::kHeader;
  got_ = 0;
  if (header_.type != FrameType::kData) {
    return handler->OnFrame(header_, &payload_);
  }
  plan_.fill.clear();
  plan_.zero.clear();
  plan_.written.clear();
  next_fill_ = 0;
  next_zero_ = 0;
  MIG_RETURN_IF_ERROR(handler->OnData(header_, payload_, &plan_));
  if (!plan_.zero.empty()) {
    state_ = State::kZero;
  } else if (!plan_.fill.empty()) {
    BeginFill();
  }
  return absl::OkStatus();
}

}  // namespace mig::tcp
