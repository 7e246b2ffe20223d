// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/completion_queue.h"

#include <algorithm>
#include <cerrno>

#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

Device* DeviceOf(const Cq* cq) { return ToContext(cq->context)->device; }

void Overrun(Cq* cq) {
  cq->overrun = true;
  ++DeviceOf(cq)->node->mishaps.cq_overruns;
  ibv_async_event event = {};
  event.element.cq = cq;
  event.event_type = IBV_EVENT_CQ_ERR;
  PostAsync(ToContext(cq->context), event);
  for (const auto& [number, qp] : DeviceOf(cq)->node->fabric->qps()) {
    if (qp->send_cq != cq && qp->recv_cq != cq) continue;
    if (qp->state != IBV_QPS_ERR) PostQpEvent(qp, IBV_EVENT_QP_FATAL);
    EnterError(qp);
  }
}

void Notify(Cq* cq) {
  cq->armed = Cq::Armed::kNo;
  if (cq->channel == nullptr) return;
  CompChannel* channel = ToChannel(cq->channel);
  channel->events.push_back(cq);
  channel->event.Set();
  Wake(DeviceOf(cq)->node);
}

// Frees what a polled completion stood for.
void Retire(const Completion& completion) {
  if (completion.receive) {
    ++completion.qp->recv_freed;
  } else {
    completion.qp->freed = std::max(completion.qp->freed, completion.upto);
  }
}

}  // namespace

void PushCompletion(Cq* cq, const Completion& completion, bool solicited) {
  if (cq->overrun) return;
  const size_t count = cq->count.load(std::memory_order_relaxed);
  if (count == cq->ring.size()) {
    Overrun(cq);
    return;
  }
  cq->ring[(cq->head + count) % cq->ring.size()] = completion;
  cq->count.store(count + 1, std::memory_order_release);
  const bool wakes = cq->armed == Cq::Armed::kNext ||
                     (cq->armed == Cq::Armed::kSolicited &&
                      ((completion.receive && solicited) ||
                       completion.wc.status != IBV_WC_SUCCESS));
  if (wakes) Notify(cq);
}

void DropCompletions(Cq* cq, const Qp* qp) {
  const size_t count = cq->count.load(std::memory_order_relaxed);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const Completion& from = cq->ring[(cq->head + i) % cq->ring.size()];
    if (from.qp == qp) continue;
    cq->ring[(cq->head + kept) % cq->ring.size()] = from;
    ++kept;
  }
  cq->count.store(kept, std::memory_order_release);
}

void DropEvents(Cq* cq) {
  if (cq->channel == nullptr) return;
  CompChannel* channel = ToChannel(cq->channel);
  std::erase(channel->events, cq);
  if (channel->events.empty()) channel->event.Clear();
}

int PollCq(ibv_cq* base, int count, ibv_wc* wc) {
  Cq* cq = ToCq(base);
  if (cq->count.load(std::memory_order_acquire) == 0) return 0;
  const std::lock_guard<std::mutex> lock(DeviceOf(cq)->node->fabric->mutex());
  int polled = 0;
  size_t left = cq->count.load(std::memory_order_relaxed);
  while (polled < count && left > 0) {
    const Completion& completion = cq->ring[cq->head];
    wc[polled++] = completion.wc;
    Retire(completion);
    cq->head = (cq->head + 1) % cq->ring.size();
    --left;
  }
  cq->count.store(left, std::memory_order_release);
  Node* const node = DeviceOf(cq)->node;
  Spend(node, node->config.costs.poll * static_cast<uint64_t>(polled));
  return polled;
}

int RequestNotify(ibv_cq* base, int solicited_only) {
  Cq* cq = ToCq(base);
  const std::lock_guard<std::mutex> lock(DeviceOf(cq)->node->fabric->mutex());
  if (solicited_only == 0) {
    cq->armed = Cq::Armed::kNext;
  } else if (cq->armed == Cq::Armed::kNo) {
    cq->armed = Cq::Armed::kSolicited;
  }
  for (const auto& [number, qp] : DeviceOf(cq)->node->fabric->qps()) {
    if (qp->recv_cq != cq || !qp->remote_process) continue;
    // Armed first, looked at second: nothing can come in between unseen.
    qp->share->header().armed.store(1, std::memory_order_seq_cst);
    Harvest(qp, qp->share->header().silent != 0);
  }
  return 0;
}

}  // namespace mig::soft
