// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Posting: what ibv_post_send and ibv_post_recv check and store.
#include "soft-verbs/queue_pair.h"

#include <cerrno>
#include <cstring>

#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"

namespace mig::soft {
namespace {

// mlx5 and mlx4 say ENOMEM for everything that does not fit (DESIGN H4).
int DoesNotFit(const Qp* qp) {
  const ModelKind kind = qp->device->node->config.model->kind;
  return kind == ModelKind::kMlx5 || kind == ModelKind::kMlx4 ? ENOMEM : EINVAL;
}

bool Supported(const Qp* qp, const ibv_send_wr& wr) {
  const bool iwarp = qp->device->node->config.model->iwarp;
  switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_RDMA_WRITE:
      return true;
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return !iwarp;
    case IBV_WR_RDMA_READ:
      return (wr.send_flags & IBV_SEND_INLINE) == 0;
    default:
      return false;
  }
}

int CheckSend(const Qp* qp, const ibv_send_wr& wr, uint64_t* length) {
  if (!Supported(qp, wr)) return EINVAL;
  if (qp->posted - qp->freed == qp->send.size()) return ENOMEM;
  if (wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp->cap.max_send_sge) {
    return DoesNotFit(qp);
  }
  *length = 0;
  for (int i = 0; i < wr.num_sge; ++i) *length += wr.sg_list[i].length;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 &&
      *length > qp->cap.max_inline_data) {
    return DoesNotFit(qp);
  }
  return 0;
}

void StoreSend(Qp* qp, const ibv_send_wr& wr, uint64_t length,
               uint64_t number) {
  const uint64_t index = qp->posted;
  SendRequest& request = qp->At(index);
  request = {};
  request.wr_id = wr.wr_id;
  request.number = number;
  request.length = length;
  request.opcode = wr.opcode;
  request.flags = wr.send_flags;
  request.imm = wr.imm_data;
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) {
    request.remote = wr.wr.rdma.remote_addr;
    request.rkey = wr.wr.rdma.rkey;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    std::byte* to = qp->InlineAt(index);
    for (int i = 0; i < wr.num_sge; ++i) {
      const ibv_sge& sge = wr.sg_list[i];
      if (sge.length == 0) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
      to += sge.length;
    }
  } else {
    request.sges = static_cast<uint32_t>(wr.num_sge);
    std::copy_n(wr.sg_list, wr.num_sge, qp->SgesAt(index));
  }
  const bool fetched = length > 0 && (wr.send_flags & IBV_SEND_INLINE) == 0;
  request.due_ns = AdmitToPort(qp, length, fetched);
  ++qp->posted;
}

int FaultAnswer(const Fault& fault) {
  if (!fault.minus_one) return fault.error;
  errno = fault.error;
  return -1;
}

}  // namespace

int PostSend(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  Qp* qp = ToQp(base);
  Node* node = qp->device->node;
  const std::lock_guard<std::mutex> lock(node->fabric->mutex());
  const bool ready = qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD ||
                     qp->state == IBV_QPS_SQE || qp->state == IBV_QPS_ERR;
  Spend(node, node->config.costs.doorbell);
  for (; wr != nullptr; wr = wr->next) {
    *bad_wr = wr;
    if (!ready) return EINVAL;
    if (ToContext(qp->context)->dead) return EIO;
    uint64_t length = 0;
    const int error = CheckSend(qp, *wr, &length);
    if (error != 0) return error;
    const uint64_t number = ++node->requests;
    if (!node->faults.empty()) {
      const Fault* fault = node->faults.ForRequest(Fault::Kind::kPost, number);
      if (fault != nullptr) return FaultAnswer(*fault);
    }
    Spend(node, node->config.costs.post);
    StoreSend(qp, *wr, length, number);
  }
  return 0;
}

int PostRecv(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Qp* qp = ToQp(base);
  const std::lock_guard<std::mutex> lock(qp->device->node->fabric->mutex());
  for (; wr != nullptr; wr = wr->next) {
    *bad_wr = wr;
    if (qp->state == IBV_QPS_RESET) return EINVAL;
    if (ToContext(qp->context)->dead) return EIO;
    if (qp->recv_posted - qp->recv_freed == qp->recv.size()) return ENOMEM;
    if (wr->num_sge < 0 ||
        static_cast<uint32_t>(wr->num_sge) > qp->cap.max_recv_sge) {
      return EINVAL;
    }
    const uint64_t slot = qp->recv_posted % qp->recv.size();
    qp->recv[slot] = {wr->wr_id, static_cast<uint32_t>(wr->num_sge)};
    std::copy_n(wr->sg_list, wr->num_sge,
                qp->recv_sges.data() + slot * qp->cap.max_recv_sge);
    if (qp->share != nullptr) {
      qp->share->Publish(qp->recv_posted, wr->sg_list,
                         static_cast<uint32_t>(wr->num_sge));
    }
    ++qp->recv_posted;
  }
  return 0;
}

bool Locate(const Qp* qp, const ibv_sge* sges, size_t count, bool to_write,
            std::vector<iovec>* found) {
  found->clear();
  for (size_t i = 0; i < count; ++i) {
    if (sges[i].length == 0) continue;
    const std::optional<MemoryRegion> region =
        qp->device->memory->FindLocal(sges[i].lkey);
    if (!region.has_value() || region->pd != qp->pd->handle ||
        !region->Contains(sges[i].addr, sges[i].length) ||
        (to_write && (region->access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
      return false;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    found->push_back({reinterpret_cast<void*>(sges[i].addr), sges[i].length});
  }
  return true;
}

}  // namespace mig::soft
