// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/memory.h"

#include <sys/mman.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace mig::model {
namespace {

constexpr uint64_t kGuard = uint64_t{1} << 16;
constexpr int kRubbish = 0xee;

}  // namespace

uint64_t GuestShape::Pages() const {
  uint64_t pages = 0;
  for (const BlockShape& block : blocks) pages += block.pages;
  return pages;
}

absl::StatusOr<std::unique_ptr<GuestMemory>> GuestMemory::Create(
    const GuestShape& shape) {
  auto memory = std::unique_ptr<GuestMemory>(new GuestMemory(shape));
  uint64_t first = 0;
  for (const BlockShape& block : shape.blocks) {
    Area area;
    area.first = first;
    area.bytes = block.pages * shape.page_size;
    area.name = absl::StrCat("ram", memory->blocks_.size());
    area.mapped = (area.bytes + kGuard - 1) / kGuard * kGuard + 2 * kGuard;
    void* const mapped = mmap(nullptr, area.mapped, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a block of ", area.bytes,
                       " bytes: use a smaller guest"));
    }
    area.at = static_cast<unsigned char*>(mapped) + kGuard;
    memory->blocks_.push_back(area);
    // Whole pages of the system: the rest of the last one is open too.
    if (mprotect(area.at, area.bytes, PROT_READ | PROT_WRITE) != 0) {
      return absl::ResourceExhaustedError("the guest's memory can't be opened");
    }
    if (!block.zeroed) std::memset(area.at, kRubbish, area.bytes);
    first += block.pages;
  }
  return memory;
}

GuestMemory::~GuestMemory() {
  for (const Area& area : blocks_) munmap(area.at - kGuard, area.mapped);
}

const GuestMemory::Area& GuestMemory::AreaOf(uint64_t page) const {
  size_t index = blocks_.size() - 1;
  while (index > 0 && blocks_[index].first > page) --index;
  return blocks_[index];
}

std::span<uint64_t> GuestMemory::Page(uint64_t page) const {
  const Area& area = AreaOf(page);
  unsigned char* const at = area.at + (page - area.first) * shape_.page_size;
  return {reinterpret_cast<uint64_t*>(at), shape_.page_size / sizeof(uint64_t)};
}

mig_range GuestMemory::RangeOf(uint64_t page) const {
  const Area& area = AreaOf(page);
  mig_range range = {};
  range.offset = (page - area.first) * shape_.page_size;
  range.length = shape_.page_size;
  range.block = kFirstId + static_cast<uint32_t>(&area - blocks_.data());
  return range;
}

mig_block GuestMemory::Describe(size_t index) const {
  const Area& area = blocks_[index];
  mig_block block = {};
  block.size = sizeof block;
  block.id = kFirstId + static_cast<uint32_t>(index);
  block.name = area.name.c_str();
  block.address = area.at;
  block.length = area.bytes;
  block.page_size = shape_.page_size;
  block.flags = shape_.blocks[index].zeroed ? MIG_BLOCK_ZEROED : 0;
  block.fd = -1;
  return block;
}

}  // namespace mig::model
