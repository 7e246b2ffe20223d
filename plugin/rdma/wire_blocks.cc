// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/wire_blocks.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"
#include "common/wire_table.h"

namespace mig::rdma {
namespace {

constexpr size_t kAddressSize = 8;

}  // namespace

std::vector<uint8_t> EncodeBlocks(std::span<const WireBlock> blocks) {
  return EncodeTable(
      blocks.size(), kAddressSize,
      [blocks](size_t i, uint8_t* address) -> const BlockDescription& {
        Put<uint64_t>(address, blocks[i].address);
        return blocks[i].description;
      });
}

absl::StatusOr<std::vector<WireBlock>> DecodeBlocks(
    std::span<const uint8_t> payload) {
  std::vector<WireBlock> blocks;
  const auto add = [&blocks](BlockDescription&& about, const uint8_t* own) {
    const uint64_t address = Get<uint64_t>(own);
    if (about.length > std::numeric_limits<uint64_t>::max() - address) {
      return PeerBroke(absl::StrCat("a block of ", about.length,
                                    " bytes at address ", address));
    }
    blocks.push_back({std::move(about), address});
    return absl::OkStatus();
  };
  MIG_RETURN_IF_ERROR(DecodeTable(payload, kAddressSize, add));
  return blocks;
}

}  // namespace mig::rdma
