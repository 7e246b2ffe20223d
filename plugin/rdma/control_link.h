// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_CONTROL_LINK_H_
#define PLUGIN_RDMA_CONTROL_LINK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "rdma/cm_qp.h"
#include "rdma/control_channel.h"
#include "rdma/control_slots.h"
#include "rdma/device_set.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// How much of it there is; what is left of it is up to the ladder.
struct ControlSize {
  uint16_t receives = 32;
  uint16_t send_slots = 16;
  uint32_t depth = 32;
  uint32_t inline_bytes = kHeaderSize + kMaxFixedPayload;
};

// A control queue pair with its memory and its channel, whose queue pair goes
// before what it used. Not thread-safe.
class ControlLink {
 public:
  // `qp` has its route, or is an adopted request.
  ControlLink(verbs::Verbs* verbs, std::unique_ptr<CmQp> qp)
      : verbs_(verbs), qp_(std::move(qp)) {}
  // Makes the queue pair on its device, and posts every receive: then it can be
  // connected or accepted. Errors: DEVICE, MEMORY, LIMIT.
  absl::Status Make(DeviceSet* devices, const ControlSize& size);

  CmQp& qp() { return *qp_; }
  ControlChannel& channel() { return *channel_; }
  // What the peer is told: receives that are posted.
  uint16_t receives() const { return slots_->receives(); }

 private:
  verbs::Verbs* const verbs_;
  std::unique_ptr<ControlSlots> slots_;
  std::unique_ptr<ControlChannel> channel_;
  std::unique_ptr<CmQp> qp_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CONTROL_LINK_H_
