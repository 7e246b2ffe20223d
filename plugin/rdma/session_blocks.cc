// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks: agreeing on them, registering them, telling keys, taking them away.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/session.h"

namespace mig::rdma {

absl::Status Session::OnBlocks(std::span<const uint8_t> payload) {
  if (their_table_ || preparing_) {
    return PeerBroke("a block table before the last was answered");
  }
  auto table = DecodeBlocks(payload);
  if (!table.ok()) return table.status();
  their_table_ = *std::move(table);
  if (!table_sent_) return absl::OkStatus();
  // Keys may follow at once: agree before they are read.
  return AgreeOnBlocks();
}

absl::Status Session::AgreeOnBlocks() {
  const std::vector<WireBlock> theirs =
      *std::exchange(their_table_, std::nullopt);
  table_sent_ = false;
  std::vector<BlockDescription> descriptions;
  descriptions.reserve(theirs.size());
  for (const WireBlock& block : theirs) {
    descriptions.push_back(block.description);
  }
  MIG_RETURN_IF_ERROR(blocks_.Agree(descriptions));
  removed_ids_.clear();
  preparing_ = true;
  prepared_ = peer_prepared_ = false;
  preparing_told_ = 0;
  for (const WireBlock& block : theirs) {
    MIG_RETURN_IF_ERROR(
        PrepareBlock(blocks_.FindByPeerId(block.description.id), block));
  }
  MIG_RETURN_IF_ERROR(CheckPinnable());
  if (settings_.pinned) {
    for (const auto& block : blocks_.blocks()) {
      const auto found = registrations_.find(block->id);
      if (found != registrations_.end()) found->second->AskAll();
    }
  }
  return absl::OkStatus();
}

absl::Status Session::PrepareBlock(Block* block, const WireBlock& theirs) {
  MIG_RETURN_IF_ERROR(OpenRegistration(block));
  if (!rules_.source()) return absl::OkStatus();
  auto map = ChunkMap::Create(block->id, block->base, block->length,
                              opened_.agreement.chunk_size, rails_.pairs());
  if (!map.ok()) return map.status();
  MIG_RETURN_IF_ERROR((*map)->SetRemoteBase(theirs.address));
  writer_->AddBlock(block, *std::move(map),
                    (theirs.description.flags & MIG_BLOCK_ZEROED) != 0);
  return absl::OkStatus();
}

absl::Status Session::OpenRegistration(Block* block) {
  RegistrationCache::Request request;
  request.name = block->name;
  request.base = block->base;
  request.length = block->length;
  request.chunk_size = opened_.agreement.chunk_size;
  request.use =
      rules_.source() ? MemoryUse::kReadHere : MemoryUse::kWrittenByPeer;
  request.kept = (block->flags & MIG_BLOCK_KEPT) != 0;
  request.wake = [poller = poller_.get()] { poller->Wake(); };
  auto opened = rails_.Open(request);
  if (!opened.ok()) return opened.status();
  registrations_[block->id] = *std::move(opened);
  return absl::OkStatus();
}

// Before anything is pinned, not half-way (C11).
absl::Status Session::CheckPinnable() {
  if (!settings_.pinned) return absl::OkStatus();
  std::vector<const RailRegistrations*> all;
  for (const auto& block : blocks_.blocks()) {
    const auto found = registrations_.find(block->id);
    if (found != registrations_.end()) all.push_back(found->second.get());
  }
  return rails_.CheckPinnable(all);
}

absl::Status Session::TakeKeys(uint32_t id, RailRegistrations* registrations,
                               std::vector<ChunkKey>* keys) {
  std::array<BlockRegistration::ReadyChunk, 64> ready;
  for (uint32_t rail = 0; rail < registrations->rails();) {
    const auto count = registrations->rail(rail).TakeReady(ready);
    if (!count.ok()) return count.status();
    for (size_t i = 0; i < *count; ++i) {
      const BlockRegistration::ReadyChunk& chunk = ready[i];
      if (writer_ == nullptr) {
        keys->push_back({id, chunk.chunk, rail, chunk.rkey});
        continue;
      }
      MIG_RETURN_IF_ERROR(rails_.EachOfLocal(rail, [&](uint32_t pair) {
        return writer_->LocalReady(id, chunk.chunk, pair, chunk.lkey);
      }));
    }
    if (*count == 0) ++rail;
  }
  return absl::OkStatus();
}

// The destination names blocks by the source's ids.
void Session::SendKeys(std::span<const ChunkKey> keys) {
  while (!keys.empty()) {
    const size_t count = std::min(keys.size(), kMaxChunkKeys);
    channel().Send(FrameType::kKeys, 0, EncodeChunkKeys(keys.first(count)));
    keys = keys.subspan(count);
  }
}

// No key of it is of use any more: of a block that is taken away the source
// needs those that its last ranges wait for.
bool Session::Released(const Block& block) const {
  return block.removing &&
         (writer_ == nullptr || std::any_of(removals_.begin(), removals_.end(),
                                            [&block](const Removal& removal) {
                                              return removal.id == block.id &&
                                                     removal.told;
                                            }));
}

void Session::StepRegistrations() {
  if (rails_.empty()) return;
  // Without threads this is who does the work, a slice at a time.
  if (pool_->settings().threads == 0) rails_.Step();
  if (!linked() || rules_.failed() || link_over_) return;
  std::vector<ChunkKey> keys;
  for (const auto& block : blocks_.blocks()) {
    const auto found = registrations_.find(block->id);
    if (found == registrations_.end() || Released(*block)) continue;
    const size_t before = keys.size();
    const absl::Status status = TakeKeys(block->id, found->second.get(), &keys);
    if (!status.ok()) return Fail(status, Tell::kPeer);
    for (size_t i = before; i < keys.size(); ++i) {
      keys[i].block = block->peer_id;
    }
  }
  SendKeys(keys);
  StepPreparing();
}

void Session::StepPreparing() {
  if (!preparing_) return;
  uint64_t asked = 0;
  uint64_t ready = 0;
  for (const auto& [id, registration] : registrations_) {
    asked += registration->asked_bytes();
    ready += registration->ready_bytes();
  }
  if (settings_.pinned && ready != preparing_told_) {
    preparing_told_ = ready;
    PushEvent(MIG_EVENT_PREPARING, MIG_OK, ready, asked);
  }
  if (!prepared_ && (!settings_.pinned || ready == asked)) {
    prepared_ = true;
    channel().Send(FrameType::kPrepared);
  }
  if (!prepared_ || !peer_prepared_) return;
  preparing_ = false;
  rules_.Exchanged();
  PushEvent(MIG_EVENT_BLOCKS_READY);
}

absl::Status Session::OnAsk(std::span<const uint8_t> payload) {
  const auto spans = DecodeChunkSpans(payload);
  if (!spans.ok()) return spans.status();
  for (const ChunkSpan& span : *spans) {
    Block* const block = blocks_.FindByPeerId(span.block);
    const auto found = block == nullptr ? registrations_.end()
                                        : registrations_.find(block->id);
    if (found == registrations_.end()) {
      return PeerBroke(
          absl::StrCat("a request for keys of unknown block ", span.block));
    }
    const uint32_t count = found->second->chunk_count();
    if (span.first >= count || span.count > count - span.first) {
      return PeerBroke(absl::StrCat("a request for ", span.count,
                                    " chunks from ", span.first, " of block '",
                                    block->name, "', which has ", count));
    }
    found->second->Ask(span.first, span.count);
  }
  return absl::OkStatus();
}

absl::Status Session::OnKeys(std::span<const uint8_t> payload) {
  const auto keys = DecodeChunkKeys(payload);
  if (!keys.ok()) return keys.status();
  for (const ChunkKey& key : *keys) {
    // On its way when the block was taken away.
    if (removed_ids_.contains(key.block)) continue;
    if (!rails_.HasRemote(key.rail)) {
      return PeerBroke(absl::StrCat("a key for its device ", key.rail,
                                    ", which no data queue pair came up on"));
    }
    MIG_RETURN_IF_ERROR(rails_.EachOfRemote(key.rail, [&](uint32_t pair) {
      return writer_->RemoteReady(key.block, key.chunk, pair, key.rkey);
    }));
  }
  return absl::OkStatus();
}

absl::Status Session::OnBlockRemoved(uint64_t argument) {
  MIG_RETURN_IF_ERROR(rules_.PeerBlockRemoved());
  Block* const block =
      argument > std::numeric_limits<uint32_t>::max()
          ? nullptr
          : blocks_.FindByPeerId(static_cast<uint32_t>(argument));
  if (block == nullptr || block->removing) {
    return PeerBroke(
        absl::StrCat("word that unknown block ", argument, " was removed"));
  }
  block->removing = true;
  removals_.push_back({.id = block->id});
  return absl::OkStatus();
}

// The source drains its writes before it tells the peer, which has written its
// zeros before it lets go; each then deregisters (C15).
void Session::StepRemovals() {
  for (size_t i = 0; i < removals_.size();) {
    Removal& removal = removals_[i];
    Block* const block = blocks_.Find(removal.id);
    const auto found = registrations_.find(removal.id);
    if (!removal.told) {
      const bool idle = writer_ != nullptr ? writer_->BlockIdle(removal.id)
                                           : !zeros_.Names(block);
      if (!idle) {
        ++i;
        continue;
      }
      if (writer_ != nullptr) {
        SendZeroRuns();
        channel().Send(FrameType::kBlockRemoved, removal.id);
        writer_->RemoveBlock(removal.id);
        removed_ids_.insert(removal.id);
      }
      removal.told = true;
      if (found != registrations_.end()) found->second->Release();
    }
    if (found != registrations_.end() && !found->second->released()) {
      ++i;
      continue;
    }
    if (found != registrations_.end()) registrations_.erase(found);
    const uint32_t id = removal.id;
    removals_.erase(removals_.begin() + static_cast<std::ptrdiff_t>(i));
    blocks_.Remove(id);
    PushEvent(MIG_EVENT_BLOCK_REMOVED, MIG_OK, id);
  }
}

bool Session::RemovalWork() {
  return std::any_of(
      removals_.begin(), removals_.end(), [this](const Removal& removal) {
        const auto found = registrations_.find(removal.id);
        if (removal.told) {
          return found == registrations_.end() || found->second->released();
        }
        return writer_ != nullptr ? writer_->BlockIdle(removal.id) : true;
      });
}

}  // namespace mig::rdma
