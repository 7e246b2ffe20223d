// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A network inside the process, on the host's simulated clock: what happens in
// it depends on the calls, the clock and the seeds, and on nothing else. The
// same calls make the same run, bit for bit.
//
// There are no fds. A session is BUSY when something can be read or written,
// and else its deadline is when something arrives. Nothing moves by itself:
// what is written without latency can be read at once. Room in the buffer is
// free again as soon as the peer has read, without latency.
//
// Addresses are names: tcp:// with a numeric host and unix: meet whoever
// listens at the same, and an any-address stands for every host.
#ifndef PLUGIN_TCP_SIM_NETWORK_H_
#define PLUGIN_TCP_SIM_NETWORK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/host.h"
#include "tcp/network.h"

namespace mig::tcp {

// One side of the network "sim:NAME[,KEY=VALUE]...", which it shares with all
// of this name in the process; the network is gone with the last of them. The
// keys are in sim_config.h, faults in sim_faults.h; both are this side's. The
// host must outlive it. Errors: OPTION, also where the host's clock is real.
absl::StatusOr<std::shared_ptr<Network>> MakeSimNetwork(absl::string_view text,
                                                        const Host* host);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SIM_NETWORK_H_
