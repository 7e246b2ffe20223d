// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// How much memory this process may pin, asked before any is (C11).
#ifndef PLUGIN_RDMA_MEMLOCK_H_
#define PLUGIN_RDMA_MEMLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace mig::rdma {

struct Memlock {
  bool unlimited = false;  // no limit, or CAP_IPC_LOCK where the kernel asks
  uint64_t limit = 0;      // bytes, RLIMIT_MEMLOCK
  uint64_t pinned = 0;     // bytes that the process has pinned already
};

// Reads it from the kernel; some system calls. Any thread. What can't be read
// counts as no capability, and nothing pinned.
Memlock ReadMemlock();

// Bytes that pinning [address, address + length) counts: whole pages.
uint64_t PinnedBytes(uint64_t address, uint64_t length);

// LIMIT, with need, limit and remedy, where `need` more bytes do not fit.
absl::Status CheckMemlock(const Memlock& memlock, uint64_t need);

// "the limit of locked memory is ..., of which ... are used: raise it ...", for
// registrations that failed all the same.
std::string MemlockText(const Memlock& memlock);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_MEMLOCK_H_
