// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/newcomers.h"

namespace mig {

size_t PickSilent(std::span<const Newcomer> pending,
                  uint64_t handshake_timeout_ns, uint64_t now_ns,
                  uint64_t* again_ns) {
  const uint64_t rest =
      handshake_timeout_ns - SilenceLimitNs(handshake_timeout_ns);
  *again_ns = UINT64_MAX;
  size_t found = SIZE_MAX;
  for (size_t i = 0; i < pending.size(); ++i) {
    if (pending[i].spoke) continue;
    const uint64_t limit_ns = pending[i].deadline_ns - rest;
    if (limit_ns >= *again_ns) continue;
    *again_ns = limit_ns;
    found = i;
  }
  return found != SIZE_MAX && *again_ns <= now_ns ? found : SIZE_MAX;
}

}  // namespace mig
