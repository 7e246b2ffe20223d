// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_EVERY_FAULT_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_EVERY_FAULT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/plugin_host.h"

namespace mig::model {

struct EveryFaultResult {
  std::string table;  // how many of each kind were tried, and what came of them
  std::vector<std::string> failures;  // as ExplainFailure
};

// A small migration of `seed`, again and again: each kind of fault, on either
// side, at its first occasion, its second, ... until one is beyond the run's
// end, which is seen by the run being the same as without it. `progress` gets a
// line now and then.
EveryFaultResult RunEveryFault(
    const std::shared_ptr<const sim::Plugin>& plugin, uint64_t seed,
    const std::function<void(const std::string&)>& progress);

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_EVERY_FAULT_H_
