// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Sending what was taken, now or later.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/data_writer.h"
#include "rdma/wr_id.h"

namespace mig::rdma {
namespace {

// With several queue pairs a large piece is cut, so that all share in it.
constexpr uint64_t kSpreadBytes = uint64_t{8} << 20;

}  // namespace

// Takes bytes of one chunk from the front of the range; 0, with cause_ set,
// where none can be.
uint64_t DataWriter::SendOrSetAside(Entry* entry, uint64_t offset,
                                    uint64_t length) {
  ChunkMap* const map = entry->map.get();
  const uint32_t chunk = map->IndexOf(offset);
  if (map->unready() > 0) AskAround(map, chunk);
  if (map->Ready(chunk)) return Send({map, offset, length}, entry->post_bytes);
  if (!aside_.Push({map, offset, length})) {
    cause_ = Stall::kKeys;
    return 0;
  }
  ++stats_->ranges_aside;
  stats_->peak_aside = aside_.peak();
  return length;
}

// Takes from the front of the piece, whose chunk is ready.
uint64_t DataWriter::Send(const WritePiece& piece, uint64_t post_bytes) {
  uint64_t done = 0;
  while (done < piece.length && status_.ok()) {
    WriteQueue* const queue = QueueWithRoom();
    if (queue == nullptr) {
      cause_ = Stall::kSendQueue;
      break;
    }
    WritePiece rest = {piece.map, piece.offset + done, piece.length - done};
    if (lanes_.size() > 1) rest.length = std::min(rest.length, kSpreadBytes);
    rest.length = pacer_.Allowed(rest.length);
    if (rest.length == 0) {
      cause_ = Stall::kBandwidth;
      break;
    }
    if (settings_.one_write_per_chunk && !WaitsForNone(queue, &rest)) {
      cause_ = Stall::kChunkBusy;
      break;
    }
    const uint64_t taken = queue->Add(rest);
    pacer_.Spend(taken);
    done += taken;
    if (queue->staged_bytes() >= post_bytes) (void)queue->Post();  // sticky
    if (queue->staged() == 0) Posted(*queue);
  }
  return done;
}

// The next queue's turn comes when this one's batch is posted.
void DataWriter::Posted(const WriteQueue& queue) {
  current_ = current_ + 1 == lanes_.size() ? 0 : current_ + 1;
  if (status_.ok() && !queue.status().ok()) status_ = queue.status();
}

WriteQueue* DataWriter::QueueWithRoom() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    WriteQueue& queue = *lanes_[current_].queue;
    if (queue.HasRoom()) return &queue;
    current_ = current_ + 1 == lanes_.size() ? 0 : current_ + 1;
  }
  return nullptr;
}

// For comparison with older transports: a write is posted alone, when the one
// before it to the same chunk is retired. Cuts the piece to what one write can
// carry.
bool DataWriter::WaitsForNone(WriteQueue* queue, WritePiece* piece) {
  if (const uint64_t merge = queue->MergeRoom(*piece); merge > 0) {
    piece->length = std::min(piece->length, merge);
    return true;
  }
  (void)queue->Post();  // sticky
  piece->length = std::min(piece->length, queue->max_message());
  const ChunkTraffic& traffic =
      piece->map->traffic(piece->map->IndexOf(piece->offset));
  busy_chunk_ = &traffic;
  return traffic.in_flight == 0;
}

void DataWriter::PostStaged() {
  for (const Lane& lane : lanes_) {
    if (lane.queue->staged() == 0) continue;
    (void)lane.queue->Post();  // sticky
    Posted(*lane.queue);
  }
}

void DataWriter::OnCompletion(const ibv_wc& wc) {
  const size_t lane = WrIdQueue(wc.wr_id);
  if (lane >= lanes_.size()) {
    if (!status_.ok()) return;
    status_ = MakeError(
        MIG_E_DEVICE,
        absl::StrCat("a send completed on data queue pair ", lane, " of ",
                     lanes_.size(), ": the device is broken"));
    return;
  }
  absl::Status status = lanes_[lane].queue->OnCompletion(wc);
  if (status_.ok() && !status.ok()) status_ = std::move(status);
}

