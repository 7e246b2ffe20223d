// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_WC_ERROR_H_
#define PLUGIN_RDMA_WC_ERROR_H_

#include <infiniband/verbs.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// The error that a failed completion is, of what `what` names ("a write on
// data queue pair 2"): status text, vendor code, and what to do. Errors:
// PEER_TIMEOUT, PEER_LOST, PEER_PROTOCOL, GUEST_MEMORY, DEVICE.
absl::Status CompletionError(verbs::Verbs* verbs, const ibv_wc& wc,
                             absl::string_view what);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WC_ERROR_H_
