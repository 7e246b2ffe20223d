// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The writer of one data queue pair: turns pieces of guest memory into chained
// RDMA WRITEs, a batch a doorbell, and accounts for the send queue.
//
// Every list that is posted ends in a signalled work request, and a queue pair
// retires its work requests in order, so that there is never a tail that
// nothing would retire (C05). A list has at most 64 entries and at most half
// the depth, and a batch is begun only when all of it has room: each doorbell
// is then for a full batch, but for the one at a flush and at a round's end.
//
// Cost of a page that merges with nothing: about 60 bytes stored in two arrays
// that stay in cache, one counter of its chunk, and a 64th of a post and of a
// completion. No allocation, lock, system call or log.
#ifndef PLUGIN_RDMA_WRITE_QUEUE_H_
#define PLUGIN_RDMA_WRITE_QUEUE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma/chunk_map.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// Counted by all write queues of a session together. Only grow, but for the
// gauge in_flight.
struct WriteStats {
  uint64_t writes = 0;     // RDMA WRITE WRs posted
  uint64_t fences = 0;     // SEND WRs posted
  uint64_t bytes = 0;      // posted
  uint64_t doorbells = 0;  // calls of ibv_post_send
  uint64_t cqes = 0;       // completions seen
  uint64_t merges = 0;     // pieces that went into the WR before
  uint64_t splits = 0;     // further WRs since max_msg_sz is smaller
  uint64_t in_flight = 0;  // WRs posted and not retired
  uint64_t peak_in_flight = 0;
  uint64_t peak_per_chunk = 0;
};

struct WriteQueueSettings {
  uint32_t depth = 0;        // max_send_wr as granted
  uint64_t max_message = 0;  // ibv_port_attr.max_msg_sz
  uint32_t batch = 64;       // at most; cut to half the depth
  uint32_t rail = 0;         // of ChunkMap: which keys to use
  uint8_t index = 0;         // of this queue pair among the data queue pairs
};

// Bytes of one chunk, which is ready.
struct WritePiece {
  ChunkMap* map = nullptr;
  uint64_t offset = 0;  // from the block's start
  uint64_t length = 0;  // does not leave the chunk
};

// Not thread-safe. The first error is sticky: nothing is posted afterwards
// (C32), only completions are still taken.
class WriteQueue {
 public:
  // `qp`, `verbs` (for texts of errors) and `stats` must outlive it; `qp` is
  // posted to by nobody else. Errors: DEVICE where the depth is below 2 or no
  // message may have a byte.
  static absl::StatusOr<std::unique_ptr<WriteQueue>> Create(
      verbs::Verbs* verbs, ibv_qp* qp, const WriteQueueSettings& settings,
      WriteStats* stats);

  // Whether Add takes something: a batch is being filled, or there is room for
  // a whole one.
  bool HasRoom() const {
    return status_.ok() && (staged_ > 0 ? FreeSlots() > 0 : RoomForBatch());
  }
  // Takes from the front of the piece and returns the bytes taken: all, or
  // less where a batch gets full, which is posted then, where room ends, or an
  // error happens (see status()). A piece of 0 bytes is nothing.
  uint64_t Add(const WritePiece& piece);
  // Bytes from the front of the piece that would only lengthen the last WR
  // staged.
  uint64_t MergeRoom(const WritePiece& piece) const;
  // Posts what is staged. Nothing staged is fine.
  absl::Status Post();
  // Posts what is staged and behind it a SEND of `payload`, which must stay as
  // it is until retired. Only with FenceRoom.
  absl::Status PostFence(const ibv_sge& payload);
  // Room is kept for one fence; that is taken until the one before the last
  // is retired, so that two payloads are enough.
  bool FenceRoom() const {
    return status_.ok() && outstanding() + staged_ < settings_.depth &&
           fences_outstanding_ < 2;
  }

  // A completion whose wr_id is MakeWrId(kDataSend, index). Retires it and all
  // before it. An error of the completion is the queue's; one that retires
  // nothing, or what was never posted, is DEVICE (C06: each WR once).
  absl::Status OnCompletion(const ibv_wc& wc);

  const absl::Status& status() const { return status_; }
  uint8_t index() const { return settings_.index; }
  ibv_qp* qp() const { return qp_; }
  uint32_t batch() const { return batch_; }
  // The longest message that is posted.
  uint64_t max_message() const { return settings_.max_message; }
  uint32_t staged() const { return staged_; }
  uint64_t staged_bytes() const { return staged_bytes_; }
  // WRs posted and not retired. After the queue pair went to the error state
  // each of them completes, flushed, so this gets to 0 (C07).
  uint64_t outstanding() const { return posted_ - retired_; }
  // Staged and posted since the last fence: what the next one tells the peer.
  uint64_t round_writes() const { return round_writes_ + staged_; }
  uint64_t round_bytes() const { return round_bytes_ + staged_bytes_; }

 private:
  // A run of consecutive WRs to one chunk; that is all that is remembered of
  // pages that are under way.
  struct Run {
    ChunkMap* map = nullptr;  // null: a fence
    uint32_t chunk = 0;
    uint32_t count = 0;
    uint64_t end = 0;  // number of the WR after the last of the run
  };

  WriteQueue(verbs::Verbs* verbs, ibv_qp* qp,
             const WriteQueueSettings& settings, uint32_t batch,
             WriteStats* stats);
  // One slot is kept for the fence.
  uint64_t FreeSlots() const {
    const uint64_t used = outstanding() + staged_ + 1;
    return used < settings_.depth ? settings_.depth - used : 0;
  }
  bool RoomForBatch() const { return FreeSlots() >= batch_; }
  void Stage(const WritePiece& piece);
  void NoteRun(ChunkMap* map, uint32_t chunk);
  absl::Status PostList();
  uint32_t CountPosted(const ibv_send_wr* bad) const;
  void Posted(uint32_t count);
  absl::Status PostFailed(int system_errno, uint32_t posted,
                          uint32_t count) const;
  Run& RunAt(size_t i) {
    const size_t at = run_head_ + i;
    return runs_[at < runs_.size() ? at : at - runs_.size()];
  }
  void Retire(uint64_t end);

  verbs::Verbs* const verbs_;
  ibv_qp* const qp_;
  const WriteQueueSettings settings_;
  const uint32_t batch_;
  WriteStats* const stats_;
  absl::Status status_;

  // One more than a batch, for the fence. wrs_ are chained once for all.
  std::vector<ibv_send_wr> wrs_;
  std::vector<ibv_sge> sges_;
  uint32_t staged_ = 0;
  uint64_t staged_bytes_ = 0;
  uint32_t fences_outstanding_ = 0;
  // The last WR staged, to merge with.
  ChunkMap* last_map_ = nullptr;
  uint32_t last_chunk_ = 0;

  uint64_t posted_ = 0;    // WRs ever posted; the next one's number
  uint64_t retired_ = 0;   // WRs ever retired
  std::vector<Run> runs_;  // a ring of `depth` + 1
  size_t run_head_ = 0;
  size_t run_count_ = 0;
  uint64_t round_writes_ = 0;
  uint64_t round_bytes_ = 0;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WRITE_QUEUE_H_
