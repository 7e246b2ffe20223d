// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The source's data path: takes the host's ranges, and spreads them over the
// data queue pairs. Knows nothing of connections or of the session's state.
//
// One batch is open at a time, in one queue; when it is posted the next queue's
// turn comes. So the number of queue pairs costs no doorbell, and a queue that
// is slow is passed over. Ranges whose chunk has no keys yet are set aside, and
// others go on. What is accepted is sent, whatever happens, or the session
// fails.
//
// Cost of a scattered page, beside WriteQueue's: the range check, a bit of
// maybe_nonzero (and one of the strict bitmap), some ten comparisons.
#ifndef PLUGIN_RDMA_DATA_WRITER_H_
#define PLUGIN_RDMA_DATA_WRITER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/host.h"
#include "common/ring_queue.h"
#include "mig_transport.h"
#include "rdma/aside_queue.h"
#include "rdma/chunk_map.h"
#include "rdma/fence.h"
#include "rdma/pacer.h"
#include "rdma/write_queue.h"
#include "rdma/zero_runs.h"

namespace mig::rdma {

// Why write took less than all.
enum class Stall : uint8_t {
  kNone,
  kRound,      // the round before is not acknowledged
  kSendQueue,  // every send queue is full
  kKeys,       // a chunk has no keys, and no more can be set aside
  kBandwidth,  // max-bandwidth
  kZeroList,   // zero runs are not taken by the control channel
  kChunkBusy,  // writes-per-chunk=1
  kDrain,      // drain=iterate
};
inline constexpr size_t kStalls = 8;

struct DataWriterSettings {
  uint64_t max_bandwidth = 0;  // bytes a second, 0: no limit
  size_t aside = 1024;         // ranges that may wait for keys
  size_t zero_runs = 4096;     // zero runs that may wait to be told
  // Chunks of a block whose keys are asked for ahead of the one written.
  uint32_t look_ahead = 16;
  // Looks whether a page is zero before it is sent as data. Reads all memory
  // that is: only where the guest has much of it.
  bool find_zero = false;
  // For comparison with older transports only: one write in flight to a chunk,
  // and everything in flight retired at each flush.
  bool one_write_per_chunk = false;
  bool drain_at_flush = false;
};

struct DataWriterStats {
  WriteStats writes;
  uint64_t bytes_accepted = 0;       // data and zero
  uint64_t zero_bytes_accepted = 0;  // of them zero
  uint64_t zero_bytes_found = 0;     // of those, by find_zero
  uint64_t zero_bytes_told = 0;      // of those, told to the peer
  uint64_t chunks_asked = 0;         // requests for keys given out
  uint64_t ranges_aside = 0;         // ever set aside
  uint64_t peak_aside = 0;
  std::array<uint64_t, kStalls> stalls = {};  // by Stall
};

// A chunk whose keys are wanted.
struct ChunkRequest {
  uint32_t block = 0;  // this side's id
  uint32_t chunk = 0;
  bool local = false;   // register it here: BlockRegistration::Ask, each rail
  bool remote = false;  // ask the peer for it
};

// Serialised by the host (rule 2); nothing here waits. Errors of posting and
// of completions are sticky: status() tells, Write only takes nothing then.
class DataWriter {
 public:
  struct Lane {
    std::unique_ptr<WriteQueue> queue;
    std::unique_ptr<FenceSlots> fences;
  };

  // `host`, `blocks` and `stats` must outlive it; `stats->writes` is what the
  // queues count in. Lanes in the order of their indices, 1..16.
  DataWriter(const Host* host, BlockTable* blocks,
             const DataWriterSettings& settings, std::vector<Lane> lanes,
             DataWriterStats* stats);

  // -- Blocks ---------------------------------------------------------------
  // A block that both sides agreed on, with its remote base and the keys that
  // are known so far. `peer_zeroed`: the peer's flag MIG_BLOCK_ZEROED. Not in a
  // round.
  void AddBlock(Block* block, std::unique_ptr<ChunkMap> map, bool peer_zeroed);
  // The block's map, null if there is none.
  ChunkMap* Map(uint32_t block);
  // Whether nothing that was accepted of the block is still to be written or
  // to be told. Posts what is staged, so that it comes true; Block::removing
  // was set before (C15).
  bool BlockIdle(uint32_t block);
  // Forgets an idle block.
  void RemoveBlock(uint32_t block);

  // -- Keys -------------------------------------------------------------------
  // Moves chunks whose keys are wanted to `out`; returns how many. To be called
  // after each Write and Pump; many in one request to the peer.
  size_t TakeRequests(std::span<ChunkRequest> out);
  // A key arrived; ranges that waited for the last one go out with the next
  // Pump. Errors: PEER_PROTOCOL, INTERNAL (see ChunkMap).
  absl::Status LocalReady(uint32_t block, uint32_t chunk, uint32_t rail,
                          uint32_t lkey);
  absl::Status RemoteReady(uint32_t block, uint64_t chunk, uint64_t rail,
                           uint32_t rkey);

