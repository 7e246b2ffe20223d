// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/page_bitmap.h"

#include <algorithm>
#include <bit>

namespace mig {
namespace {

// Calls fn(word index, mask) for each word that the run touches, until it
// answers false.
template <typename Fn>
void ForEachWord(uint64_t first, uint64_t count, Fn fn) {
  while (count > 0) {
    const uint64_t shift = first % 64;
    const uint64_t bits = std::min<uint64_t>(count, 64 - shift);
    const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    if (!fn(first / 64, ones << shift)) return;
    first += bits;
    count -= bits;
  }
}

}  // namespace

void PageBitmap::Resize(uint64_t pages, bool value) {
  words_.assign((pages + 63) / 64, value ? ~uint64_t{0} : 0);
  if (pages == 0) words_.shrink_to_fit();
}

void PageBitmap::Set(uint64_t first, uint64_t count) {
  ForEachWord(first, count, [this](uint64_t word, uint64_t mask) {
    words_[word] |= mask;
    return true;
  });
}

void PageBitmap::Clear(uint64_t first, uint64_t count) {
  ForEachWord(first, count, [this](uint64_t word, uint64_t mask) {
    words_[word] &= ~mask;
    return true;
  });
}

bool PageBitmap::AnySet(uint64_t first, uint64_t count) const {
  bool any = false;
  ForEachWord(first, count, [this, &any](uint64_t word, uint64_t mask) {
    any = (words_[word] & mask) != 0;
    return !any;
  });
  return any;
}

uint64_t PageBitmap::RunEnd(uint64_t page, uint64_t limit) const {
  const bool value = Test(page);
  while (page < limit) {
    const uint64_t shift = page % 64;
    const uint64_t differing =
        (value ? ~words_[page / 64] : words_[page / 64]) >> shift;
    if (differing != 0) {
      return std::min<uint64_t>(
          limit, page + static_cast<uint64_t>(std::countr_zero(differing)));
    }
    page += 64 - shift;
  }
  return limit;
}

}  // namespace mig
