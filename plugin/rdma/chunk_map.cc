// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/chunk_map.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {

absl::StatusOr<std::unique_ptr<ChunkMap>> ChunkMap::Create(
    uint32_t block, const std::byte* base, uint64_t length, uint64_t chunk_size,
    uint32_t rails) {
  if (!std::has_single_bit(chunk_size) || chunk_size < kMinChunk ||
      chunk_size > kMaxChunk) {
    return MakeError(MIG_E_OPTION, absl::StrCat("chunk-size is ", chunk_size,
                                                ": give a power of two from ",
                                                kMinChunk, " to ", kMaxChunk));
  }
  if (rails == 0 || rails > kMaxRails) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("there are ", rails,
                                  " pairs of devices: use 1 to ", kMaxRails));
  }
  const auto shift = static_cast<uint32_t>(std::countr_zero(chunk_size));
  // Written so that nothing can wrap (H5).
  const uint64_t count =
      (length >> shift) + ((length & (chunk_size - 1)) != 0 ? 1 : 0);
  if (count > kMaxChunksPerBlock) {
    return MakeError(
        MIG_E_LIMIT,
        absl::StrCat("block ", block, " has ", length, " bytes, which is ",
                     count, " chunks of ", chunk_size, ", and at most ",
                     kMaxChunksPerBlock, " can be: use a larger chunk-size"));
  }
  return std::unique_ptr<ChunkMap>(new ChunkMap(
      block, base, length, shift, rails, static_cast<size_t>(count)));
}

ChunkMap::ChunkMap(uint32_t block, const std::byte* base, uint64_t length,
                   uint32_t shift, uint32_t rails, size_t count)
    : block_(block),
      base_(base),
      length_(length),
      shift_(shift),
      rails_(rails),
      unready_(static_cast<uint32_t>(count)),
      keys_(count * rails),
      missing_(count, static_cast<uint8_t>(2 * rails)),
      traffic_(count) {}

absl::Status ChunkMap::SetRemoteBase(uint64_t address) {
  if (address + length_ < address) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("the peer says that block ", block_, " of ", length_,
                     " bytes is at address ", address,
                     " there, where it would wrap around: both sides need the "
                     "same version of this plugin"));
  }
  remote_base_ = address;
  return absl::OkStatus();
}

bool ChunkMap::Unasked(uint32_t chunk) const {
  if (Ready(chunk)) return false;
  for (uint32_t rail = 0; rail < rails_; ++rail) {
    const Keys& keys = keys_[Slot(chunk, rail)];
    if (keys.local == KeyState::kUnknown || keys.remote == KeyState::kUnknown) {
      return true;
    }
  }
  return false;
}

bool ChunkMap::AskLocal(uint32_t chunk) {
  bool any = false;
  for (uint32_t rail = 0; rail < rails_; ++rail) {
    KeyState& state = keys_[Slot(chunk, rail)].local;
    if (state != KeyState::kUnknown) continue;
    state = KeyState::kAsked;
    any = true;
  }
  return any;
}

bool ChunkMap::AskRemote(uint32_t chunk) {
  bool any = false;
  for (uint32_t rail = 0; rail < rails_; ++rail) {
    KeyState& state = keys_[Slot(chunk, rail)].remote;
    if (state != KeyState::kUnknown) continue;
    state = KeyState::kAsked;
    any = true;
  }
  return any;
}

bool ChunkMap::KeyArrived(uint32_t chunk) {
  if (--missing_[chunk] > 0) return false;
  --unready_;
  return true;
}

absl::StatusOr<bool> ChunkMap::SetLocal(uint32_t chunk, uint32_t rail,
                                        uint32_t lkey) {
  if (chunk >= count() || rail >= rails_ ||
      LocalState(chunk, rail) == KeyState::kReady) {
    return MakeError(MIG_E_INTERNAL,
                     absl::StrCat("a local key for chunk ", chunk, " of ",
                                  count(), " of block ", block_, ", rail ",
                                  rail, ", came twice or names none"));
  }
  Keys& keys = keys_[Slot(chunk, rail)];
  keys.lkey = lkey;
  keys.local = KeyState::kReady;
  return KeyArrived(chunk);
}

absl::StatusOr<bool> ChunkMap::SetRemote(uint64_t chunk, uint64_t rail,
                                         uint32_t rkey) {
  if (chunk >= count() || rail >= rails_) {
    return MakeError(MIG_E_PEER_PROTOCOL,
                     absl::StrCat("the peer gave a key for chunk ", chunk,
                                  " of ", count(), " of block ", block_,
                                  ", device pair ", rail, " of ", rails_));
  }
  const auto index = static_cast<uint32_t>(chunk);
  Keys& keys = keys_[Slot(index, static_cast<uint32_t>(rail))];
  if (keys.remote == KeyState::kReady) {
    return MakeError(MIG_E_PEER_PROTOCOL,
                     absl::StrCat("the peer gave a second key for chunk ",
                                  chunk, " of block ", block_));
  }
  keys.rkey = rkey;
  keys.remote = KeyState::kReady;
  return KeyArrived(index);
}

}  // namespace mig::rdma
