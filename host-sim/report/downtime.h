// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_DOWNTIME_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_DOWNTIME_H_

#include <cstdint>

#include "engine/source_engine.h"

namespace mig::sim {

// How long nobody ran the guest, and what with; nanoseconds.
struct Downtime {
  uint64_t stop = 0;        // from asking the guest to stop to its standing
  uint64_t last_round = 0;  // to ROUND_DONE of the last round
  uint64_t state = 0;       // to the offer's arrival (one clock) or sending
  uint64_t resume = 0;      // to where the guest can run (one clock), or to
                            // COMMITTED
  uint64_t total = 0;
  // Both sides share a clock, so the end is the destination's own moment. If
  // not, COMMITTED at the source is the end, half a round trip late.
  bool one_clock = false;
};

// All zero if the guest was not migrated.
Downtime MeasureDowntime(const SourceReport& report);

// Guest memory that was sent, in bytes, zero pages not counted.
uint64_t BytesSent(const SourceReport& report);

// From the first byte of round 1 to COMMITTED or the end, without what the
// verification took.
uint64_t MigrationNs(const SourceReport& report);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_DOWNTIME_H_
