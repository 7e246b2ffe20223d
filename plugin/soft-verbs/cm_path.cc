// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the connection manager knows of a connection's path, for a queue pair
// that it moves, or that the user does (rdma_init_qp_attr).
#include <cerrno>

#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/gid_table.h"

namespace mig::soft {
namespace {

constexpr uint8_t kHopLimit = 64;

bool PeerKnown(const CmId* id) {
  switch (id->state) {
    case CmState::kReplied:
    case CmState::kRequested:
    case CmState::kAccepting:
    case CmState::kConnected:
      return true;
    default:
      return false;
  }
}

void FillInit(ibv_qp_attr* attr, int* mask) {
  attr->pkey_index = 0;
  attr->port_num = 1;
  attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

void FillRtr(const CmId* id, ibv_qp_attr* attr, int* mask) {
  attr->ah_attr = PathOf(id);
  attr->path_mtu = IBV_MTU_4096;
  attr->dest_qp_num = id->peer_qp;
  attr->rq_psn = 0;
  attr->max_dest_rd_atomic = 1;
  attr->min_rnr_timer = 0;
  *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
          IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void FillRts(const CmId* id, ibv_qp_attr* attr, int* mask) {
  attr->timeout = id->has_ack_timeout ? id->ack_timeout : 14;
  attr->retry_cnt = id->retry_count & 7;
  attr->rnr_retry = id->rnr_retry & 7;
  attr->sq_psn = 0;
  attr->max_rd_atomic = 1;
  *mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
}

}  // namespace

ibv_ah_attr PathOf(const CmId* id) {
  ibv_ah_attr path = {};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid = GidOf(id->route.addr.dst_storage);
  path.grh.sgid_index =
      GidIndexOf(*ToContext(id->verbs)->device, id->route.addr.src_storage);
  path.grh.hop_limit = kHopLimit;
  path.grh.traffic_class = id->traffic_class;
  return path;
}

int InitQpAttributes(const CmId* id, ibv_qp_attr* attr, int* mask) {
  if (id->verbs == nullptr) return EINVAL;
  switch (attr->qp_state) {
    case IBV_QPS_INIT:
      FillInit(attr, mask);
      return 0;
    case IBV_QPS_RTR:
      if (!PeerKnown(id)) return EINVAL;
      FillRtr(id, attr, mask);
      return 0;
    case IBV_QPS_RTS:
      if (!PeerKnown(id)) return EINVAL;
      FillRts(id, attr, mask);
      return 0;
    default:
      return EINVAL;
  }
}

}  // namespace mig::soft
