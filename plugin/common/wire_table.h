// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A table of blocks on the wire: a count, then each block with its name. A
// transport may say more of a block, in `own` bytes of fixed size.
#ifndef PLUGIN_COMMON_WIRE_TABLE_H_
#define PLUGIN_COMMON_WIRE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/block_table.h"

namespace mig {

// `each` answers block i, and fills the transport's `own` bytes of it. Tables
// longer than kMaxTablePayload are the caller's to refuse.
std::vector<uint8_t> EncodeTable(
    size_t count, size_t own,
    absl::FunctionRef<const BlockDescription&(size_t i, uint8_t* own)> each);

// Calls `each` for the blocks in turn, and stops at its first error. Errors:
// PROTOCOL for counts, lengths and names that can't be (H6).
absl::Status DecodeTable(std::span<const uint8_t> payload, size_t own,
                         absl::FunctionRef<absl::Status(
                             BlockDescription&& block, const uint8_t* own)>
                             each);

}  // namespace mig

#endif  // PLUGIN_COMMON_WIRE_TABLE_H_
