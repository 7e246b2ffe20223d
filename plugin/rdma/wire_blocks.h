// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_WIRE_BLOCKS_H_
#define PLUGIN_RDMA_WIRE_BLOCKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/block_table.h"

namespace mig::rdma {

// A block as one side tells it to the other.
struct WireBlock {
  BlockDescription description;
  // Destination: where its memory starts, which the source writes to. Source:
  // 0, since nobody else accesses its memory.
  uint64_t address = 0;
};

// Tables longer than kMaxTablePayload are the caller's to refuse.
std::vector<uint8_t> EncodeBlocks(std::span<const WireBlock> blocks);
// Errors: PROTOCOL for counts, lengths and names that can't be, and for
// addresses whose block would wrap around (H6).
absl::StatusOr<std::vector<WireBlock>> DecodeBlocks(
    std::span<const uint8_t> payload);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WIRE_BLOCKS_H_
