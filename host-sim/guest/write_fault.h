// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_WRITE_FAULT_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_WRITE_FAULT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "guest/atomic_bitmap.h"

namespace mig::sim {

// The process's SIGSEGV handler for write-protected guest memory. A write to a
// watched page makes it writable and sets its bit; any other fault goes to the
// handler that was installed before ours. All functions: any thread.

// Watches [base, base + length): installs the handler on first use. `unit` is
// what can be protected (the host page), one bit of `bits` each page of 4096.
// Protects nothing itself. Returns a slot; ResourceExhausted when all are used.
absl::StatusOr<int> WatchWrites(std::byte* base, uint64_t length, uint64_t unit,
                                AtomicBitmap* bits);

// Sets no bits any more, and no thread uses them when this returns. A thread
// whose fault was on its way still finds its page made writable.
void RetireWatch(int slot);

// Forgets the range. No guest thread may be about to fault in it.
void ForgetWatch(int slot);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_WRITE_FAULT_H_
