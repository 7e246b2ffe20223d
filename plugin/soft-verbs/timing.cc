// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/timing.h"

#include <algorithm>

#include "soft-verbs/device.h"
#include "soft-verbs/objects.h"

namespace mig::soft {
namespace {

// What a device sends of one queue pair before it looks at the next.
constexpr uint64_t kTurnBytes = uint64_t{16} << 10;

uint64_t TransferNs(uint64_t bytes, uint64_t bandwidth) {
  if (bandwidth == 0) return 0;
  const auto ns = static_cast<unsigned __int128>(bytes) * 1'000'000'000u;
  return static_cast<uint64_t>((ns + bandwidth - 1) / bandwidth);
}

}  // namespace

void Spend(Node* node, uint64_t ns) {
  if (ns == 0) return;
  node->thread_free_ns =
      std::max(node->host->NowNs(), node->thread_free_ns) + ns;
}

void Wake(Node* node) {
  if (node->host->NowNs() >= node->thread_free_ns) {
    Spend(node, node->config.costs.wake);
  }
}

uint64_t AdmitToPort(const Qp* qp, uint64_t bytes, bool fetched) {
  Device* const device = qp->device;
  Node* const node = device->node;
  const Costs& costs = node->config.costs;
  uint64_t delay = costs.wr_delay + costs.latency + (fetched ? costs.fetch : 0);
  const Fault* fault =
      node->faults.empty()
          ? nullptr
          : node->faults.ForRequest(Fault::Kind::kDelay, node->requests);
  if (fault != nullptr) delay += fault->value;
  if (delay == 0 && !node->timed) return 0;
  const uint64_t posted = std::max(node->host->NowNs(), node->thread_free_ns);
  const uint64_t takes = costs.wr_cost + TransferNs(bytes, costs.bandwidth);
  const bool turn = bytes <= kTurnBytes && qp->executed == qp->posted;
  const uint64_t free = std::max(posted, device->port_free_ns);
  device->port_free_ns = free + takes;
  return (turn ? posted : free) + takes + delay;
}

uint64_t AcknowledgedNs(const Qp* qp, uint64_t due, uint64_t now) {
  // Due 0 means that nothing is modelled: it shows at once.
  if (due == 0) return 0;
  return std::max(due, now) + qp->device->node->config.costs.latency;
}

}  // namespace mig::soft
