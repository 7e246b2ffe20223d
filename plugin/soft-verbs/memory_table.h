// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The registered memory of a device: keys, rights and bounds.
#ifndef PLUGIN_SOFT_VERBS_MEMORY_TABLE_H_
#define PLUGIN_SOFT_VERBS_MEMORY_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mig::soft {

// One registration. Read by other processes too, when the table is shared:
// hence lock-free values, and `version` odd while they change.
struct MemoryEntry {
  std::atomic<uint32_t> version;
  std::atomic<uint32_t> generation;  // of the keys, 0..255
  std::atomic<uint32_t> live;
  std::atomic<uint32_t> access;  // ibv_access_flags
  std::atomic<uint32_t> pd;      // handle of the protection domain
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> length;
};

// A copy of what an entry says.
struct MemoryRegion {
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  uint32_t pd = 0;

  // Whether [at, at + size) lies inside; no sum can overflow.
  bool Contains(uint64_t at, uint64_t size) const {
    return at >= address && size <= length && at - address <= length - size;
  }
};

// Keys are slot and generation, so that a stale key is found out, and a bit
// that tells local from remote keys, so that none is ever taken for the other.
class MemoryTable {
 public:
  // `capacity` entries at most. With `rkey_zero` the first remote key is 0.
  // With `shared_fd` the table lies in that file, which must be as long as
  // BytesFor(capacity).
  MemoryTable(size_t capacity, bool rkey_zero, int shared_fd = -1);
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  static size_t BytesFor(size_t capacity) {
    return capacity * sizeof(MemoryEntry);
  }

  bool valid() const { return entries_ != nullptr; }
  // Slot of the new entry, or nullopt if the table is full.
  std::optional<uint32_t> Add(const MemoryRegion& region);
  void Remove(uint32_t slot);
  uint32_t LocalKey(uint32_t slot) const;
  uint32_t RemoteKey(uint32_t slot) const;
  size_t live() const { return live_; }

  std::optional<MemoryRegion> FindLocal(uint32_t lkey) const;
  std::optional<MemoryRegion> FindRemote(uint32_t rkey) const;

 private:
  MemoryEntry* entries_ = nullptr;
  size_t capacity_;
  size_t used_;  // slots that were ever used
  size_t live_ = 0;
  std::vector<uint32_t> free_;
};

// The same look-ups in a table of another process.
std::optional<MemoryRegion> FindLocalIn(const MemoryEntry* entries,
                                        size_t capacity, uint32_t lkey);
std::optional<MemoryRegion> FindRemoteIn(const MemoryEntry* entries,
                                         size_t capacity, uint32_t rkey);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_MEMORY_TABLE_H_
