// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/probe_caps.h"

#include <utility>

#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// Makes queue pairs that are never connected.
class Prober final : public QpMaker {
 public:
  Prober(verbs::Verbs* verbs, ibv_context* context)
      : verbs_(verbs), context_(context) {}
  ~Prober() override {
    Unmake();
    if (cq_ != nullptr) verbs_->DestroyCq(cq_);
    if (pd_ != nullptr) verbs_->DeallocPd(pd_);
  }
  absl::Status Open(int entries) {
    int failure = 0;
    pd_ = verbs::ObjectOfCall(&failure,
                              [&] { return verbs_->AllocPd(context_); });
    if (pd_ != nullptr) {
      cq_ = verbs::ObjectOfCall(&failure, [&] {
        return verbs_->CreateCq(context_, entries, nullptr, nullptr, 0);
      });
    }
    return verbs::StatusOfErrno("it gives no queues", failure);
  }

  int Make(bool extended, ibv_qp_cap* cap) override {
    int failure = 0;
    if (extended) {
      ibv_qp_init_attr_ex attr = {};
      attr.send_cq = attr.recv_cq = cq_;
      attr.cap = *cap;
      attr.qp_type = IBV_QPT_RC;
      attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      attr.pd = pd_;
      attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
      qp_ = verbs::ObjectOfCall(
          &failure, [&] { return verbs_->CreateQpEx(context_, &attr); });
      *cap = attr.cap;
      return failure;
    }
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = *cap;
    attr.qp_type = IBV_QPT_RC;
    qp_ = verbs::ObjectOfCall(&failure,
                              [&] { return verbs_->CreateQp(pd_, &attr); });
    *cap = attr.cap;
    return failure;
  }
  void Unmake() override {
    if (qp_ != nullptr) verbs_->DestroyQp(std::exchange(qp_, nullptr));
  }

 private:
  verbs::Verbs* const verbs_;
  ibv_context* const context_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

}  // namespace

absl::Status ProbeCaps(verbs::Verbs* verbs, ibv_context* context,
                       uint32_t inline_bytes, QpGrant* grant) {
  QpWants wants;
  wants.most = {.max_send_wr = 32,
                .max_recv_wr = 32,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes};
  wants.least_send_depth = 8;
  wants.least_receive_depth = 4;
  Prober prober(verbs, context);
  MIG_RETURN_IF_ERROR(prober.Open(64));
  return ClimbDown(wants, &prober, grant);
}

}  // namespace mig::rdma
