// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/zero_scan.h"

namespace mig::rdma {
namespace {

// Of the compiler, on every machine: two registers of SSE2, one of AVX2.
using Vector = uint64_t __attribute__((vector_size(32)));
constexpr uint64_t kBlock = 256;

}  // namespace

// The guest writes what is read here: that race is what live migration means.
__attribute__((no_sanitize("thread"))) bool AllZero(const std::byte* data,
                                                    uint64_t length) {
  for (uint64_t at = 0; at < length; at += kBlock) {
    Vector sum = {};
    for (uint64_t i = 0; i < kBlock; i += sizeof(Vector)) {
      Vector part;
      __builtin_memcpy(&part, data + at + i, sizeof(part));
      sum |= part;
    }
    if ((sum[0] | sum[1] | sum[2] | sum[3]) != 0) return false;
  }
  return true;
}

uint64_t ScanPages(const std::byte* data, uint64_t length, uint64_t page_size,
                   bool* zero) {
  *zero = AllZero(data, page_size);
  uint64_t run = page_size;
  while (run < length && AllZero(data + run, page_size) == *zero) {
    run += page_size;
  }
  return run;
}

}  // namespace mig::rdma
