// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/qp_mover.h"

#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// Bits that some kernels set by mistake, and that InfiniBand does not know.
constexpr int kRoceBits = 0xe00000;

class Mover {
 public:
  Mover(verbs::Verbs* verbs, rdma_cm_id* id, ibv_qp* qp)
      : verbs_(verbs), id_(id), qp_(qp) {}

  int To(ibv_qp_state state, int service_level = -1) {
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    int mask = 0;
    const int failure = verbs::ErrnoOfCall(
        [&] { return verbs_->CmInitQpAttr(id_, &attr, &mask); });
    if (failure != 0) return failure;
    if (state == IBV_QPS_RTR && InfiniBand()) mask &= ~kRoceBits;
    if (service_level >= 0) {
      attr.ah_attr.sl = static_cast<uint8_t>(service_level);
    }
    return verbs::ErrnoOfCall(
        [&] { return verbs_->ModifyQp(qp_, &attr, mask); });
  }

 private:
  bool InfiniBand() {
    ibv_port_attr port = {};
    return verbs_->QueryPort(id_->verbs, id_->port_num, &port) == 0 &&
           port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  }

  verbs::Verbs* const verbs_;
  rdma_cm_id* const id_;
  ibv_qp* const qp_;
};

}  // namespace

int MoveToInit(verbs::Verbs* verbs, rdma_cm_id* id, ibv_qp* qp) {
  return Mover(verbs, id, qp).To(IBV_QPS_INIT);
}

int MoveToRts(verbs::Verbs* verbs, rdma_cm_id* id, ibv_qp* qp,
              uint8_t service_level) {
  Mover mover(verbs, id, qp);
  // What INIT was told before the peer was known does not hold any more.
  int failure = mover.To(IBV_QPS_INIT);
  if (failure == 0) failure = mover.To(IBV_QPS_RTR, service_level);
  return failure == 0 ? mover.To(IBV_QPS_RTS) : failure;
}

}  // namespace mig::rdma
