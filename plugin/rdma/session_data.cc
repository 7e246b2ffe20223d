// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rounds: the data queue pairs, zero runs, fences, and messages that wait for
// them.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/mutation.h"
#include "rdma/session.h"
#include "rdma/wr_id.h"

namespace mig::rdma {
namespace {

// Rule 3: what one step writes of zeros, and takes of completions.
constexpr uint64_t kZeroBudget = 64u << 20;
constexpr int kCompletionBudget = 1024;
constexpr size_t kRequests = 256;
// Longer messages gain nothing on any link, and hold up whatever is behind.
constexpr uint64_t kMaxWrite = 16u << 20;

}  // namespace

// Fences are received from the first moment on (C09).
absl::Status Session::PrepareQp(uint16_t index, CmQp* qp) {
  if (rules_.source()) return absl::OkStatus();
  if (fences_ == nullptr) {
    fences_ = std::make_unique<FenceReceiver>(pool_->verbs(),
                                              settings_.opener.hello.data_qps);
  }
  return fences_->PostReceives(index, qp->qp());
}

absl::Status Session::OpenData() {
  if (!rules_.source()) return absl::OkStatus();
  std::vector<DataWriter::Lane> lanes;
  for (size_t index = 0; index < opened_.data.size(); ++index) {
    CmQp& qp = *opened_.data[index];
    const auto device = rails_.Of(qp.id());
    if (!device.ok()) return device.status();
    DataWriter::Lane lane;
    auto queue = WriteQueue::Create(
        pool_->verbs(), qp.qp(),
        {.depth = qp.cap().max_send_wr,
         .max_message =
             std::min(rails_.device(device->rail).max_message(), kMaxWrite),
         .rail = rails_.AddLane(device->rail, opened_.peer_rails[index]),
         .index = static_cast<uint8_t>(index)},
        &writer_stats_.writes);
    if (!queue.ok()) return queue.status();
    lane.queue = *std::move(queue);
    auto fences =
        FenceSlots::Create(pool_->verbs(), device->guest_pd, /*access=*/0);
    if (!fences.ok()) return fences.status();
    lane.fences = *std::move(fences);
    lanes.push_back(std::move(lane));
  }
  writer_ = std::make_unique<DataWriter>(host_, &blocks_, settings_.writer,
                                         std::move(lanes), &writer_stats_);
  return absl::OkStatus();
}

void Session::PollData() {
  std::array<ibv_wc, 32> completions;
  absl::Status status;
  for (const auto& qp : opened_.data) {
    for (int taken = 0; taken < kCompletionBudget;) {
      const int got = ibv_poll_cq(
          qp->cq(), static_cast<int>(completions.size()), completions.data());
      if (got < 0) {
        status = MakeError(MIG_E_DEVICE,
                           "a data completion queue can't be polled: see the "
                           "kernel's log for the device");
      }
      if (got <= 0) break;
      taken += got;
      for (int i = 0; i < got; ++i) {
        const ibv_wc& wc = completions[static_cast<size_t>(i)];
        if (writer_ != nullptr && WrIdIs(wc.wr_id, WrKind::kDataSend)) {
          writer_->OnCompletion(wc);
        } else if (fences_ != nullptr) {
          const absl::Status fence = fences_->OnCompletion(wc);
          if (status.ok()) status = fence;
        }
      }
    }
  }
  if (status.ok() && writer_ != nullptr) status = writer_->status();
  // After the last round the data queue pairs are not needed any more.
  if (status.ok() || rules_.failed() || rules_.phase() >= Phase::kOffered) {
    return;
  }
  if (ErrorCode(status) == MIG_E_PEER_LOST) return DataLost(status);
  Fail(status, Tell::kPeer);
}

// Sends what waits and may go, in the order that the peer needs.
void Session::PumpData() {
  if (writer_ == nullptr || rules_.failed() || link_over_) return;
  writer_->Pump();
  SendRequests();
  SendZeroRuns();
  SendRoundEnds();
}

void Session::SendRequests() {
  std::array<ChunkRequest, kRequests> requests;
  size_t count = 0;
  while ((count = writer_->TakeRequests(requests)) > 0) {
    std::vector<ChunkSpan> spans;
    for (size_t i = 0; i < count; ++i) {
      const ChunkRequest& request = requests[i];
      const auto own = registrations_.find(request.block);
      if (request.local && own != registrations_.end()) {
        own->second->Ask(request.chunk);
      }
      if (!request.remote) continue;
      if (!spans.empty() && spans.back().block == request.block &&
          spans.back().first + spans.back().count == request.chunk) {
        ++spans.back().count;
      } else {
        spans.push_back({request.block, request.chunk, 1});
      }
    }
    if (!spans.empty()) {
      channel().Send(FrameType::kAsk, 0, EncodeChunkSpans(spans));
    }
  }
}

void Session::SendZeroRuns() {
  std::array<ZeroRun, kMaxZeroRuns> runs;
  // What the channel can't take yet stays in the list, which is bounded.
  while (writer_->zero_runs() > 0 && channel().unsent_frames() < 4) {
    const size_t count = writer_->TakeZeroRuns(runs);
    std::vector<WireZeroRun> told;
    told.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      told.push_back({runs[i].block->id, runs[i].offset, runs[i].length});
      zero_bytes_ += runs[i].length;
    }
    channel().Send(FrameType::kZero, 0, EncodeZeroRuns(told));
  }
}

