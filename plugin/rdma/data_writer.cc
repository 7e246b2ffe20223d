// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Taking ranges: what the host and the session call. Sending is in
// data_writer_send.cc.
#include "rdma/data_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/wr_id.h"
#include "rdma/zero_scan.h"

namespace mig::rdma {
namespace {

// A batch of larger pieces is posted before it has 64 of them, so that the
// wire does not wait for it. Pages of up to 2 MiB still share a doorbell.
constexpr uint64_t kLeastPostBytes = uint64_t{1} << 20;
constexpr uint64_t kMostPostBytes = uint64_t{128} << 20;
constexpr uint64_t kPagesPerPost = 64;
// What is looked at, at once, and again where less is taken; and the largest
// page that is: Write must not take long.
constexpr uint64_t kScan = uint64_t{256} << 10;
constexpr uint64_t kMostScan = uint64_t{2} << 20;

uint64_t PostBytes(uint64_t page_size) {
  return std::clamp(page_size * kPagesPerPost, kLeastPostBytes, kMostPostBytes);
}

}  // namespace

DataWriter::DataWriter(const Host* host, BlockTable* blocks,
                       const DataWriterSettings& settings,
                       std::vector<Lane> lanes, DataWriterStats* stats)
    : host_(host),
      blocks_(blocks),
      settings_(settings),
      lanes_(std::move(lanes)),
      stats_(stats),
      pacer_(settings.max_bandwidth),
      aside_(settings.aside),
      zeros_(settings.zero_runs) {}

// -- Blocks -------------------------------------------------------------------

void DataWriter::AddBlock(Block* block, std::unique_ptr<ChunkMap> map,
                          bool peer_zeroed) {
  block->maybe_nonzero.Resize(block->length >> block->page_shift, !peer_zeroed);
  entries_[block->id] = std::make_unique<Entry>(
      Entry{block, std::move(map), PostBytes(block->page_size)});
}

DataWriter::Entry* DataWriter::Find(uint32_t block) {
  if (last_found_ != nullptr && last_found_->block->id == block) {
    return last_found_;
  }
  const auto found = entries_.find(block);
  if (found == entries_.end()) return nullptr;
  last_found_ = found->second.get();
  return last_found_;
}

ChunkMap* DataWriter::Map(uint32_t block) {
  Entry* const entry = Find(block);
  return entry == nullptr ? nullptr : entry->map.get();
}

bool DataWriter::BlockIdle(uint32_t block) {
  Entry* const entry = Find(block);
  if (entry == nullptr) return true;
  PostStaged();
  const ChunkMap& map = *entry->map;
  return map.in_flight == 0 && map.aside == 0 && carry_.map != &map &&
         !zeros_.Names(entry->block);
}

void DataWriter::RemoveBlock(uint32_t block) {
  Entry* const entry = Find(block);
  if (entry == nullptr) return;
  // Nothing refers to it but what it was last asked for.
  for (size_t left = requests_.size(); left > 0; --left) {
    const ChunkRequest request = requests_.front();
    requests_.pop_front();
    if (request.block != block) requests_.push_back(request);
  }
  busy_chunk_ = nullptr;
  last_found_ = nullptr;
  entries_.erase(block);
}

// -- Keys ---------------------------------------------------------------------

absl::Status DataWriter::LocalReady(uint32_t block, uint32_t chunk,
                                    uint32_t rail, uint32_t lkey) {
  ChunkMap* const map = Map(block);
  if (map == nullptr) return absl::OkStatus();  // removed meanwhile
  const auto ready = map->SetLocal(chunk, rail, lkey);
  if (!ready.ok()) return ready.status();
  if (*ready) aside_.ChunkReady(map, chunk);
  return absl::OkStatus();
}

absl::Status DataWriter::RemoteReady(uint32_t block, uint64_t chunk,
                                     uint64_t rail, uint32_t rkey) {
  ChunkMap* const map = Map(block);
  if (map == nullptr) return absl::OkStatus();  // removed meanwhile
  const auto ready = map->SetRemote(chunk, rail, rkey);
  if (!ready.ok()) return ready.status();
  if (*ready) aside_.ChunkReady(map, static_cast<uint32_t>(chunk));
  return absl::OkStatus();
}

size_t DataWriter::TakeRequests(std::span<ChunkRequest> out) {
  size_t count = 0;
  while (count < out.size() && !requests_.empty()) {
    out[count++] = requests_.front();
    requests_.pop_front();
  }
  stats_->chunks_asked += count;
  return count;
}

void DataWriter::Ask(ChunkMap* map, uint32_t chunk) {
  const bool local = map->AskLocal(chunk);
  const bool remote = map->AskRemote(chunk);
  if (local || remote) {
    requests_.push_back({map->block(), chunk, local, remote});
  }
}

// Asks for this chunk and those after it. In groups of half the look-ahead, so
// that a request to the peer is for many.
void DataWriter::AskAround(ChunkMap* map, uint32_t chunk) {
  const uint32_t last = map->count() - 1;
  const uint32_t ahead = std::min(settings_.look_ahead, last - chunk);
  const uint32_t middle = chunk + ahead / 2;
  if (!map->Unasked(chunk) && !map->Unasked(middle)) return;
  for (uint32_t i = chunk; i <= chunk + ahead; ++i) Ask(map, i);
}

// -- Rounds -------------------------------------------------------------------

void DataWriter::RoundBegin(uint64_t round, bool strict) {
  round_ = round;
  strict_ = strict;
  stall_ = Stall::kNone;
  if (!strict) return;
  for (const auto& [id, entry] : entries_) {
    Block* const block = entry->block;
    block->given.Resize(block->length >> block->page_shift, false);
  }
}

// Ranges that there is room for if none merges with another; those beyond are
// looked at when there is still room after them.
size_t DataWriter::RangeRoom() const {
  constexpr size_t kLeast = 64;
  size_t room = 0;
  for (const Lane& lane : lanes_) room += lane.queue->batch();
  return std::max(kLeast, room);
}

absl::Status DataWriter::Write(const struct mig_range* ranges, size_t count,
                               size_t element_size, size_t* accepted,
                               uint64_t* partial) {
  *accepted = 0;
  *partial = 0;
  const Stall waited = std::exchange(stall_, Stall::kNone);
  Pump();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(ranges);
  const auto range_at = [bytes, element_size](size_t i) {
    return reinterpret_cast<const struct mig_range*>(bytes + i * element_size);
  };
  bool goes_on = MayTake();
  while (goes_on && *accepted < count) {
    const size_t limit = *accepted + std::min(count - *accepted, RangeRoom());
    for (size_t i = *accepted; i < limit; ++i) {
      absl::Status status = CheckRange(*range_at(i));
      if (status.ok()) continue;
      if (*accepted == 0) {
        stall_ = waited;  // nothing was done, and WRITE_READY is still owed
        return status;
      }
      // What was taken stays taken; the next call meets the error first.
      stall_ = Stall::kSendQueue;
      return absl::OkStatus();
    }
    while (goes_on && *accepted < limit) {
      const struct mig_range& range = *range_at(*accepted);
      absl::Status twice;
      const uint64_t done = TakeRange(Find(range.block), range, &twice);
      if (!twice.ok()) return twice;
      goes_on = done == range.length;
      if (goes_on) {
        ++*accepted;
      } else {
        *partial = done;
        stall_ = cause_;
      }
    }
  }
  if (*accepted < count) ++stats_->stalls[static_cast<size_t>(stall_)];
  return absl::OkStatus();
}

// Sets stall_ where it answers false. What waits goes first, so that nothing
// waits for ever.
bool DataWriter::MayTake() {
  if (!status_.ok()) return false;
  if (!RoundMayStart()) {
    stall_ = Stall::kRound;
  } else if (draining_) {
    stall_ = Stall::kDrain;
  } else if (!NothingBegun()) {
    stall_ = cause_;
  } else {
    return true;
  }
  return false;
}

absl::Status DataWriter::CheckRange(const struct mig_range& range) {
  Block* block = nullptr;
  MIG_RETURN_IF_ERROR(blocks_->CheckRange(range, &block));
  if (Find(range.block) != nullptr) return absl::OkStatus();
  return MakeError(MIG_E_BLOCK,
                   absl::StrCat("a range names block ", range.block,
                                ", which is not ready yet"));
}

// Returns the bytes taken, whole pages, and with them cause_ where that is less
// than all.
uint64_t DataWriter::TakeRange(Entry* entry, const struct mig_range& range,
                               absl::Status* twice) {
  uint64_t done = 0;
  if ((range.flags & MIG_RANGE_ZERO) != 0) {
    done = TakeZero(entry, range.offset, range.length, twice);
  } else if (settings_.find_zero && entry->block->page_size <= kMostScan) {
    done = TakeScanned(entry, range.offset, range.length, twice);
  } else {
    done = TakeData(entry, range.offset, range.length, twice);
  }
  stats_->bytes_accepted += done;
  return done;
}

uint64_t DataWriter::TakeScanned(Entry* entry, uint64_t offset, uint64_t length,
                                 absl::Status* twice) {
  const uint64_t page_size = entry->block->page_size;
  const uint64_t most = std::max(page_size, kScan);
  uint64_t done = 0;
  while (done < length) {
    bool zero = false;
    const uint64_t run =
        ScanPages(entry->block->base + offset + done,
                  std::min(length - done, most), page_size, &zero);
    const uint64_t step = zero ? TakeZero(entry, offset + done, run, twice)
                               : TakeData(entry, offset + done, run, twice);
    if (zero) stats_->zero_bytes_found += step;
    done += step;
    if (step < run || !twice->ok()) break;
  }
  return done;
}

uint64_t DataWriter::TakeZero(Entry* entry, uint64_t offset, uint64_t length,
                              absl::Status* twice) {
  Block* const block = entry->block;
  if (strict_) {
    *twice = CheckOnce(*block, offset, length);
    if (!twice->ok()) return 0;
  }
  const uint64_t done =
      zeros_.Add(block, offset, length, &stats_->zero_bytes_told);
  if (done < length) cause_ = Stall::kZeroList;
  stats_->zero_bytes_accepted += done;
  NoteGiven(block, offset, done);
  return done;
}

uint64_t DataWriter::TakeData(Entry* entry, uint64_t offset, uint64_t length,
                              absl::Status* twice) {
  Block* const block = entry->block;
  const uint64_t page_mask = block->page_size - 1;
  uint64_t done = 0;
  while (done < length) {
    const uint64_t part = entry->map->Cut(offset + done, length - done);
    if (strict_) {
      *twice = CheckOnce(*block, offset + done, part);
      if (!twice->ok()) return 0;  // the session ends
    }
    const uint64_t step = SendOrSetAside(entry, offset + done, part);
    done += step;
    if (step == 0) break;
  }
  // A page that is begun is taken whole.
  const uint64_t rest = (page_mask + 1 - (done & page_mask)) & page_mask;
  if (rest > 0) carry_ = {entry->map.get(), offset + done, rest};
  done += rest;
  block->maybe_nonzero.Set(offset >> block->page_shift,
                           done >> block->page_shift);
  NoteGiven(block, offset, done);
  return done;
}

void DataWriter::NoteGiven(Block* block, uint64_t offset, uint64_t length) {
  if (!strict_) return;
  block->given.Set(offset >> block->page_shift, length >> block->page_shift);
}

absl::Status DataWriter::CheckOnce(const Block& block, uint64_t offset,
                                   uint64_t length) const {
  if (length == 0) return absl::OkStatus();
  const uint64_t first = offset >> block.page_shift;
  const uint64_t last = (offset + length - 1) >> block.page_shift;
  if (!block.given.AnySet(first, last - first + 1)) return absl::OkStatus();
  return MakeError(
      MIG_E_STRICT,
      absl::StrCat("a page of block '", block.name, "' in ", length,
                   " bytes at offset ", offset, " was given twice in round ",
                   round_, ": end the round first"));
}

void DataWriter::Flush() {
  Pump();
  PostStaged();
  flush_waits_ = !NothingWaits();
  if (settings_.drain_at_flush) draining_ = true;
  Pump();  // there may be nothing to drain
}

void DataWriter::Acknowledged(uint64_t round) {
  acked_round_ = round;
  Pump();
}

void DataWriter::RoundEnd() {
  ended_round_ = round_;
  stall_ = Stall::kNone;
  Pump();
}

}  // namespace mig::rdma
