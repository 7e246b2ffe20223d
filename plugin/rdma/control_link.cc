// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/control_link.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "rdma/private_data.h"

namespace mig::rdma {

absl::Status ControlLink::Make(DeviceSet* devices, const ControlSize& size) {
  const auto device = devices->Get(qp_->context());
  if (!device.ok()) return device.status();
  QpWants wants;
  wants.most = {.max_send_wr = size.depth,
                .max_recv_wr = size.receives,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = size.inline_bytes};
  wants.least_send_depth = 8;
  wants.least_receive_depth = kLeastReceives;
  MIG_RETURN_IF_ERROR(
      qp_->MakeQp((*device)->control_pd, (*device)->channel, wants));
  const ibv_qp_cap cap = qp_->cap();
  auto slots = ControlSlots::Create(
      verbs_, (*device)->control_pd,
      static_cast<uint16_t>(std::min<uint32_t>(cap.max_recv_wr, size.receives)),
      size.send_slots);
  if (!slots.ok()) return slots.status();
  slots_ = *std::move(slots);
  channel_ = std::make_unique<ControlChannel>(verbs_, slots_.get());
  return channel_->Attach(qp_->qp(), qp_->cq(),
                          {.send_depth = cap.max_send_wr,
                           .send_sges = cap.max_send_sge,
                           .inline_bytes = cap.max_inline_data});
}

}  // namespace mig::rdma
