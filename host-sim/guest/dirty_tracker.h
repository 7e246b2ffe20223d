// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_TRACKER_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_TRACKER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "guest/dirty_bitmap.h"
#include "guest/guest_memory.h"
#include "guest/write_observer.h"

namespace mig::sim {

// Finds the pages that the guest wrote. The life of one: Start, FetchAndClear
// any number of times for each block, Stop; Start again if wanted. All calls
// come from one thread at a time, while the guest runs on others. The memory
// outlives the tracker, and its pages are not replaced while tracking is on.
class DirtyTracker {
 public:
  virtual ~DirtyTracker() = default;
  DirtyTracker(const DirtyTracker&) = delete;
  DirtyTracker& operator=(const DirtyTracker&) = delete;

  virtual absl::string_view name() const = 0;

  // From here on every write is caught; all pages are clean. Undone on error.
  virtual absl::Status Start() = 0;

  // Sets in `out` (one bit a page of `block`, of that size) each page written
  // since the fetch before, or since Start, and clears nothing there. Returns
  // how many. A page is watched again *before* this returns, so a write that
  // comes between the fetch and the reading of the page is reported by the
  // next fetch. A page may be reported though it was not written. An error
  // ends the migration: what was dirty is then not known.
  virtual absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& block,
                                                 DirtyBitmap* out) = 0;

  // Ends tracking; the guest may run. Does nothing when not started.
  virtual absl::Status Stop() = 0;

  // What workloads must report their writes to; null where the tracker sees
  // them by itself.
  virtual WriteObserver* observer() { return nullptr; }

 protected:
  DirtyTracker() = default;
};

// Runs its argument while no guest thread writes guest memory, wherever the
// guest was stopped or not; see WorkloadRunner::RunPaused.
using PausedCall = std::function<void(const std::function<void()>&)>;

struct TrackerChoice {
  std::unique_ptr<DirtyTracker> tracker;
  // One line: which kind, and for `auto` why none of the better ones.
  std::string why;
};

// What `auto` tries, in this order.
using AutoKinds = std::array<absl::string_view, 3>;
AutoKinds AutoTrackerKinds(bool pinned);

// Makes a tracker of `memory`, not started. Kinds, best first:
//   uffd        userfaultfd write-protect (async) and PAGEMAP_SCAN, Linux 6.7
//   soft-dirty  clear_refs and pagemap; needs `run_paused`, since a write
//               between reading and clearing would be lost; one at a time in a
//               process; not for memfd, whose bits go when the kernel reclaims
//               a page
//   mprotect    SIGSEGV on the first write; a system call that writes into
//               watched memory fails with EFAULT instead
//   simulated   what workloads report; never chosen by `auto`
//   auto        the first of the first three that works; where a device pins
//               the memory (`pinned`), soft-dirty is last: the kernel leaves
//               pinned private pages dirty, so each round would be the whole
// Each kind but `simulated` is tried on pages of its own first, by writing to
// them. InvalidArgument for another kind, FailedPrecondition saying why where
// it does not work.
absl::StatusOr<TrackerChoice> MakeDirtyTracker(absl::string_view kind,
                                               const GuestMemory* memory,
                                               PausedCall run_paused = nullptr,
                                               bool pinned = false);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_DIRTY_TRACKER_H_
