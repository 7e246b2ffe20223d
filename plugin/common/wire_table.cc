// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/wire_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig {
namespace {

constexpr size_t kOwnAt = 24;      // after id, flags, length, page size
constexpr size_t kNameLength = 4;  // follows the transport's own bytes

}  // namespace

std::vector<uint8_t> EncodeTable(
    size_t count, size_t own,
    absl::FunctionRef<const BlockDescription&(size_t i, uint8_t* own)> each) {
  const size_t fixed = kOwnAt + own + kNameLength;
  std::vector<uint8_t> own_bytes(own);
  std::vector<uint8_t> bytes(4);
  Put<uint32_t>(bytes.data(), static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const BlockDescription& block = each(i, own_bytes.data());
    const size_t at = bytes.size();
    bytes.resize(at + fixed + block.name.size());
    uint8_t* const to = bytes.data() + at;
    Put<uint32_t>(to, block.id);
    Put<uint32_t>(to + 4, block.flags);
    Put<uint64_t>(to + 8, block.length);
    Put<uint64_t>(to + 16, block.page_size);
    std::copy(own_bytes.begin(), own_bytes.end(), to + kOwnAt);
    Put<uint32_t>(to + kOwnAt + own, static_cast<uint32_t>(block.name.size()));
    std::copy(block.name.begin(), block.name.end(), to + fixed);
  }
  return bytes;
}

absl::Status DecodeTable(std::span<const uint8_t> payload, size_t own,
                         absl::FunctionRef<absl::Status(
                             BlockDescription&& block, const uint8_t* own)>
                             each) {
  const size_t fixed = kOwnAt + own + kNameLength;
  if (payload.size() < 4) return PeerBroke("a block table without a count");
  const uint32_t count = Get<uint32_t>(payload.data());
  payload = payload.subspan(4);
  if (count > kMaxBlocks || count > payload.size() / fixed) {
    return PeerBroke(absl::StrCat("a block table of ", payload.size(),
                                  " bytes that claims ", count, " blocks"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (payload.size() < fixed) return PeerBroke("a cut block table");
    const uint8_t* const from = payload.data();
    BlockDescription block;
    block.id = Get<uint32_t>(from);
    block.flags = Get<uint32_t>(from + 4);
    block.length = Get<uint64_t>(from + 8);
    block.page_size = Get<uint64_t>(from + 16);
    const uint32_t name = Get<uint32_t>(from + kOwnAt + own);
    payload = payload.subspan(fixed);
    if (name == 0 || name > MIG_NAME_MAX || name > payload.size()) {
      return PeerBroke(absl::StrCat("a block name of ", name, " bytes"));
    }
    block.name.assign(reinterpret_cast<const char*>(payload.data()), name);
    payload = payload.subspan(name);
    MIG_RETURN_IF_ERROR(each(std::move(block), from + kOwnAt));
  }
  if (!payload.empty()) return PeerBroke("a block table with bytes left over");
  return absl::OkStatus();
}

}  // namespace mig
