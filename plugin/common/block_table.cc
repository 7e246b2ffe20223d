// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/block_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "common/error.h"

namespace mig {
namespace {

constexpr uint64_t kMinPage = 1024;
constexpr uint64_t kMaxPage = uint64_t{1} << 30;
constexpr uint32_t kKnownFlags =
    MIG_BLOCK_ZEROED | MIG_BLOCK_DISCARDABLE | MIG_BLOCK_FD | MIG_BLOCK_KEPT;

absl::Status CheckName(const char* name) {
  const size_t length = name == nullptr ? 0 : strnlen(name, MIG_NAME_MAX + 1);
  if (length == 0 || length > MIG_NAME_MAX) {
    return MakeError(MIG_E_BLOCK,
                     absl::StrCat("a block name has ", length,
                                  length > MIG_NAME_MAX ? " or more" : "",
                                  " bytes: give 1 to ", MIG_NAME_MAX));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const struct mig_block& block) {
  if (!std::has_single_bit(block.page_size) || block.page_size < kMinPage ||
      block.page_size > kMaxPage) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("block '", block.name, "' has page size ", block.page_size,
                     ": give a power of two from 1024 to 1073741824"));
  }
  if (block.length == 0 || block.length % block.page_size != 0) {
    return MakeError(MIG_E_RANGE,
                     absl::StrCat("block '", block.name, "' has ", block.length,
                                  " bytes: give a multiple of its page size ",
                                  block.page_size, " above 0"));
  }
  const auto address = reinterpret_cast<uintptr_t>(block.address);
  if (address == 0 || address % block.page_size != 0 ||
      address + block.length < address) {
    return MakeError(
        MIG_E_RANGE,
        absl::StrFormat("block '%s' is at address %#x with %u bytes: give an "
                        "address aligned to its page size %u that the block "
                        "does not wrap around",
                        block.name, address, block.length, block.page_size));
  }
  return absl::OkStatus();
}

absl::Status Mismatch(absl::string_view name, absl::string_view what,
                      uint64_t ours, uint64_t theirs) {
  return MakeError(
      MIG_E_PEER_MISMATCH,
      absl::StrCat("block '", name, "' has ", what, " ", ours, " here and ",
                   theirs,
                   " at the peer: start both sides with the same memory "
                   "layout"));
}

}  // namespace

absl::Status CheckTableFits(size_t blocks, size_t bytes) {
  if (blocks <= kMaxBlocks && bytes <= kMaxTablePayload) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_BLOCK,
      absl::StrCat("the table of ", blocks, " blocks takes ", bytes,
                   " bytes, and at most ", kMaxBlocks, " blocks and ",
                   kMaxTablePayload,
                   " bytes fit: use fewer blocks or shorter names"));
}

absl::Status BlockTable::Add(const struct mig_block& block, bool pins) {
  if (block.size < sizeof(block)) {
    return MakeError(MIG_E_STRUCT_SIZE,
                     absl::StrCat("mig_block has size ", block.size,
                                  ": set it to at least ", sizeof(block)));
  }
  MIG_RETURN_IF_ERROR(CheckName(block.name));
  if ((block.flags & ~kKnownFlags) != 0) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrFormat("block '%s' has unknown flags %#x: this "
                                     "plugin knows %#x",
                                     block.name, block.flags, kKnownFlags));
  }
  if (pins && (block.flags & MIG_BLOCK_DISCARDABLE) != 0) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("block '", block.name, "' is discardable, and this ",
                     "plugin pins memory: a replaced page would be lost; "
                     "inhibit discards and drop the flag"));
  }
  MIG_RETURN_IF_ERROR(CheckLayout(block));
  if (by_id_.contains(block.id) || by_name_.contains(block.name)) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("block id ", block.id, " or name '", block.name,
                     "' was added before: each is used once"));
  }
  auto added = std::make_unique<Block>();
  added->id = block.id;
  added->flags = block.flags;
  added->name = block.name;
  added->base = static_cast<std::byte*>(block.address);
  added->length = block.length;
  added->page_size = block.page_size;
  added->page_shift = static_cast<uint32_t>(std::countr_zero(block.page_size));
  by_id_[block.id] = added.get();
  by_name_[added->name] = added.get();
  blocks_.push_back(std::move(added));
  return absl::OkStatus();
}

