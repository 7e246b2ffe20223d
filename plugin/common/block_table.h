// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The guest memory blocks of one session: what the host may add, what both
// sides must agree on, and whether a range lies inside.
#ifndef PLUGIN_COMMON_BLOCK_TABLE_H_
#define PLUGIN_COMMON_BLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/page_bitmap.h"
#include "mig_transport.h"

namespace mig {

struct Block {
  uint32_t id = 0;
  uint32_t flags = 0;
  std::string name;
  std::byte* base = nullptr;
  uint64_t length = 0;
  uint64_t page_size = 0;
  uint32_t page_shift = 0;
  uint32_t peer_id = 0;   // when agreed
  bool agreed = false;    // both sides have it; ranges may name it
  bool removing = false;  // no new range may name it
  // Destination: pages that may hold something other than zero.
  PageBitmap maybe_nonzero;
  // Source, strict rounds only: pages given in this round.
  PageBitmap given;
};

// What one side tells the other about a block.
struct BlockDescription {
  uint32_t id = 0;
  uint32_t flags = 0;
  uint64_t length = 0;
  uint64_t page_size = 0;
  std::string name;
};

// The most that the table of one exchange may hold.
inline constexpr uint32_t kMaxBlocks = 65536;
inline constexpr uint32_t kMaxTablePayload = 16u << 20;
// Whether a table of `blocks` takes no more, encoded. Errors: BLOCK.
absl::Status CheckTableFits(size_t blocks, size_t bytes);

// Not thread-safe (rule 2 serialises). Pointers to blocks stay valid until
// the block is removed.
class BlockTable {
 public:
  // Errors: BLOCK, RANGE, STRUCT_SIZE; `pins` refuses DISCARDABLE (rule 10).
  absl::Status Add(const struct mig_block& block, bool pins);
  // Forgets a block; false if there is none of that id.
  bool Remove(uint32_t id);
  // Null if there is none. O(1); the last block found costs one comparison.
  Block* Find(uint32_t id);

  // The source's check of one range: flags, reserved word, alignment, bounds,
  // and an agreed block (*block). Costs about ten comparisons.
  absl::Status CheckRange(const struct mig_range& range, Block** block);

  // The blocks added since the last Agree.
  std::vector<BlockDescription> NewBlocks() const;
  // Holds the peer's description of its new blocks against ours, by name.
  // On success all are agreed, and FindByPeerId knows them. Errors: MISMATCH,
  // naming the block and both values.
  absl::Status Agree(std::span<const BlockDescription> theirs);
  // The block that the peer calls `id`, or null.
  Block* FindByPeerId(uint32_t id);

  size_t size() const { return blocks_.size(); }
  uint64_t total_bytes() const;
  std::span<const std::unique_ptr<Block>> blocks() const { return blocks_; }

 private:
  Block* FindByName(absl::string_view name);

  std::vector<std::unique_ptr<Block>> blocks_;  // in the order of Add
  absl::flat_hash_map<uint32_t, Block*> by_id_;
  absl::flat_hash_map<uint32_t, Block*> by_peer_id_;
  absl::flat_hash_map<std::string, Block*> by_name_;
  Block* last_found_ = nullptr;
  Block* last_peer_found_ = nullptr;
  uint32_t last_peer_id_ = 0;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_BLOCK_TABLE_H_
