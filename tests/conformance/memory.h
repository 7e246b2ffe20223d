// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Guest memory of one side, with contents that are known by a seed.
#ifndef TESTS_CONFORMANCE_MEMORY_H_
#define TESTS_CONFORMANCE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace mig::conformance {

enum class MemoryKind { kAnonymous, kMemfd };

class Memory {
 public:
  // Reserves, but does not populate; reads zero.
  explicit Memory(uint64_t length, uint64_t alignment = 4096,
                  MemoryKind kind = MemoryKind::kAnonymous);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  uint64_t length() const { return length_; }
  int fd() const { return fd_; }

  // Bytes that follow from seed and offset, none of whose 8-byte words is 0.
  void Fill(uint64_t offset, uint64_t length, uint64_t seed);
  void Zero(uint64_t offset, uint64_t length);
  bool Holds(uint64_t offset, uint64_t length, uint64_t seed) const;
  bool IsZero(uint64_t offset, uint64_t length) const;
  bool Equals(const Memory& other) const;
  // Pages of this mapping that have memory behind them.
  uint64_t ResidentPages() const;
  // Makes all of it inaccessible: whoever touches it from now on dies.
  void Forbid();

 private:
  uint8_t* reserved_ = nullptr;
  uint64_t reserved_length_ = 0;
  uint8_t* data_ = nullptr;
  uint64_t length_ = 0;
  int fd_ = -1;
};

// A small generator for contents and random choices: the same everywhere.
uint64_t Mix(uint64_t value);

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_MEMORY_H_
