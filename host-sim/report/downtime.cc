// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/downtime.h"

namespace mig::sim {
namespace {

// Clocks that are read on two sides may disagree by a little where they meet.
uint64_t Between(uint64_t from, uint64_t to) {
  return to > from ? to - from : 0;
}

}  // namespace

Downtime MeasureDowntime(const SourceReport& report) {
  Downtime downtime;
  if (report.end != SourceEnd::kMigrated) return downtime;
  const SwitchoverTimes& times = report.times;
  uint64_t offer = times.offered;
  uint64_t end = times.committed;
  if (report.result.has_value() && !report.result->machine.empty() &&
      report.result->machine == MachineId()) {
    downtime.one_clock = true;
    offer = report.result->handover_ns;
    end = report.result->resumed_ns;
  }
  downtime.stop = Between(times.stop_asked, times.stopped);
  downtime.last_round = Between(times.stopped, times.last_round_done);
  downtime.state = Between(times.last_round_done, offer);
  downtime.resume = Between(offer, end);
  downtime.total = Between(times.stop_asked, end);
  return downtime;
}

uint64_t BytesSent(const SourceReport& report) {
  uint64_t bytes = 0;
  for (const RoundReport& round : report.rounds) bytes += round.bytes;
  return bytes;
}

uint64_t MigrationNs(const SourceReport& report) {
  const uint64_t end =
      report.times.committed != 0 ? report.times.committed : report.finished_ns;
  return Between(report.started_ns, end);
}

}  // namespace mig::sim
