// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fake_device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace mig::rdma {

struct FakeOps {
  static int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    auto* const fake = reinterpret_cast<FakeQp*>(qp);
    return fake->device->PostSend(fake, wr, bad);
  }
  static int PostRecv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    auto* const fake = reinterpret_cast<FakeQp*>(qp);
    const int result = fake->device->PostRecv(fake, wr);
    if (result != 0) *bad = wr;
    return result;
  }
};

FakeDevice::FakeDevice() {
  context_.ops.post_send = FakeOps::PostSend;
  context_.ops.post_recv = FakeOps::PostRecv;
  pd_.context = &context_;
}

FakeQp* FakeDevice::MakeQp(uint32_t depth) {
  auto made = std::make_unique<FakeQp>();
  made->qp.context = &context_;
  made->qp.pd = pd();
  made->device = this;
  made->depth = depth;
  made->ring.resize(depth);
  made->completions.reserve(depth);
  qps_.push_back(std::move(made));
  return qps_.back().get();
}

void FakeDevice::Fault(const std::string& what) { faults.push_back(what); }

int FakeDevice::PostSend(FakeQp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  ++qp->doorbells;
  size_t length = 0;
  for (; wr != nullptr; wr = wr->next, ++length) {
    const bool full = qp->count == qp->depth;
    if (full || posted == fail_post_at) {
      if (full) Fault("send queue overflow");
      *bad = wr;
      const int failure = full ? ENOMEM : fail_post_errno;
      if (!fail_post_minus_one) return failure;
      errno = failure;
      return -1;
    }
    FakeWr& slot = qp->ring[(qp->head + qp->count) % qp->depth];
    slot = {wr->wr_id,
            wr->sg_list->addr,
            wr->wr.rdma.remote_addr,
            wr->sg_list->length,
            wr->sg_list->lkey,
            wr->wr.rdma.rkey,
            wr->opcode,
            (wr->send_flags & IBV_SEND_SIGNALED) != 0,
            0};
    slot.due_ns = now_ns + delay_ns;
    if (wr->num_sge != 1) Fault("not one segment");
    if (slot.length == 0 || slot.length > max_message) Fault("message length");
    if (record) seen.push_back(slot);
    ++qp->count;
    ++posted;
  }
  if (record) lists.push_back(length);
  return 0;
}

int FakeDevice::PostRecv(FakeQp* qp, ibv_recv_wr* wr) {
  qp->receives.push_back(*wr);
  qp->receive_sges.push_back(*wr->sg_list);
  return 0;
}

ibv_wc_status FakeDevice::CarryOne(FakeQp* qp, const FakeWr& wr) {
  if (!check_keys) return IBV_WC_SUCCESS;
  const std::lock_guard<std::mutex> guard(lock_);
  const auto covers = [](const Mr* mr, uint64_t address, uint64_t length) {
    if (mr == nullptr || !mr->live) return false;
    const auto base = reinterpret_cast<uintptr_t>(mr->mr.addr);
    return address >= base && length <= mr->mr.length &&
           address - base <= mr->mr.length - length;
  };
  if (!covers(FindByLkey(wr.lkey), wr.local, wr.length)) {
    return IBV_WC_LOC_PROT_ERR;
  }
  const auto* const from = At(wr.local);
  if (wr.opcode == IBV_WR_RDMA_WRITE) {
    const Mr* const mr = FindByRkey(wr.rkey);
    if (!covers(mr, wr.remote, wr.length) ||
        (mr->access & IBV_ACCESS_REMOTE_WRITE) == 0) {
      return IBV_WC_REM_ACCESS_ERR;
    }
    std::memcpy(At(wr.remote), from, wr.length);
    return IBV_WC_SUCCESS;
  }
  FakeQp* const peer = qp->peer;
  if (peer == nullptr || peer->receives.empty()) {
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const ibv_sge sge = peer->receive_sges.front();
  std::memcpy(At(sge.addr), from, std::min(sge.length, wr.length));
  ibv_wc wc = {};
  wc.wr_id = peer->receives.front().wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = wr.length;
  peer->received.push_back(wc);
  peer->receives.erase(peer->receives.begin());
  peer->receive_sges.erase(peer->receive_sges.begin());
  return IBV_WC_SUCCESS;
}

void FakeDevice::Carry(FakeQp* qp, size_t count) {
  for (; count > 0 && qp->count > 0; --count) {
    const FakeWr wr = qp->ring[qp->head];
    qp->head = (qp->head + 1) % qp->depth;
    --qp->count;
    ibv_wc wc = {};
    wc.wr_id = wr.wr_id;
    wc.opcode = IBV_WC_RDMA_WRITE;
    if (qp->broken) {
      wc.status = IBV_WC_WR_FLUSH_ERR;
    } else {
      wc.status = carried == fail_wr_at ? fail_wr_status : CarryOne(qp, wr);
      if (wc.status != IBV_WC_SUCCESS) qp->broken = true;
    }
    ++carried;
    if (wr.signalled || wc.status != IBV_WC_SUCCESS) {
      qp->completions.push_back(wc);
    }
  }
}

void FakeDevice::CarryDue(FakeQp* qp, uint64_t now) {
  while (qp->count > 0 && qp->ring[qp->head].due_ns <= now) Carry(qp, 1);
}

void FakeDevice::Poll(FakeQp* qp,
                      const std::function<void(const ibv_wc&)>& fn) {
  for (size_t i = 0; i < qp->completions.size(); ++i) fn(qp->completions[i]);
  qp->completions.clear();
}

ibv_mr* FakeDevice::RegMr(ibv_pd* pd, void* address, size_t length,
                          unsigned int access) {
  if (on_reg) on_reg();
  const std::lock_guard<std::mutex> guard(lock_);
  if (registrations + 0 == fail_reg_at) {
    errno = fail_reg_errno;
    return nullptr;
  }
  ++registrations;
  largest_registration = std::max<uint64_t>(largest_registration, length);
  auto made = std::make_unique<Mr>();
  made->mr.pd = pd;
  made->mr.context = &context_;
  made->mr.addr = address;
  made->mr.length = length;
  // Never equal, as on many devices they are not (C14).
  made->mr.rkey = next_key_;
  made->mr.lkey = next_key_ + 0x80000000u;
  made->access = access;
  ++next_key_;
  mrs.push_back(std::move(made));
  return &mrs.back()->mr;
}

int FakeDevice::DeregMr(ibv_mr* mr) {
  const std::lock_guard<std::mutex> guard(lock_);
  Mr* const found = FindByLkey(mr->lkey);
  if (found == nullptr || !found->live) return EINVAL;
  found->live = false;
  ++deregistrations;
  return 0;
}

size_t FakeDevice::LiveMrs() {
  const std::lock_guard<std::mutex> guard(lock_);
  return static_cast<size_t>(std::count_if(
      mrs.begin(), mrs.end(), [](const auto& mr) { return mr->live; }));
}

FakeDevice::Mr* FakeDevice::FindByLkey(uint32_t lkey) {
  return FindByRkey(lkey - 0x80000000u);
}

FakeDevice::Mr* FakeDevice::FindByRkey(uint32_t rkey) {
  return rkey < mrs.size() ? mrs[rkey].get() : nullptr;
}

}  // namespace mig::rdma
