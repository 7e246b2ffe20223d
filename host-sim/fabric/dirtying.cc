// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/dirtying.h"

#include <algorithm>

namespace mig::fabric {

Dirtying::Dirtying(const DirtyingSettings& settings)
    : settings_(settings), bits_(settings.memory / settings.page_size) {
  bits_.SetAll();
}

void Dirtying::RunUntil(uint64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - at_ns_) / 1e9;
  at_ns_ = now_ns;
  const uint64_t hot =
      std::min(settings_.hot, settings_.memory) / settings_.page_size;
  if (hot == 0) return;
  const uint64_t first = (bits_.size() - hot) / 2;
  auto pages =
      static_cast<uint64_t>(static_cast<double>(settings_.rate) * seconds /
                            static_cast<double>(settings_.page_size));
  if (settings_.scattered) {
    for (; pages > 0; --pages) bits_.Set(first + random_.Next() % hot);
    return;
  }
  pages = std::min(pages, hot);
  const uint64_t before_end = std::min(pages, hot - cursor_);
  bits_.SetRange(first + cursor_, before_end);
  bits_.SetRange(first, pages - before_end);
  cursor_ = (cursor_ + pages) % hot;
}

std::vector<mig_range> Dirtying::Take() {
  std::vector<mig_range> ranges;
  bits_.ForEachRange([&](uint64_t page, uint64_t count) {
    mig_range range = {};
    range.offset = page * settings_.page_size;
    range.length = count * settings_.page_size;
    range.block = kBlock;
    ranges.push_back(range);
  });
  bits_.ClearAll();
  return ranges;
}

}  // namespace mig::fabric
