// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/qp_share.h"

#include <algorithm>
#include <ctime>

#include "soft-verbs/cm.h"
#include "soft-verbs/completion_queue.h"
#include "soft-verbs/device.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

// More than any model's queue; keeps the sums below from overflowing.
constexpr uint32_t kMaxDepth = 1u << 21;
constexpr uint32_t kMaxSges = 1u << 8;

size_t BytesFor(uint32_t depth, uint32_t sges) {
  return sizeof(ShareHeader) + size_t{depth} * sizeof(ShareSlot) +
         size_t{depth} * sges * sizeof(ibv_sge);
}

Completion CompletionOf(Qp* qp, const ShareSlot& slot) {
  Completion completion;
  completion.qp = qp;
  completion.receive = true;
  completion.wc.wr_id = qp->recv[qp->recv_taken % qp->recv.size()].wr_id;
  completion.wc.status = static_cast<ibv_wc_status>(slot.status);
  completion.wc.opcode =
      slot.written != 0 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  completion.wc.byte_len = static_cast<uint32_t>(slot.length);
  completion.wc.qp_num = qp->qp_num;
  completion.wc.src_qp = slot.source_qp;
  if (slot.with_imm != 0) {
    completion.wc.wc_flags |= IBV_WC_WITH_IMM;
    completion.wc.imm_data = slot.imm;
  }
  return completion;
}

void ActOn(Qp* qp, Violation violation) {
  if (violation == Violation::kAccess && qp->state != IBV_QPS_ERR) {
    PostQpEvent(qp, IBV_EVENT_QP_ACCESS_ERR);
    EnterError(qp);
  }
  if (violation == Violation::kConnection) {
    EnterError(qp);
    if (qp->cm != nullptr) OnBroken(qp->cm);
  }
}

}  // namespace

bool QpShare::Lay(uint32_t depth, uint32_t sges) {
  if (depth > kMaxDepth || sges > kMaxSges ||
      mapping_.size() < BytesFor(depth, sges)) {
    return false;
  }
  depth_ = depth;
  sges_ = sges;
  std::byte* at = mapping_.data() + sizeof(ShareHeader);
  slots_ = reinterpret_cast<ShareSlot*>(at);
  at += size_t{depth} * sizeof(ShareSlot);
  sge_list_ = reinterpret_cast<ibv_sge*>(at);
  return true;
}

std::unique_ptr<QpShare> QpShare::Make(uint32_t depth, uint32_t sges,
                                       uint32_t pd) {
  std::unique_ptr<QpShare> share(new QpShare());
  const size_t size = BytesFor(depth, sges);
  share->file_ = MakeSharedFile("mig-soft-qp", size);
  if (!share->file_.valid()) return nullptr;
  share->mapping_ = SharedMapping(share->file_.get(), size, true);
  if (!share->mapping_.valid() || !share->Lay(depth, sges)) return nullptr;
  share->header_ = reinterpret_cast<ShareHeader*>(share->mapping_.data());
  share->header_->magic = kMagic;
  share->header_->depth = depth;
  share->header_->sges = sges;
  share->header_->pd = pd;
  return share;
}

std::unique_ptr<QpShare> QpShare::Open(int fd) {
  std::unique_ptr<QpShare> share(new QpShare());
  share->mapping_ = SharedMapping(fd, sizeof(ShareHeader), true);
  if (!share->mapping_.valid()) return nullptr;
  share->header_ = reinterpret_cast<ShareHeader*>(share->mapping_.data());
  const uint32_t depth = share->header_->depth;
  const uint32_t sges = share->header_->sges;
  if (share->header_->magic != kMagic || !share->Lay(depth, sges)) {
    return nullptr;
  }
  return share;
}

void QpShare::Publish(uint64_t index, const ibv_sge* sges, uint32_t count) {
  ShareSlot& slot = SlotAt(index);
  slot = {};
  slot.sges = count;
  std::copy_n(sges, count, SgesAt(index));
  header_->posted.store(index + 1, std::memory_order_release);
}

void QpShare::WaitIdle() {
  constexpr int kTries = 200;
  const timespec pause = {0, 100'000};
  for (int i = 0; i < kTries; ++i) {
    if (header_->busy.load(std::memory_order_seq_cst) == 0) {
      stuck_ = false;
      return;
    }
    if (stuck_) return;
    nanosleep(&pause, nullptr);
  }
  stuck_ = true;
}

bool HasArrivals(const Qp* qp) {
  if (qp->share == nullptr || !qp->remote_process) return false;
  const ShareHeader& header = qp->share->header();
  return header.taken.load(std::memory_order_acquire) != qp->recv_taken ||
         header.violation.load(std::memory_order_relaxed) != 0;
}

bool Harvest(Qp* qp, bool silent) {
  ShareHeader& header = qp->share->header();
  header.silent.store(silent ? 1 : 0, std::memory_order_relaxed);
  if (!HasArrivals(qp)) return false;
  // Not more than was posted, whatever stands there.
  const uint64_t taken =
      std::min(header.taken.load(std::memory_order_acquire), qp->recv_posted);
  while (qp->recv_taken < taken) {
    const ShareSlot slot = qp->share->SlotAt(qp->recv_taken);
    const Completion completion = CompletionOf(qp, slot);
    ++qp->recv_taken;
    PushCompletion(ToCq(qp->recv_cq), completion, slot.solicited != 0);
    if (completion.wc.status != IBV_WC_SUCCESS) EnterError(qp);
  }
  ActOn(qp, static_cast<Violation>(
                header.violation.exchange(0, std::memory_order_acq_rel)));
  return true;
}

void PublishState(Qp* qp) {
  if (qp->share == nullptr) return;
  ShareHeader& header = qp->share->header();
  header.access.store(qp->access, std::memory_order_relaxed);
  header.min_rnr.store(qp->min_rnr_timer, std::memory_order_relaxed);
  header.state.store(qp->state, std::memory_order_seq_cst);
}

}  // namespace mig::soft
