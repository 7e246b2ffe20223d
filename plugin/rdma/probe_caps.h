// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_PROBE_CAPS_H_
#define PLUGIN_RDMA_PROBE_CAPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rdma/caps_ladder.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// What the caps ladder comes to on this device for a control queue pair that
// asks for `inline_bytes`, found by making one that is never connected.
// Errors: DEVICE; with EOPNOTSUPP the device makes none but for a connection.
absl::Status ProbeCaps(verbs::Verbs* verbs, ibv_context* context,
                       uint32_t inline_bytes, QpGrant* grant);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_PROBE_CAPS_H_