bool BlockTable::Remove(uint32_t id) {
  Block* block = Find(id);
  if (block == nullptr) return false;
  by_id_.erase(id);
  by_name_.erase(block->name);
  absl::erase_if(by_peer_id_,
                 [block](const auto& entry) { return entry.second == block; });
  last_found_ = nullptr;
  last_peer_found_ = nullptr;
  std::erase_if(blocks_,
                [block](const auto& owned) { return owned.get() == block; });
  return true;
}

Block* BlockTable::Find(uint32_t id) {
  if (last_found_ != nullptr && last_found_->id == id) return last_found_;
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  last_found_ = found->second;
  return last_found_;
}

Block* BlockTable::FindByPeerId(uint32_t id) {
  if (last_peer_found_ != nullptr && last_peer_id_ == id) {
    return last_peer_found_;
  }
  const auto found = by_peer_id_.find(id);
  if (found == by_peer_id_.end()) return nullptr;
  last_peer_id_ = id;
  last_peer_found_ = found->second;
  return last_peer_found_;
}

Block* BlockTable::FindByName(absl::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

absl::Status BlockTable::CheckRange(const struct mig_range& range,
                                    Block** block) {
  Block* const found = Find(range.block);
  if (found == nullptr || !found->agreed || found->removing) {
    return MakeError(
        MIG_E_BLOCK,
        absl::StrCat("a range names block ", range.block,
                     found == nullptr  ? ", which was not added"
                     : found->removing ? ", which is being removed"
                                       : ", which was not exchanged yet"));
  }
  if ((range.flags & ~MIG_RANGE_ZERO) != 0 || range.reserved != 0) {
    return MakeError(
        MIG_E_ARGUMENT,
        absl::StrFormat("a range has flags %#x and reserved %#x: this plugin "
                        "knows flag %#x only, and reserved must be 0",
                        range.flags, range.reserved, MIG_RANGE_ZERO));
  }
  // Written so that no sum can wrap (H5, H6).
  if (((range.offset | range.length) & (found->page_size - 1)) != 0 ||
      range.offset > found->length ||
      range.length > found->length - range.offset) {
    return MakeError(
        MIG_E_RANGE,
        absl::StrCat("a range of ", range.length, " bytes at offset ",
                     range.offset, " does not fit block '", found->name,
                     "' of ", found->length, " bytes in pages of ",
                     found->page_size));
  }
  *block = found;
  return absl::OkStatus();
}

std::vector<BlockDescription> BlockTable::NewBlocks() const {
  std::vector<BlockDescription> descriptions;
  for (const auto& block : blocks_) {
    if (block->agreed) continue;
    descriptions.push_back(BlockDescription{
        block->id, block->flags, block->length, block->page_size, block->name});
  }
  return descriptions;
}

absl::Status BlockTable::Agree(std::span<const BlockDescription> theirs) {
  absl::flat_hash_set<Block*> matched;
  absl::flat_hash_map<uint32_t, Block*> peer_ids;
  for (const BlockDescription& peer : theirs) {
    Block* const ours = FindByName(peer.name);
    if (ours == nullptr || ours->agreed) {
      return MakeError(
          MIG_E_PEER_MISMATCH,
          absl::StrCat("the peer has block '", peer.name, "' of ", peer.length,
                       " bytes, and this side has ",
                       ours == nullptr ? "none" : "agreed on it before",
                       ": start both sides with the same memory layout"));
    }
    if (ours->length != peer.length) {
      return Mismatch(peer.name, "length", ours->length, peer.length);
    }
    if (ours->page_size != peer.page_size) {
      return Mismatch(peer.name, "page size", ours->page_size, peer.page_size);
    }
    if (by_peer_id_.contains(peer.id) ||
        !peer_ids.try_emplace(peer.id, ours).second ||
        !matched.insert(ours).second) {
      return MakeError(MIG_E_PEER_PROTOCOL,
                       absl::StrCat("the peer lists block id ", peer.id,
                                    " or name '", peer.name, "' twice"));
    }
  }
  for (const auto& ours : blocks_) {
    if (ours->agreed || matched.contains(ours.get())) continue;
    return MakeError(
        MIG_E_PEER_MISMATCH,
        absl::StrCat("this side has block '", ours->name, "' of ", ours->length,
                     " bytes, and the peer has none: start both sides with "
                     "the same memory layout"));
  }
  by_peer_id_.insert(peer_ids.begin(), peer_ids.end());
  for (const auto& [id, block] : peer_ids) {
    block->agreed = true;
    block->peer_id = id;
  }
  return absl::OkStatus();
}

uint64_t BlockTable::total_bytes() const {
  uint64_t total = 0;
  for (const auto& block : blocks_) total += block->length;
  return total;
}

}  // namespace mig
