// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_PROBE_H_
#define PLUGIN_RDMA_PROBE_H_

#include <cstdint>
#include <vector>

#include "mig_transport.h"
#include "rdma/memlock.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// What the options and this process say already.
struct ProbeSettings {
  uint32_t control_inline = 0;
  uint32_t queue_depth = 0;
  Memlock memlock;
};

// For each port of the devices behind a table one entry: its link, the options
// that it suggests, and what the caps ladder comes to; then one for each of its
// GIDs, with the address that a peer connects to. A device that can't be opened
// is listed with the reason. Opens devices, for a moment; may block on them.
std::vector<struct mig_device> ProbeDevices(verbs::Verbs* verbs,
                                            const ProbeSettings& settings);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_PROBE_H_
