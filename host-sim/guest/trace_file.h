// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_TRACE_FILE_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_TRACE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "guest/guest_memory.h"

namespace mig::sim {

// One write of a trace. Plain data: lives in guest memory.
struct TraceEvent {
  uint64_t time_ms;  // since the start of the trace
  uint64_t offset;   // bytes into the block
  uint64_t length;   // bytes, not 0
  uint64_t block;    // id

  uint64_t first_page() const { return offset / kPageSize; }
  uint64_t pages() const {
    return (offset + length - 1) / kPageSize - first_page() + 1;
  }
};

// Reads a trace for `memory` (TRACE.md says how it is written). Strict:
// InvalidArgument names `name`, the line, the value and what is allowed.
absl::StatusOr<std::vector<TraceEvent>> ParseTrace(absl::string_view name,
                                                   absl::string_view text,
                                                   const GuestMemory& memory);

// The same of the file at `path`.
absl::StatusOr<std::vector<TraceEvent>> LoadTrace(const std::string& path,
                                                  const GuestMemory& memory);

// OK if `event` may follow `before_ms` in `memory`; else what is wrong.
absl::Status CheckTraceEvent(const TraceEvent& event, uint64_t before_ms,
                             const GuestMemory& memory);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_TRACE_FILE_H_
