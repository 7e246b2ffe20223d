// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One bit a page, set and tested by runs of pages.
#ifndef PLUGIN_COMMON_PAGE_BITMAP_H_
#define PLUGIN_COMMON_PAGE_BITMAP_H_

#include <cstdint>
#include <vector>

namespace mig {

// Not thread-safe. Page numbers are 64-bit; a run costs a word operation each
// 64 pages, and nothing is allocated after Resize.
class PageBitmap {
 public:
  // All bits are `value`. 0 pages frees the memory.
  void Resize(uint64_t pages, bool value);
  bool empty() const { return words_.empty(); }

  // Runs [first, first + count) must lie inside.
  void Set(uint64_t first, uint64_t count);
  void Clear(uint64_t first, uint64_t count);
  bool AnySet(uint64_t first, uint64_t count) const;
  bool Test(uint64_t page) const {
    return ((words_[page / 64] >> (page % 64)) & 1) != 0;
  }
  // The end of the run of equal bits that starts at `page`, at most `limit`.
  uint64_t RunEnd(uint64_t page, uint64_t limit) const;

 private:
  std::vector<uint64_t> words_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_PAGE_BITMAP_H_
