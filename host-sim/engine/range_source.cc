// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/range_source.h"

#include <algorithm>

namespace mig::sim {
namespace {

// Scanned at once: a system call each, and few enough to start early.
constexpr uint64_t kPieceBytes = 16 << 20;
// Zero pages cost no bytes to send but time to find; the peer must not wait
// long for a sign of life.
constexpr uint64_t kMaxBatchBytes = 256 << 20;

}  // namespace

PageSet::PageSet(const GuestMemory& memory) {
  for (const GuestBlock& block : memory.blocks()) {
    blocks.emplace_back(block.pages());
  }
}

void PageSet::SetAll() {
  for (DirtyBitmap& block : blocks) block.SetAll();
}

uint64_t PageSet::pages() const {
  uint64_t pages = 0;
  for (const DirtyBitmap& block : blocks) pages += block.Count();
  return pages;
}

uint64_t PageSet::bytes(const GuestMemory& memory) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    bytes += blocks[i].Count() * memory.blocks()[i].page_size;
  }
  return bytes;
}

RangeSource::RangeSource(const GuestMemory& memory, const PageSet& pages,
                         ZeroScanner* scanner)
    : memory_(memory), set_(pages), scanner_(scanner) {}

void RangeSource::LookAhead() {
  if (scanner_ == nullptr || page_ < scanned_) return;
  if (zero_.size() != block().pages()) zero_ = DirtyBitmap(block().pages());
  const uint64_t piece = std::max<uint64_t>(1, kPieceBytes / block().page_size);
  const uint64_t end = std::min(block().pages(), page_ + piece);
  const DirtyBitmap& wanted = set_.blocks[block_];
  for (uint64_t first = wanted.NextSet(page_); first < end;) {
    const uint64_t stop = std::min(end, wanted.NextClear(first));
    scanner_->Scan(block(), first, stop - first, &zero_);
    first = wanted.NextSet(stop);
  }
  scanned_ = end;
}

bool RangeSource::NextRun(uint64_t max_bytes, mig_range* range) {
  for (;;) {
    if (block_ == memory_.blocks().size()) return false;
    page_ = set_.blocks[block_].NextSet(page_);
    if (page_ < block().pages()) break;
    ++block_;
    page_ = scanned_ = 0;
    zero_ = DirtyBitmap();
  }
  LookAhead();
  const uint64_t size = block().page_size;
  const bool zero = scanner_ != nullptr && zero_.Test(page_);
  uint64_t end = set_.blocks[block_].NextClear(page_);
  if (scanner_ != nullptr) {
    end = std::min(
        {end, scanned_, zero ? zero_.NextClear(page_) : zero_.NextSet(page_)});
  }
  if (!zero)
    end = std::min(end, page_ + std::max<uint64_t>(1, max_bytes / size));
  *range = {};
  range->offset = page_ * size;
  range->length = (end - page_) * size;
  range->block = block().id;
  range->flags = zero ? MIG_RANGE_ZERO : 0;
  pages_done_ += end - page_;
  if (zero) {
    zero_pages_done_ += end - page_;
  } else {
    data_bytes_ += range->length;
  }
  page_ = end;
  return true;
}

void RangeSource::Next(size_t max_ranges, uint64_t max_bytes,
                       std::vector<mig_range>* batch) {
  batch->clear();
  uint64_t bytes = 0;
  const uint64_t pages_before = pages_done_;
  mig_range range = {};
  while (batch->size() < max_ranges && bytes < max_bytes &&
         (pages_done_ - pages_before) * kPageSize < kMaxBatchBytes &&
         NextRun(max_bytes - bytes, &range)) {
    if ((range.flags & MIG_RANGE_ZERO) == 0) bytes += range.length;
    // A run that went over the edge of a piece.
    if (!batch->empty() && batch->back().block == range.block &&
        batch->back().flags == range.flags &&
        batch->back().offset + batch->back().length == range.offset) {
      batch->back().length += range.length;
    } else {
      batch->push_back(range);
    }
  }
}

}  // namespace mig::sim