void DataWriter::Pump() {
  if (!status_.ok()) return;
  if (pacer_.limited()) pacer_.Tick(host_->NowNs());
  PumpCarry();
  PumpAside();
  if (flush_waits_ && NothingWaits()) {
    flush_waits_ = false;
    PostStaged();
  }
  if (draining_ && NothingWaits()) {
    PostStaged();
    draining_ = outstanding() > 0;
  }
  // What was accepted is of the round after the last acknowledged.
  const bool due = fenced_round_ == acked_round_ && ended_round_ > acked_round_;
  if (due && NothingWaits()) PostFences();
}

void DataWriter::PumpCarry() {
  while (carry_.map != nullptr) {
    Entry* const entry = Find(carry_.map->block());
    const uint64_t part = carry_.map->Cut(carry_.offset, carry_.length);
    const uint64_t done = SendOrSetAside(entry, carry_.offset, part);
    if (done == 0) return;
    carry_.offset += done;
    carry_.length -= done;
    if (carry_.length == 0) carry_ = {};
  }
}

void DataWriter::PumpAside() {
  while (aside_.HasReady()) {
    AsideQueue::Range& range = aside_.Front();
    const Entry* const entry = Find(range.map->block());
    const uint64_t done =
        Send({range.map, range.offset, range.length}, entry->post_bytes);
    if (done == 0) return;
    range.offset += done;
    range.length -= done;
    if (range.length == 0) aside_.PopFront();
  }
}

void DataWriter::PostFences() {
  for (const Lane& lane : lanes_) {
    if (!lane.queue->FenceRoom()) return;
  }
  fenced_round_ = acked_round_ + 1;
  const size_t slot = fenced_round_ % 2;
  for (const Lane& lane : lanes_) {
    WriteQueue& queue = *lane.queue;
    EncodeFence({.queue = queue.index(),
                 .queues = static_cast<uint16_t>(lanes_.size()),
                 .round = fenced_round_,
                 .writes = queue.round_writes(),
                 .bytes = queue.round_bytes()},
                lane.fences->bytes(slot));
    absl::Status status = queue.PostFence(lane.fences->sge(slot));
    if (status_.ok() && !status.ok()) status_ = std::move(status);
  }
}

bool DataWriter::WriteReadyDue() {
  if (!status_.ok() || !RoundMayStart() || ended_round_ == round_ ||
      draining_ || !NothingBegun()) {
    return false;
  }
  switch (stall_) {
    case Stall::kNone:
      return false;
    case Stall::kRound:
    case Stall::kDrain:
      return true;
    case Stall::kSendQueue:
      return QueueWithRoom() != nullptr;
    case Stall::kKeys:
      return aside_.free() > aside_.capacity() / 4;
    case Stall::kBandwidth:
      pacer_.Tick(host_->NowNs());
      return pacer_.Ready();
    case Stall::kZeroList:
      return zeros_.free() > settings_.zero_runs / 2;
    case Stall::kChunkBusy:
      return busy_chunk_ == nullptr || busy_chunk_->in_flight == 0;
  }
  return true;
}

uint64_t DataWriter::NextDueNs() const {
  if (!pacer_.limited() || !status_.ok()) return MIG_NO_DEADLINE;
  const bool waits = stall_ == Stall::kBandwidth ||
                     (!NothingBegun() && cause_ == Stall::kBandwidth);
  return waits ? pacer_.DueNs() : MIG_NO_DEADLINE;
}

uint64_t DataWriter::outstanding() const {
  uint64_t total = 0;
  for (const Lane& lane : lanes_) total += lane.queue->outstanding();
  return total;
}

}  // namespace mig::rdma
