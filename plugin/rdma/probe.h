// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_PROBE_H_
#define PLUGIN_RDMA_PROBE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "mig_transport.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// The devices behind a table, each with what the caps ladder comes to for a
// control queue pair with that much inline data. One that can't be opened is
// listed with the reason.
// Errors: DEVICE where no list can be had.
absl::StatusOr<std::vector<struct mig_device>> ProbeDevices(
    verbs::Verbs* verbs, uint32_t inline_bytes);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_PROBE_H_
