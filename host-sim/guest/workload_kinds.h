// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_KINDS_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_KINDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "guest/parse.h"
#include "guest/workload.h"

namespace mig::sim {

// The kinds behind MakeWorkload. Each takes its options from `reader`; the
// caller checks that none is left.
using WorkloadMaker = absl::StatusOr<std::unique_ptr<Workload>> (*)(
    SpecReader* reader, WorkloadSetup setup);

absl::StatusOr<std::unique_ptr<Workload>> MakeIdle(SpecReader* reader,
                                                   WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeUniform(SpecReader* reader,
                                                      WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeHotset(SpecReader* reader,
                                                     WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeSequential(SpecReader* reader,
                                                         WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeTrace(SpecReader* reader,
                                                    WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeBank(SpecReader* reader,
                                                   WorkloadSetup setup);
absl::StatusOr<std::unique_ptr<Workload>> MakeMachine(SpecReader* reader,
                                                      WorkloadSetup setup);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_KINDS_H_
