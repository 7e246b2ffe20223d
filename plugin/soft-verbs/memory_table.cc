// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/memory_table.h"

#include <sys/mman.h>

namespace mig::soft {
namespace {

constexpr uint32_t kGenerations = 256;
constexpr uint32_t kLocalBit = 1;

uint32_t Key(uint32_t slot, uint32_t generation, uint32_t kind) {
  return slot << 9 | generation << 1 | kind;
}

std::optional<MemoryRegion> Find(const MemoryEntry* entries, size_t capacity,
                                 uint32_t key) {
  const uint32_t slot = key >> 9;
  if (slot >= capacity) return std::nullopt;
  const MemoryEntry& entry = entries[slot];
  const uint32_t before = entry.version.load(std::memory_order_acquire);
  // Acquired, so that the version below is read after them.
  constexpr auto kAcquire = std::memory_order_acquire;
  const MemoryRegion region = {
      entry.address.load(kAcquire), entry.length.load(kAcquire),
      entry.access.load(kAcquire), entry.pd.load(kAcquire)};
  const bool live =
      entry.live.load(kAcquire) != 0 &&
      entry.generation.load(kAcquire) == (key >> 1) % kGenerations;
  // An entry that changes meanwhile is one that is not there, or no longer.
  if (!live || before % 2 != 0 ||
      entry.version.load(std::memory_order_relaxed) != before) {
    return std::nullopt;
  }
  return region;
}

}  // namespace

MemoryTable::MemoryTable(size_t capacity, bool rkey_zero, int shared_fd)
    : capacity_(capacity), used_(rkey_zero ? 0 : 1) {
  const int flags =
      shared_fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* mapped = mmap(nullptr, BytesFor(capacity_), PROT_READ | PROT_WRITE,
                      flags, shared_fd, 0);
  // Zeroed memory is a table without entries.
  if (mapped != MAP_FAILED) entries_ = static_cast<MemoryEntry*>(mapped);
}

MemoryTable::~MemoryTable() {
  if (entries_ != nullptr) munmap(entries_, BytesFor(capacity_));
}

std::optional<uint32_t> MemoryTable::Add(const MemoryRegion& region) {
  uint32_t slot = 0;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (used_ < capacity_) {
    slot = static_cast<uint32_t>(used_++);
  } else {
    return std::nullopt;
  }
  MemoryEntry& entry = entries_[slot];
  entry.version.fetch_add(1, std::memory_order_acq_rel);
  entry.address.store(region.address, std::memory_order_relaxed);
  entry.length.store(region.length, std::memory_order_relaxed);
  entry.access.store(region.access, std::memory_order_relaxed);
  entry.pd.store(region.pd, std::memory_order_relaxed);
  entry.live.store(1, std::memory_order_relaxed);
  entry.version.fetch_add(1, std::memory_order_release);
  ++live_;
  return slot;
}

void MemoryTable::Remove(uint32_t slot) {
  MemoryEntry& entry = entries_[slot];
  entry.version.fetch_add(1, std::memory_order_acq_rel);
  entry.live.store(0, std::memory_order_relaxed);
  entry.generation.store((entry.generation.load() + 1) % kGenerations,
                         std::memory_order_relaxed);
  entry.version.fetch_add(1, std::memory_order_release);
  free_.push_back(slot);
  --live_;
}

uint32_t MemoryTable::LocalKey(uint32_t slot) const {
  return Key(slot, entries_[slot].generation, kLocalBit);
}

uint32_t MemoryTable::RemoteKey(uint32_t slot) const {
  return Key(slot, entries_[slot].generation, 0);
}

std::optional<MemoryRegion> MemoryTable::FindLocal(uint32_t lkey) const {
  return FindLocalIn(entries_, capacity_, lkey);
}

std::optional<MemoryRegion> MemoryTable::FindRemote(uint32_t rkey) const {
  return FindRemoteIn(entries_, capacity_, rkey);
}

std::optional<MemoryRegion> FindLocalIn(const MemoryEntry* entries,
                                        size_t capacity, uint32_t lkey) {
  if ((lkey & kLocalBit) == 0) return std::nullopt;
  return Find(entries, capacity, lkey);
}

std::optional<MemoryRegion> FindRemoteIn(const MemoryEntry* entries,
                                         size_t capacity, uint32_t rkey) {
  if ((rkey & kLocalBit) != 0) return std::nullopt;
  return Find(entries, capacity, rkey);
}

}  // namespace mig::soft
