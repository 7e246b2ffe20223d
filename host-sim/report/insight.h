// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_INSIGHT_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_INSIGHT_H_

#include <string>
#include <vector>

#include "mig_transport.h"
#include "report/report_json.h"

namespace mig::sim {

// What a report says about the transport, for a person, in lines of at most
// 100 columns: control round trips, capabilities (granted, and asked where
// that differs), and counters by kind, without those that are zero. `report`
// is of one side, or of both with the destination's in "destination". `table`
// has the plugin's own names, units and kinds: nothing here knows a plugin.
std::string InsightText(const std::vector<mig_counter>& table,
                        const Json& report);

// "p50 21.3 us, p99 48.0 us (64)" of one object of "control_rtt"; "none".
std::string RttText(const Json& rtt);

// A value in its unit ("B", "ns", "1", or any other) as a person reads it.
std::string AmountText(uint64_t value, const std::string& unit);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_INSIGHT_H_