  // -- Rounds -----------------------------------------------------------------
  // Opens round `round`, 1 first; the one before is ended. Nothing is taken
  // until that is acknowledged too; several may be opened and ended meanwhile,
  // with nothing in them.
  void RoundBegin(uint64_t round, bool strict);
  // The peer has `round` whole: the next may start, perhaps with its fences.
  void Acknowledged(uint64_t round);
  // As mig_transport_ops.write says. Errors, with nothing taken: those of
  // BlockTable::CheckRange; STRICT, which ends the session. A failure of the
  // device is not one of them: see status().
  absl::Status Write(const struct mig_range* ranges, size_t count,
                     size_t element_size, size_t* accepted, uint64_t* partial);
  // Posts what is staged; never waits.
  void Flush();
  // No more ranges come in the round that is open. Its fences go out, perhaps
  // only in later calls of Pump: when the one before is acknowledged, and all
  // that was accepted is posted.
  void RoundEnd();
  // The last round whose fences are posted on all queue pairs, 0 at first; what
  // was said of its zeros may still be in the list, for ROUND_END to follow.
  uint64_t posted_round() const { return fenced_round_; }

  // Zero runs to be told to the peer, of the round after the last acknowledged.
  size_t TakeZeroRuns(std::span<ZeroRun> out) { return zeros_.Take(out); }
  size_t zero_runs() const { return zeros_.size(); }

  // -- Progress ---------------------------------------------------------------
  // A completion whose wr_id is of WrKind::kDataSend.
  void OnCompletion(const ibv_wc& wc);
  // Sends what waits and may go. To be called after completions, keys and at
  // NextDueNs.
  void Pump();
  // The first error.
  const absl::Status& status() const { return status_; }
  // Whether a Write that took less than all would now take something, and the
  // host was not told yet: for WRITE_READY.
  bool WriteReadyDue();
  void ToldWriteReady() { stall_ = Stall::kNone; }
  // Why the last Write took less than all; kNone if it took all, or the host
  // was told since.
  Stall stall() const { return stall_; }
  // When Pump has something to do by the clock, or MIG_NO_DEADLINE.
  uint64_t NextDueNs() const;
  // WRs posted and not retired: what a drain waits for.
  uint64_t outstanding() const;
  size_t lanes() const { return lanes_.size(); }
  WriteQueue& queue(size_t lane) { return *lanes_[lane].queue; }

 private:
  struct Entry {
    Block* block = nullptr;
    std::unique_ptr<ChunkMap> map;
    uint64_t post_bytes = 0;  // a batch of that many is posted
  };

  Entry* Find(uint32_t block);
  size_t RangeRoom() const;
  // Whether the round that is open may be written: all before are done.
  bool RoundMayStart() const { return acked_round_ + 1 == round_; }
  bool MayTake();
  absl::Status CheckRange(const struct mig_range& range);
  uint64_t TakeRange(Entry* entry, const struct mig_range& range,
                     absl::Status* twice);
  uint64_t TakeScanned(Entry* entry, uint64_t offset, uint64_t length,
                       absl::Status* twice);
  uint64_t TakeZero(Entry* entry, uint64_t offset, uint64_t length,
                    absl::Status* twice);
  uint64_t TakeData(Entry* entry, uint64_t offset, uint64_t length,
                    absl::Status* twice);
  absl::Status CheckOnce(const Block& block, uint64_t offset,
                         uint64_t length) const;
  void NoteGiven(Block* block, uint64_t offset, uint64_t length);
  uint64_t SendOrSetAside(Entry* entry, uint64_t offset, uint64_t length);
  uint64_t Send(const WritePiece& piece, uint64_t post_bytes);
  bool WaitsForNone(WriteQueue* queue, WritePiece* piece);
  WriteQueue* QueueWithRoom();
  void Posted(const WriteQueue& queue);
  void PostStaged();
  void AskAround(ChunkMap* map, uint32_t chunk);
  void Ask(ChunkMap* map, uint32_t chunk);
  // Nothing that was accepted could go and was not sent.
  bool NothingBegun() const {
    return carry_.map == nullptr && !aside_.HasReady();
  }
  // Nothing that was accepted was not sent.
  bool NothingWaits() const {
    return carry_.map == nullptr && aside_.size() == 0;
  }
  void PumpCarry();
  void PumpAside();
  void PostFences();

  const Host* const host_;
  BlockTable* const blocks_;
  const DataWriterSettings settings_;
  std::vector<Lane> lanes_;
  DataWriterStats* const stats_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Entry>> entries_;
  Entry* last_found_ = nullptr;
  absl::Status status_;

  size_t current_ = 0;  // the lane whose batch is open
  Pacer pacer_;
  AsideQueue aside_;
  ZeroList zeros_;
  RingQueue<ChunkRequest> requests_;
  // The rest of a page that was begun: pages may be larger than chunks.
  WritePiece carry_;

  uint64_t round_ = 0;         // last begun
  uint64_t ended_round_ = 0;   // last ended
  uint64_t acked_round_ = 0;   // last acknowledged
  uint64_t fenced_round_ = 0;  // last whose fences are posted
  bool strict_ = false;        // the last begun
  bool draining_ = false;
  bool flush_waits_ = false;    // something was not sent when flush was called
  Stall cause_ = Stall::kNone;  // why the last piece could not be sent
  Stall stall_ = Stall::kNone;  // why the last Write took less than all
  const ChunkTraffic* busy_chunk_ = nullptr;  // of Stall::kChunkBusy
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_DATA_WRITER_H_
