// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_WRITE_OBSERVER_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_WRITE_OBSERVER_H_

#include <cstdint>

namespace mig::sim {

// Told of guest writes by the workload that made them.
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;

  // `length` bytes at `offset` of block `block_id` were written. Called after
  // the write, never before: a fetch between report and write would send the
  // old bytes and forget the page. On the thread that wrote.
  virtual void OnWrite(uint32_t block_id, uint64_t offset, uint64_t length) = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_WRITE_OBSERVER_H_
