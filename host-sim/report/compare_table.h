// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_COMPARE_TABLE_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_COMPARE_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "report/report_json.h"

namespace mig::sim {

// Reports of migrations, as `--json` prints them, side by side: a column each,
// under its name. What a report lacks is "-". Lines below the table have what
// is too long for a column.
std::string CompareTable(
    const std::vector<std::pair<std::string, Json>>& reports);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_COMPARE_TABLE_H_
