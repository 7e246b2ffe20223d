// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_BITMAP_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_BITMAP_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace mig::sim {

// One bit a page of one block. 64-bit indices throughout; an index must be
// below size(). Not synchronised: one thread at a time.
class DirtyBitmap {
 public:
  DirtyBitmap() = default;
  explicit DirtyBitmap(uint64_t pages) { Resize(pages); }

  // Sets the number of pages; new ones are clean.
  void Resize(uint64_t pages) {
    size_ = pages;
    words_.resize((pages + 63) / 64);
    TrimTail();
  }
  uint64_t size() const { return size_; }

  void Set(uint64_t page) { words_[page / 64] |= Bit(page); }
  void Clear(uint64_t page) { words_[page / 64] &= ~Bit(page); }
  bool Test(uint64_t page) const {
    return (words_[page / 64] & Bit(page)) != 0;
  }
  void SetRange(uint64_t first, uint64_t count);
  void SetAll() {
    std::fill(words_.begin(), words_.end(), ~uint64_t{0});
    TrimTail();
  }
  void ClearAll() { std::fill(words_.begin(), words_.end(), 0); }

  // Sets the bits of `bits` in the 64 pages from 64 * `word`.
  void OrWord(uint64_t word, uint64_t bits) { words_[word] |= bits; }
  // Sets every bit that is set in `other`, which has the same size.
  void Merge(const DirtyBitmap& other) {
    for (size_t i = 0; i < words_.size() && i < other.words_.size(); ++i) {
      words_[i] |= other.words_[i];
    }
  }

  uint64_t Count() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  bool Empty() const {
    return std::all_of(words_.begin(), words_.end(),
                       [](uint64_t word) { return word == 0; });
  }

  // The first set (clear) page at or after `page`; size() if there is none.
  uint64_t NextSet(uint64_t page) const { return Next(page, 0); }
  uint64_t NextClear(uint64_t page) const { return Next(page, ~uint64_t{0}); }

  // Calls `visit(first, count)` for each run of adjacent set pages, ascending;
  // runs are maximal. Costs a look at each word, not at each page.
  template <typename Visit>
  void ForEachRange(Visit visit) const {
    for (uint64_t first = NextSet(0); first < size_;) {
      const uint64_t end = NextClear(first);
      visit(first, end - first);
      first = NextSet(end);
    }
  }

  bool operator==(const DirtyBitmap& other) const = default;

 private:
  static uint64_t Bit(uint64_t page) { return uint64_t{1} << (page % 64); }

  // Bits past size() stay clear, so that Count and Next need not mask.
  void TrimTail() {
    if (size_ % 64 != 0) words_.back() &= Bit(size_) - 1;
  }

  uint64_t Next(uint64_t page, uint64_t flip) const {
    if (page >= size_) return size_;
    uint64_t word = page / 64;
    uint64_t bits = (words_[word] ^ flip) & (~uint64_t{0} << (page % 64));
    while (bits == 0) {
      if (++word == words_.size()) return size_;
      bits = words_[word] ^ flip;
    }
    return std::min<uint64_t>(size_, word * 64 + std::countr_zero(bits));
  }

  uint64_t size_ = 0;
  std::vector<uint64_t> words_;
};

inline void DirtyBitmap::SetRange(uint64_t first, uint64_t count) {
  const uint64_t end = first + count;
  while (first < end) {
    const uint64_t in_word = std::min(end - first, 64 - first % 64);
    const uint64_t mask =
        in_word == 64 ? ~uint64_t{0} : (uint64_t{1} << in_word) - 1;
    words_[first / 64] |= mask << (first % 64);
    first += in_word;
  }
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_BITMAP_H_