// A round's end follows its last zero run; messages that were sent after
// round_end follow that.
void Session::SendRoundEnds() {
  if (writer_->zero_runs() == 0 && writer_->posted_round() > round_ends_sent_) {
    const uint64_t bytes = writer_stats_.writes.bytes - data_bytes_told_;
    data_bytes_told_ = writer_stats_.writes.bytes;
    channel().Send(FrameType::kRoundEnd, ++round_ends_sent_,
                   EncodeSums({bytes, zero_bytes_}));
    zero_bytes_ = 0;
  }
  if (rules_.ended_round() <= round_ends_sent_) QueueHeld();
}

void Session::QueueHeld() {
  while (!unsent_messages_.empty()) {
    Waiting& front = unsent_messages_.front();
    channel().Send(FrameType::kMessage, front.type, front.payload);
    unsent_messages_.pop_front();
  }
}

void Session::QueueMessage(uint32_t type,
                           std::span<const struct mig_iov> pieces) {
  if (writer_ == nullptr ||
      (rules_.ended_round() <= round_ends_sent_ && unsent_messages_.empty())) {
    FrameHeader header{.type = FrameType::kMessage};
    header.argument = type;
    channel().Send(header, pieces);
    return;
  }
  Waiting waiting;
  waiting.type = type;
  for (const struct mig_iov& piece : pieces) {
    const auto* from = static_cast<const uint8_t*>(piece.base);
    waiting.payload.insert(waiting.payload.end(), from, from + piece.length);
  }
  unsent_messages_.push_back(std::move(waiting));
}

absl::Status Session::OnZero(std::span<const uint8_t> payload) {
  MIG_RETURN_IF_ERROR(rules_.PeerData(rules_.done_round() + 1));
  if (round_end_) return PeerBroke("zero runs behind the end of their round");
  const auto runs = DecodeZeroRuns(payload);
  if (!runs.ok()) return runs.status();
  for (const WireZeroRun& run : *runs) {
    Block* const block = blocks_.FindByPeerId(run.block);
    if (block == nullptr) {
      return PeerBroke(absl::StrCat("a zero run in unknown block ", run.block));
    }
    MIG_RETURN_IF_ERROR(zeros_.Add(block, run.offset, run.length));
    zero_bytes_ += run.length;
    counters_.Add(Counter::kZeroBytesReceived, run.length);
  }
  return absl::OkStatus();
}

absl::Status Session::OnRoundEnd(uint64_t number,
                                 std::span<const uint8_t> payload) {
  MIG_RETURN_IF_ERROR(rules_.PeerData(number));
  if (round_end_ || payload.size() != kRoundSumsSize) {
    return PeerBroke("the end of a round twice");
  }
  round_end_ = {number, DecodeSums(payload.first<kRoundSumsSize>())};
  if (Mutated(Mutation::kAcknowledgeEarly)) {
    channel().Send(FrameType::kRoundAck, number);
  }
  return absl::OkStatus();
}

// The round is here when its fences, its end and its zeros are.
void Session::FinishRound() {
  const bool late = Mutated(Mutation::kZeroOvertakes) && round_end_;
  if (zeros_.size() > 0 && !late) zeros_.Write(kZeroBudget);
  if (!round_end_ || (zeros_.size() > 0 && !late) || fences_ == nullptr ||
      !fences_->Whole()) {
    return;
  }
  const auto [number, sums] = *round_end_;
  const bool counted =
      sums.data_bytes == fences_->bytes() || Mutated(Mutation::kSkipFence);
  if (!counted || sums.zero_bytes != zero_bytes_ ||
      fences_->round() != number) {
    return Fail(PeerBroke(absl::StrCat(
                    "round ", number, " with ", fences_->bytes(), " bytes and ",
                    zero_bytes_, " zero bytes, where its end says ",
                    sums.data_bytes, " and ", sums.zero_bytes)),
                Tell::kPeer);
  }
  const absl::Status ended = rules_.PeerRoundEnd(number);
  if (!ended.ok()) return Fail(ended, Tell::kPeer);
  counters_.Add(Counter::kBytesReceived, sums.data_bytes + sums.zero_bytes);
  round_end_.reset();
  zero_bytes_ = 0;
  fences_->Next();
  PushEvent(MIG_EVENT_ROUND_DONE, MIG_OK, number);
  if (!Mutated(Mutation::kAcknowledgeEarly)) {
    channel().Send(FrameType::kRoundAck, number);
  }
  while (!undelivered_.empty()) {
    Waiting& front = undelivered_.front();
    Deliver(front.type, std::move(front.payload));
    undelivered_.pop_front();
  }
}

absl::Status Session::OnRoundAck(uint64_t number) {
  MIG_RETURN_IF_ERROR(rules_.PeerRoundAck(number));
  writer_->Acknowledged(number);
  PushEvent(MIG_EVENT_ROUND_DONE, MIG_OK, number);
  return absl::OkStatus();
}

// What StepLink would do for the data path that no descriptor tells.
bool Session::DataWork() const {
  if (zeros_.size() > 0) return true;
  if (round_end_ && fences_ != nullptr && fences_->Whole()) return true;
  if (writer_ == nullptr) return false;
  if (writer_->NextDueNs() <= host_->NowNs()) return true;
  const bool room = channel().unsent_frames() < 4;
  return (writer_->zero_runs() > 0 && room) ||
         (writer_->zero_runs() == 0 &&
          writer_->posted_round() > round_ends_sent_);
}

}  // namespace mig::rdma
