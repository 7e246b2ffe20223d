// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_TRACKER_KINDS_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_TRACKER_KINDS_H_

#include <memory>

#include "absl/status/status.h"
#include "guest/dirty_tracker.h"

namespace mig::sim {

// The kinds behind MakeDirtyTracker, unprobed. `memory` outlives them.
std::unique_ptr<DirtyTracker> MakeUffdTracker(const GuestMemory* memory);
std::unique_ptr<DirtyTracker> MakeSoftDirtyTracker(const GuestMemory* memory,
                                                   PausedCall run_paused);
std::unique_ptr<DirtyTracker> MakeMprotectTracker(const GuestMemory* memory);
std::unique_ptr<DirtyTracker> MakeSimulatedTracker(const GuestMemory* memory);

// OK if `block` is one of `memory` and `out` has its size. Every FetchAndClear
// begins with it.
absl::Status CheckFetch(const GuestMemory& memory, const GuestBlock& block,
                        bool started, const DirtyBitmap* out);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_TRACKER_KINDS_H_
