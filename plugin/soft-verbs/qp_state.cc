// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The states of a queue pair.
#include <cerrno>

#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/landing.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

// What each transition needs beside IBV_QP_STATE, for RC.
bool HasRequired(ibv_qp_state to, int mask) {
  switch (to) {
    case IBV_QPS_INIT: {
      constexpr int kNeeds =
          IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
      return (mask & kNeeds) == kNeeds;
    }
    case IBV_QPS_RTR: {
      constexpr int kNeeds = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER;
      return (mask & kNeeds) == kNeeds;
    }
    case IBV_QPS_RTS:
      return (mask & IBV_QP_SQ_PSN) != 0;
    default:
      return true;
  }
}

bool MayMove(ibv_qp_state from, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR:
      return true;
    case IBV_QPS_INIT:
      return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
    case IBV_QPS_RTR:
      return from == IBV_QPS_INIT;
    case IBV_QPS_RTS:
      return from == IBV_QPS_RTR || from == IBV_QPS_RTS;
    default:
      return false;
  }
}

void ResetQueues(Qp* qp) {
  LandAll(qp);
  qp->posted = qp->executed = qp->reported = qp->freed = 0;
  qp->recv_posted = qp->recv_taken = qp->recv_freed = 0;
  qp->attempts = qp->rnr_attempts = 0;
  qp->head_moved = 0;
  qp->blocked_until_ns = 0;
  qp->remote.reset();
  qp->remote_process = false;
  if (qp->share != nullptr) {
    qp->share->header().posted = 0;
    qp->share->header().taken = 0;
  }
}

void SetAttributes(Qp* qp, const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp->access = attr.qp_access_flags;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp->dest_qp = attr.dest_qp_num;
  if ((mask & IBV_QP_AV) != 0) qp->path = attr.ah_attr;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) {
    qp->min_rnr_timer = attr.min_rnr_timer;
  }
  if ((mask & IBV_QP_TIMEOUT) != 0) qp->timeout = attr.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) qp->retry_count = attr.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp->rnr_retry = attr.rnr_retry;
}

bool AttributesFit(const ibv_qp_attr& attr, int mask) {
  return ((mask & IBV_QP_AV) == 0 || attr.ah_attr.sl < 16) &&
         ((mask & IBV_QP_MIN_RNR_TIMER) == 0 || attr.min_rnr_timer < 32) &&
         ((mask & IBV_QP_TIMEOUT) == 0 || attr.timeout < 32) &&
         ((mask & IBV_QP_RETRY_CNT) == 0 || attr.retry_cnt < 8) &&
         ((mask & IBV_QP_RNR_RETRY) == 0 || attr.rnr_retry < 8);
}

}  // namespace

int ModifyQpState(Qp* qp, const ibv_qp_attr& attr, int mask) {
  const ibv_qp_state to =
      (mask & IBV_QP_STATE) != 0 ? attr.qp_state : qp->state;
  const bool iwarp = qp->device->node->config.model->iwarp;
  const bool moves = (mask & IBV_QP_STATE) != 0 && to != qp->state;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != qp->state) {
    return EINVAL;
  }
  // A queue pair of the connection manager was set up by it.
  const bool plain = qp->cm == nullptr;
  if (moves && (!MayMove(qp->state, to) || (plain && !HasRequired(to, mask)))) {
    return EINVAL;
  }
  if (!AttributesFit(attr, mask)) return EINVAL;
  // iWARP connects through rdma_cm alone, and has no RNR timer.
  if (iwarp && moves && plain && (to == IBV_QPS_RTR || to == IBV_QPS_RTS)) {
    return EINVAL;
  }
  if (iwarp && (mask & IBV_QP_MIN_RNR_TIMER) != 0) return EINVAL;
  SetAttributes(qp, attr, mask);
  PublishState(qp);
  if (!moves) return 0;
  if (to == IBV_QPS_ERR) {
    EnterError(qp);
    return 0;
  }
  if (to == IBV_QPS_RESET) ResetQueues(qp);
  if (to == IBV_QPS_RTR && qp->remote == nullptr) {
    Node* node = qp->device->node;
    qp->remote = MakeLocalEnd(node->fabric, node, qp->dest_qp);
  }
  qp->state = to;
  PublishState(qp);
  return 0;
}

void QueryQpState(const Qp* qp, ibv_qp_attr* attr) {
  *attr = {};
  attr->qp_state = attr->cur_qp_state = qp->state;
  attr->path_mtu = IBV_MTU_4096;
  attr->qp_access_flags = qp->access;
  attr->dest_qp_num = qp->dest_qp;
  attr->ah_attr = qp->path;
  attr->cap = qp->cap;
  attr->min_rnr_timer = qp->min_rnr_timer;
  attr->port_num = 1;
  attr->timeout = qp->timeout;
  attr->retry_cnt = qp->retry_count;
  attr->rnr_retry = qp->rnr_retry;
}

void EnterError(Qp* qp) {
  qp->state = IBV_QPS_ERR;
  qp->blocked_until_ns = 0;
  PublishState(qp);
}

void BreakConnection(Qp* qp) {
  EnterError(qp);
  if (CmId* const id = IdOf(qp)) OnBroken(id);
  if (qp->remote != nullptr) qp->remote->Break();
}

}  // namespace mig::soft
