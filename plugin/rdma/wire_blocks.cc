// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/wire_blocks.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig::rdma {
namespace {

constexpr size_t kBlockFixedSize = 36;

}  // namespace

std::vector<uint8_t> EncodeBlocks(std::span<const WireBlock> blocks) {
  std::vector<uint8_t> bytes(4);
  Put<uint32_t>(bytes.data(), static_cast<uint32_t>(blocks.size()));
  for (const WireBlock& block : blocks) {
    const BlockDescription& about = block.description;
    const size_t at = bytes.size();
    bytes.resize(at + kBlockFixedSize + about.name.size());
    uint8_t* const to = bytes.data() + at;
    Put<uint32_t>(to, about.id);
    Put<uint32_t>(to + 4, about.flags);
    Put<uint64_t>(to + 8, about.length);
    Put<uint64_t>(to + 16, about.page_size);
    Put<uint64_t>(to + 24, block.address);
    Put<uint32_t>(to + 32, static_cast<uint32_t>(about.name.size()));
    std::copy(about.name.begin(), about.name.end(), to + kBlockFixedSize);
  }
  return bytes;
}

absl::StatusOr<std::vector<WireBlock>> DecodeBlocks(
    std::span<const uint8_t> payload) {
  if (payload.size() < 4) return PeerBroke("a block table without a count");
  const uint32_t count = Get<uint32_t>(payload.data());
  payload = payload.subspan(4);
  if (count > kMaxBlocks || count > payload.size() / kBlockFixedSize) {
    return PeerBroke(absl::StrCat("a block table of ", payload.size(),
                                  " bytes that claims ", count, " blocks"));
  }
  std::vector<WireBlock> blocks(count);
  for (WireBlock& block : blocks) {
    if (payload.size() < kBlockFixedSize) return PeerBroke("a cut block table");
    BlockDescription& about = block.description;
    about.id = Get<uint32_t>(payload.data());
    about.flags = Get<uint32_t>(payload.data() + 4);
    about.length = Get<uint64_t>(payload.data() + 8);
    about.page_size = Get<uint64_t>(payload.data() + 16);
    block.address = Get<uint64_t>(payload.data() + 24);
    const uint32_t name = Get<uint32_t>(payload.data() + 32);
    payload = payload.subspan(kBlockFixedSize);
    if (name == 0 || name > MIG_NAME_MAX || name > payload.size()) {
      return PeerBroke(absl::StrCat("a block name of ", name, " bytes"));
    }
    if (about.length > std::numeric_limits<uint64_t>::max() - block.address) {
      return PeerBroke(absl::StrCat("a block of ", about.length,
                                    " bytes at address ", block.address));
    }
    about.name.assign(reinterpret_cast<const char*>(payload.data()), name);
    payload = payload.subspan(name);
  }
  if (!payload.empty()) return PeerBroke("a block table with bytes left over");
  return blocks;
}

}  // namespace mig::rdma
