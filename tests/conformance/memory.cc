// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace mig::conformance {
namespace {

// Without its memory a test can't say anything about the plugin.
[[noreturn]] void GiveUp(const char* what) {
  perror(what);
  abort();
}

uint64_t Word(uint64_t seed, uint64_t offset) {
  return Mix(seed * 0x9e3779b97f4a7c15 + offset) | 1;
}

}  // namespace

uint64_t Mix(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}

Memory::Memory(uint64_t length, uint64_t alignment, MemoryKind kind)
    : length_(length) {
  const uint64_t align = std::max<uint64_t>(alignment, 4096);
  reserved_length_ = length + align;
  void* const reserved =
      mmap(nullptr, reserved_length_, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) GiveUp("mmap of a test's block");
  reserved_ = static_cast<uint8_t*>(reserved);
  const auto base = reinterpret_cast<uintptr_t>(reserved_);
  data_ = reserved_ + ((base + align - 1) / align * align - base);
  int flags = MAP_FIXED | MAP_NORESERVE;
  if (kind == MemoryKind::kMemfd) {
    fd_ = memfd_create("conformance", MFD_CLOEXEC);
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(length)) != 0) {
      GiveUp("memfd of a test's block");
    }
    flags |= MAP_SHARED;
  } else {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
  }
  if (mmap(data_, length, PROT_READ | PROT_WRITE, flags, fd_, 0) ==
      MAP_FAILED) {
    GiveUp("mmap of a test's block");
  }
}

Memory::~Memory() {
  munmap(reserved_, reserved_length_);
  if (fd_ >= 0) close(fd_);
}

void Memory::Fill(uint64_t offset, uint64_t length, uint64_t seed) {
  for (uint64_t at = offset; at < offset + length; at += sizeof(uint64_t)) {
    const uint64_t word = Word(seed, at);
    memcpy(data_ + at, &word, sizeof(word));
  }
}

void Memory::Zero(uint64_t offset, uint64_t length) {
  memset(data_ + offset, 0, length);
}

bool Memory::Holds(uint64_t offset, uint64_t length, uint64_t seed) const {
  for (uint64_t at = offset; at < offset + length; at += sizeof(uint64_t)) {
    const uint64_t word = Word(seed, at);
    if (memcmp(data_ + at, &word, sizeof(word)) != 0) return false;
  }
  return true;
}

bool Memory::IsZero(uint64_t offset, uint64_t length) const {
  return length == 0 ||
         (data_[offset] == 0 &&
          memcmp(data_ + offset, data_ + offset + 1, length - 1) == 0);
}

bool Memory::Equals(const Memory& other) const {
  return length_ == other.length_ && memcmp(data_, other.data_, length_) == 0;
}

uint64_t Memory::ResidentPages() const {
  std::vector<unsigned char> pages((length_ + 4095) / 4096);
  if (mincore(data_, length_, pages.data()) != 0) GiveUp("mincore");
  return static_cast<uint64_t>(
      std::count_if(pages.begin(), pages.end(),
                    [](unsigned char page) { return (page & 1) != 0; }));
}

void Memory::Forbid() { mprotect(data_, length_, PROT_NONE); }

}  // namespace mig::conformance
