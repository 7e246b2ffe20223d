// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/write_queue.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/mutation.h"
#include "rdma/wc_error.h"
#include "rdma/wr_id.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// ibv_sge has 32 bits for a length, and no provider takes more than 1 GiB well.
constexpr uint64_t kLongestMessage = uint64_t{1} << 30;
constexpr uint64_t kCutAlignment = 4096;

// A message is cut where the next begins aligned.
uint64_t LongestCut(uint64_t max_message) {
  const uint64_t longest = std::min(max_message, kLongestMessage);
  return longest < kCutAlignment ? longest : longest & ~(kCutAlignment - 1);
}

WriteQueueSettings WithLongestCut(WriteQueueSettings settings) {
  settings.max_message = LongestCut(settings.max_message);
  return settings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WriteQueue>> WriteQueue::Create(
    verbs::Verbs* verbs, ibv_qp* qp, const WriteQueueSettings& settings,
    WriteStats* stats) {
  // One for the fence, and one for a write.
  if (settings.depth < 2 || settings.max_message == 0 || settings.batch == 0) {
    return MakeError(
        MIG_E_DEVICE,
        absl::StrCat("data queue pair ", settings.index, " has a depth of ",
                     settings.depth, " work requests, messages of ",
                     settings.max_message, " bytes and batches of ",
                     settings.batch,
                     ": it needs 2, 1 and 1 at least; use another device or "
                     "fewer queue pairs"));
  }
  const uint32_t batch =
      std::min(settings.batch, std::max((settings.depth - 1) / 2, 1u));
  return std::unique_ptr<WriteQueue>(
      new WriteQueue(verbs, qp, WithLongestCut(settings), batch, stats));
}

WriteQueue::WriteQueue(verbs::Verbs* verbs, ibv_qp* qp,
                       const WriteQueueSettings& settings, uint32_t batch,
                       WriteStats* stats)
    : verbs_(verbs),
      qp_(qp),
      settings_(settings),
      batch_(batch),
      stats_(stats),
      wrs_(batch + 1),
      sges_(batch + 1),
      runs_(size_t{settings.depth} + batch + 1) {
  for (size_t i = 0; i < wrs_.size(); ++i) {
    wrs_[i].next = i + 1 < wrs_.size() ? &wrs_[i + 1] : nullptr;
    wrs_[i].sg_list = &sges_[i];
    wrs_[i].num_sge = 1;
    wrs_[i].opcode = IBV_WR_RDMA_WRITE;
    wrs_[i].send_flags = 0;
  }
}

uint64_t WriteQueue::MergeRoom(const WritePiece& piece) const {
  if (staged_ == 0 || piece.map != last_map_) return 0;
  const ibv_sge& last = sges_[staged_ - 1];
  // Both sides of a block are laid out alike, so what follows here follows
  // there; and within one chunk the keys are the same.
  const auto address = reinterpret_cast<uintptr_t>(piece.map->base());
  if (last.addr + last.length != address + piece.offset ||
      piece.map->IndexOf(piece.offset) != last_chunk_) {
    return 0;
  }
  return std::min(piece.length, settings_.max_message - last.length);
}

uint64_t WriteQueue::Add(const WritePiece& piece) {
  if (!status_.ok()) return 0;
  uint64_t done = MergeRoom(piece);
  if (done > 0) {
    sges_[staged_ - 1].length += static_cast<uint32_t>(done);
    staged_bytes_ += done;
    ++stats_->merges;
  }
  bool first = true;
  while (done < piece.length && HasRoom()) {
    const uint64_t length =
        std::min(piece.length - done, settings_.max_message);
    Stage({piece.map, piece.offset + done, length});
    if (!first) ++stats_->splits;
    first = false;
    done += length;
    if (staged_ < batch_) continue;
    (void)Post();  // sticky
    break;
  }
  return done;
}

void WriteQueue::Stage(const WritePiece& piece) {
  ChunkMap* const map = piece.map;
  const uint32_t chunk = map->IndexOf(piece.offset);
  ibv_sge& sge = sges_[staged_];
  sge.addr = reinterpret_cast<uintptr_t>(map->base()) + piece.offset;
  sge.length = static_cast<uint32_t>(piece.length);
  sge.lkey = map->lkey(chunk, settings_.rail);
  ibv_send_wr& wr = wrs_[staged_];
  wr.wr_id = MakeWrId(WrKind::kDataSend, settings_.index, posted_ + staged_);
  wr.wr.rdma.remote_addr = map->remote_base() + piece.offset;
  wr.wr.rdma.rkey = map->rkey(chunk, settings_.rail);
  NoteRun(map, chunk);
  ++staged_;
  staged_bytes_ += piece.length;
  last_map_ = map;
  last_chunk_ = chunk;
}

// Called before staged_ counts the WR.
void WriteQueue::NoteRun(ChunkMap* map, uint32_t chunk) {
  const uint64_t end = posted_ + staged_ + 1;
  if (staged_ > 0 && run_count_ > 0) {
    Run& last = RunAt(run_count_ - 1);
    if (last.map == map && last.chunk == chunk) {
      ++last.count;
      last.end = end;
      return;
    }
  }
  RunAt(run_count_) = {map, chunk, 1, end};
  ++run_count_;
}

absl::Status WriteQueue::Post() {
  if (staged_ == 0 || !status_.ok()) return status_;
  stats_->bytes += staged_bytes_;
  round_bytes_ += staged_bytes_;
  round_writes_ += staged_;
  return PostList();
}

absl::Status WriteQueue::PostFence(const ibv_sge& payload) {
  if (!status_.ok()) return status_;
  if (!FenceRoom()) {
    return MakeError(MIG_E_INTERNAL,
                     absl::StrCat("no room for a fence on data queue pair ",
                                  settings_.index));
  }
  // Counted before, because the list ends in the fence.
  stats_->bytes += staged_bytes_;
  ibv_send_wr& wr = wrs_[staged_];
  wr.wr_id = MakeWrId(WrKind::kDataSend, settings_.index, posted_ + staged_);
  wr.opcode = IBV_WR_SEND;
  sges_[staged_] = payload;
  NoteRun(nullptr, 0);
  const uint32_t place = staged_++;
  absl::Status status = PostList();
  wrs_[place].opcode = IBV_WR_RDMA_WRITE;
  round_writes_ = 0;
  round_bytes_ = 0;
  return status;
}

// Rings the doorbell for what is staged; the last one is signalled, whatever
// it is.
absl::Status WriteQueue::PostList() {
  const uint32_t count = staged_;
  ibv_send_wr& last = wrs_[count - 1];
  ibv_send_wr* const chained = last.next;
  last.next = nullptr;
  last.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (Mutated(Mutation::kDropLastSignalled) && count > 1 &&
      last.opcode == IBV_WR_RDMA_WRITE) {
    last.sg_list->length = 0;
  }
  errno = 0;
  const int result = ibv_post_send(qp_, wrs_.data(), &bad);
  const int errno_after = errno;
  ++stats_->doorbells;
  const bool trusted = result == 0 || Mutated(Mutation::kIgnoreBadWr);
  const uint32_t posted = trusted ? count : CountPosted(bad);
  last.next = chained;
  last.send_flags = 0;
  staged_ = 0;
  staged_bytes_ = 0;
  Posted(posted);
  if (!trusted) {
    status_ = PostFailed(verbs::ErrnoOf(result, errno_after), posted, count);
  }
  return status_;
}

// How many went out before the one that failed: it and those after it did not
// (H4). A provider that names none of ours, has posted nothing that we know.
uint32_t WriteQueue::CountPosted(const ibv_send_wr* bad) const {
  for (uint32_t i = 0; i < staged_; ++i) {
    if (&wrs_[i] == bad) return i;
  }
  return 0;
}

// Moves the runs of the list from staged to posted, and takes back what did
// not go out.
void WriteQueue::Posted(uint32_t count) {
  const uint64_t end = posted_ + count;
  while (run_count_ > 0 && RunAt(run_count_ - 1).end > end) {
    Run& run = RunAt(run_count_ - 1);
    const uint64_t excess = run.end - end;
    if (excess >= run.count) {
      --run_count_;
      continue;
    }
    run.count -= static_cast<uint32_t>(excess);
    run.end = end;
  }
  for (size_t i = run_count_; i > 0; --i) {
    const Run& run = RunAt(i - 1);
    if (run.end <= posted_) break;  // of a list before
    if (run.map == nullptr) {
      ++fences_outstanding_;
      ++stats_->fences;
      continue;
    }
    ChunkTraffic& traffic = run.map->traffic(run.chunk);
    traffic.in_flight += run.count;
    run.map->in_flight += run.count;
    stats_->writes += run.count;
    stats_->peak_per_chunk =
        std::max<uint64_t>(stats_->peak_per_chunk, traffic.in_flight);
  }
  posted_ = end;
  stats_->in_flight += count;
  stats_->peak_in_flight = std::max(stats_->peak_in_flight, stats_->in_flight);
}

absl::Status WriteQueue::PostFailed(int system_errno, uint32_t posted,
                                    uint32_t count) const {
  // Credits are counted, so even ENOMEM can't mean a queue that is full for a
  // while.
  return MakeError(
      system_errno == EFAULT ? MIG_E_GUEST_MEMORY : MIG_E_DEVICE,
      absl::StrCat("data queue pair ", settings_.index, " took ", posted,
                   " of ", count, " work requests with ",
                   outstanding() - posted, " of ", settings_.depth,
                   " in flight, 1 segment each and none inline: ",
                   ErrnoText(system_errno),
                   "; the device grants less than it said: use a smaller "
                   "queue depth"),
      system_errno);
}

absl::Status WriteQueue::OnCompletion(const ibv_wc& wc) {
  ++stats_->cqes;
  const uint64_t number = WrIdNumber(wc.wr_id);
  if (number < retired_ || number >= posted_) {
    if (status_.ok()) {
      status_ = MakeError(
          MIG_E_DEVICE,
          absl::StrCat("data queue pair ", settings_.index,
                       " completed work request ", number, ", and ", retired_,
                       " to ", posted_,
                       " (not included) are in flight: the device is broken"));
    }
    return status_;
  }
  if (wc.status != IBV_WC_SUCCESS && status_.ok()) {
    status_ = CompletionError(
        verbs_, wc,
        absl::StrCat("work request ", number, " on data queue pair ",
                     settings_.index, ", with ", outstanding(), " in flight,"));
  }
  Retire(number + 1);
  return status_;
}

void WriteQueue::Retire(uint64_t end) {
  uint64_t from = retired_;
  while (run_count_ > 0 && from < end) {
    Run& run = RunAt(0);
    const auto part = static_cast<uint32_t>(std::min(run.end, end) - from);
    if (run.map != nullptr) {
      run.map->traffic(run.chunk).in_flight -= part;
      run.map->in_flight -= part;
    } else {
      --fences_outstanding_;
    }
    run.count -= part;
    from += part;
    if (run.count > 0) break;
    run_head_ = run_head_ + 1 == runs_.size() ? 0 : run_head_ + 1;
    --run_count_;
  }
  stats_->in_flight -= end - retired_;
  retired_ = end;
}

}  // namespace mig::rdma
