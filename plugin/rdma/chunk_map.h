// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The source's view of one block, cut into chunks: the unit in which memory is
// registered and keys travel. Says which chunks may be written to, and counts
// what is under way to each.
#ifndef PLUGIN_RDMA_CHUNK_MAP_H_
#define PLUGIN_RDMA_CHUNK_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mig::rdma {

inline constexpr uint64_t kMinChunk = uint64_t{1} << 20;
inline constexpr uint64_t kMaxChunk = uint64_t{1} << 30;
// With the address space in 1 MiB chunks the table alone would be terabytes.
inline constexpr uint64_t kMaxChunksPerBlock = uint64_t{1} << 24;
inline constexpr uint32_t kMaxRails = 16;

// Of one chunk's key on one rail. A key has no value that means "none": 0 is
// a key like any other.
enum class KeyState : uint8_t { kUnknown, kAsked, kReady };

// What the writer keeps for each chunk; only the data writer touches it.
struct ChunkTraffic {
  uint32_t in_flight = 0;   // WRs posted and not retired
  int32_t aside_head = -1;  // ranges that wait for the keys: a list in the
  int32_t aside_tail = -1;  // data writer's AsideQueue
};

// A rail is a pair of devices, a local and a remote one, that some data queue
// pairs run over; its keys are its own. One rail is the usual case. A chunk is
// ready when its keys of every rail are here, both the local and the remote.
//
// Not thread-safe. Offsets and lengths are in bytes, 64-bit throughout (H5).
// Nothing is allocated after Create.
class ChunkMap {
 public:
  // `chunk_size` is a power of two, kMinChunk..kMaxChunk. `block` is this
  // side's id, for messages and requests. Errors: OPTION, LIMIT.
  static absl::StatusOr<std::unique_ptr<ChunkMap>> Create(uint32_t block,
                                                          const std::byte* base,
                                                          uint64_t length,
                                                          uint64_t chunk_size,
                                                          uint32_t rails = 1);

  uint32_t block() const { return block_; }
  const std::byte* base() const { return base_; }
  uint64_t length() const { return length_; }
  uint64_t chunk_size() const { return uint64_t{1} << shift_; }
  uint32_t rails() const { return rails_; }
  uint32_t count() const { return static_cast<uint32_t>(traffic_.size()); }

  // Where the block starts in the peer's address space. Errors:
  // PEER_PROTOCOL where the block would wrap around.
  absl::Status SetRemoteBase(uint64_t address);
  uint64_t remote_base() const { return remote_base_; }

  // The offset must lie inside the block.
  uint32_t IndexOf(uint64_t offset) const {
    return static_cast<uint32_t>(offset >> shift_);
  }
  uint64_t OffsetOf(uint32_t chunk) const {
    return static_cast<uint64_t>(chunk) << shift_;
  }
  // The last chunk is shorter where the block is no multiple of the size.
  uint64_t LengthOf(uint32_t chunk) const {
    return std::min(chunk_size(), length_ - OffsetOf(chunk));
  }
  // How much of `length` bytes at `offset` lies in the first one's chunk.
  uint64_t Cut(uint64_t offset, uint64_t length) const {
    return std::min(length, OffsetOf(IndexOf(offset)) + chunk_size() - offset);
  }

  bool Ready(uint32_t chunk) const { return missing_[chunk] == 0; }
  // Chunks with a key missing.
  uint32_t unready() const { return unready_; }
  // Whether a key of that chunk is kUnknown: worth asking.
  bool Unasked(uint32_t chunk) const;
  KeyState LocalState(uint32_t chunk, uint32_t rail = 0) const {
    return keys_[Slot(chunk, rail)].local;
  }
  KeyState RemoteState(uint32_t chunk, uint32_t rail = 0) const {
    return keys_[Slot(chunk, rail)].remote;
  }
  // Valid when ready.
  uint32_t lkey(uint32_t chunk, uint32_t rail = 0) const {
    return keys_[Slot(chunk, rail)].lkey;
  }
  uint32_t rkey(uint32_t chunk, uint32_t rail = 0) const {
    return keys_[Slot(chunk, rail)].rkey;
  }

  // Turn kUnknown into kAsked on every rail; true if any was kUnknown.
  bool AskLocal(uint32_t chunk);
  bool AskRemote(uint32_t chunk);
  // The key arrived, asked or not (a pinning peer tells all unasked). True if
  // the chunk became ready. Of this side: a second key is INTERNAL. Of the
  // peer: a chunk or rail that does not exist, or a second key, is
  // PEER_PROTOCOL (H6).
  absl::StatusOr<bool> SetLocal(uint32_t chunk, uint32_t rail, uint32_t lkey);
  absl::StatusOr<bool> SetRemote(uint64_t chunk, uint64_t rail, uint32_t rkey);

  ChunkTraffic& traffic(uint32_t chunk) { return traffic_[chunk]; }
  // WRs of the whole block posted and not retired (C15).
  uint64_t in_flight = 0;
  // Ranges of the block that wait aside.
  uint64_t aside = 0;

 private:
  struct Keys {
    uint32_t lkey = 0;
    uint32_t rkey = 0;
    KeyState local = KeyState::kUnknown;
    KeyState remote = KeyState::kUnknown;
  };

  ChunkMap(uint32_t block, const std::byte* base, uint64_t length,
           uint32_t shift, uint32_t rails, size_t count);
  size_t Slot(uint32_t chunk, uint32_t rail) const {
    return size_t{chunk} * rails_ + rail;
  }
  bool KeyArrived(uint32_t chunk);

  const uint32_t block_;
  const std::byte* const base_;
  const uint64_t length_;
  const uint32_t shift_;
  const uint32_t rails_;
  uint64_t remote_base_ = 0;
  uint32_t unready_;
  std::vector<Keys> keys_;        // chunk by chunk, in it rail by rail
  std::vector<uint8_t> missing_;  // keys that each chunk still lacks
  std::vector<ChunkTraffic> traffic_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CHUNK_MAP_H_
