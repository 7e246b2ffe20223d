// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/zero_runs.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {

uint64_t ZeroList::Add(Block* block, uint64_t offset, uint64_t length,
                       uint64_t* told) {
  const uint32_t shift = block->page_shift;
  const uint64_t limit = (offset + length) >> shift;
  uint64_t page = offset >> shift;
  while (page < limit) {
    const uint64_t end = block->maybe_nonzero.RunEnd(page, limit);
    if (!block->maybe_nonzero.Test(page)) {
      page = end;
      continue;
    }
    const uint64_t from = page << shift;
    const uint64_t bytes = (end - page) << shift;
    const bool extends = !runs_.empty() && runs_.back().block == block &&
                         runs_.back().offset + runs_.back().length == from;
    if (extends) {
      runs_.back().length += bytes;
    } else if (runs_.size() < capacity_) {
      runs_.push_back({block, from, bytes});
    } else {
      break;
    }
    block->maybe_nonzero.Clear(page, end - page);
    *told += bytes;
    page = end;
  }
  return (page << shift) - offset;
}

size_t ZeroList::Take(std::span<ZeroRun> out) {
  size_t count = 0;
  while (count < out.size() && !runs_.empty()) {
    out[count++] = runs_.front();
    runs_.pop_front();
  }
  return count;
}

bool ZeroList::Names(const Block* block) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].block == block) return true;
  }
  return false;
}

absl::Status ZeroWriter::Add(Block* block, uint64_t offset, uint64_t length) {
  // Written so that no sum can wrap.
  if (((offset | length) & (block->page_size - 1)) != 0 ||
      offset > block->length || length > block->length - offset) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("the peer says that ", length, " bytes at offset ", offset,
                     " are zero, which does not fit block '", block->name,
                     "' of ", block->length, " bytes in pages of ",
                     block->page_size));
  }
  if (length > 0) runs_.push_back({block, offset, length});
  return absl::OkStatus();
}

bool ZeroWriter::Write(uint64_t budget) {
  while (!runs_.empty() && budget > 0) {
    ZeroRun& run = runs_.front();
    const uint64_t bytes = std::min(run.length, budget);
    std::memset(run.block->base + run.offset, 0, bytes);
    run.offset += bytes;
    run.length -= bytes;
    budget -= bytes;
    bytes_written_ += bytes;
    if (run.length == 0) runs_.pop_front();
  }
  return runs_.empty();
}

bool ZeroWriter::Names(const Block* block) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].block == block) return true;
  }
  return false;
}

}  // namespace mig::rdma
