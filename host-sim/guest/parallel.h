// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_PARALLEL_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace mig::sim {

// Calls `work(i)` once for each i in [0, count) from up to `threads` threads
// (0: one a CPU, at most 16), the caller's among them, and returns when all
// are done. `work` must be safe to call from several threads at once. A thread
// that cannot be started is done without.
void ParallelFor(uint64_t count, unsigned threads,
                 const std::function<void(uint64_t)>& work);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_PARALLEL_H_
