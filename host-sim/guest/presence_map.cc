// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/presence_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "guest/kernel_uapi.h"

namespace mig::sim {
namespace {

void Append(std::vector<PresenceMap::Run>* runs, uint64_t first, uint64_t count,
            bool present) {
  if (count == 0) return;
  if (!runs->empty() && runs->back().present == present) {
    runs->back().count += count;
  } else {
    runs->push_back({first, count, present});
  }
}

// Whether nothing can be swapped out, as there is nowhere to.
bool WithoutSwap() {
  std::ifstream swaps("/proc/swaps");
  std::string line;
  return std::getline(swaps, line) && !std::getline(swaps, line);
}

}  // namespace

PresenceMap::PresenceMap()
    : pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
      without_swap_(WithoutSwap()) {}

PresenceMap::~PresenceMap() {
  if (pagemap_ >= 0) close(pagemap_);
}

std::vector<PresenceMap::Run> PresenceMap::Runs(const GuestBlock& block,
                                                uint64_t first,
                                                uint64_t count) {
  // A page of a memfd can be there without being mapped here.
  if (block.fd >= 0) return FileRuns(block, first, count);
  return PagemapRuns(block, first, count);
}

std::vector<PresenceMap::Run> PresenceMap::FileRuns(const GuestBlock& block,
                                                    uint64_t first,
                                                    uint64_t count) const {
  std::vector<Run> runs;
  const uint64_t end = first + count;
  for (uint64_t page = first; page < end;) {
    const off_t data =
        lseek(block.fd, static_cast<off_t>(page * kPageSize), SEEK_DATA);
    if (data < 0 && errno != ENXIO) {
      Append(&runs, page, end - page, true);
      break;
    }
    const uint64_t data_page =
        data < 0 ? end : std::min(end, static_cast<uint64_t>(data) / kPageSize);
    Append(&runs, page, data_page - page, false);
    page = data_page;
    if (page >= end) break;
    const off_t hole = lseek(block.fd, data, SEEK_HOLE);
    const uint64_t hole_page =
        hole <= data ? end
                     : std::min<uint64_t>(
                           end, (static_cast<uint64_t>(hole) + kPageSize - 1) /
                                    kPageSize);
    Append(&runs, page, hole_page - page, true);
    page = hole_page;
  }
  return runs;
}

// Write-protection by userfaultfd leaves markers in pages that were never
// there, and a marker looks like a swapped page. Only without swap are they
// told apart.
bool PresenceMap::IsPresent(uint64_t entry) const {
  if ((entry & kPagemapPresent) != 0) return true;
  if ((entry & kPagemapSwapped) == 0) return false;
  return !without_swap_ || (entry & kPagemapUffdWp) == 0;
}

std::vector<PresenceMap::Run> PresenceMap::PagemapRuns(const GuestBlock& block,
                                                       uint64_t first,
                                                       uint64_t count) {
  std::vector<Run> runs;
  entries_.resize(count);
  const uint64_t entry = reinterpret_cast<uint64_t>(block.base) / kPageSize;
  uint64_t known = 0;
  while (pagemap_ >= 0 && known < count) {
    const ssize_t got =
        pread(pagemap_, entries_.data() + known, (count - known) * 8,
              static_cast<off_t>((entry + first + known) * 8));
    if (got < 8) break;
    known += static_cast<uint64_t>(got) / 8;
  }
  for (uint64_t i = 0; i < known; ++i) {
    Append(&runs, first + i, 1, IsPresent(entries_[i]));
  }
  Append(&runs, first + known, count - known, true);
  return runs;
}

}  // namespace mig::sim
