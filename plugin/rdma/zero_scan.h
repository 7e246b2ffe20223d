// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_ZERO_SCAN_H_
#define PLUGIN_RDMA_ZERO_SCAN_H_

#include <cstddef>
#include <cstdint>

namespace mig::rdma {

// Whether all of [data, data + length) is zero; length is a multiple of 256 and
// data of 16. Reads no further than the first block of 256 bytes that is not,
// so a page of data costs a few cache lines. The guest may write meanwhile:
// then the answer is for what was read, and the page is dirty again.
bool AllZero(const std::byte* data, uint64_t length);

// The length of the run of pages at `data` that are all zero or all not, at
// most `length`; *zero says which. `page_size` as AllZero's length.
uint64_t ScanPages(const std::byte* data, uint64_t length, uint64_t page_size,
                   bool* zero);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_ZERO_SCAN_H_
