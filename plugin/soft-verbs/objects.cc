// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Contexts and queue pairs: how they are made and how they end.
#include "soft-verbs/objects.h"

#include <algorithm>
#include <cerrno>

#include "soft-verbs/cm.h"
#include "soft-verbs/completion_queue.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/landing.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

// What the device grants, by its model and its options.
int Grant(const Config& config, CapsRequest* request) {
  const uint32_t asked = request->cap.max_inline_data;
  if (asked > config.limits.max_inline) return config.inline_errno;
  const int error = GrantCaps(*config.model, config.limits, request);
  if (error != 0) return error;
  switch (config.inline_grant) {
    case InlineGrant::kModel:
      break;
    case InlineGrant::kNone:
      request->cap.max_inline_data = 0;
      break;
    case InlineGrant::kHalf:
      request->cap.max_inline_data = asked / 2;
      break;
    case InlineGrant::kMore:
      request->cap.max_inline_data = 2 * asked + 64;
      break;
  }
  const uint64_t bytes =
      SendQueueBytes(*config.model, request->cap, request->extended);
  const bool too_large =
      config.max_queue_bytes != 0 && bytes > config.max_queue_bytes;
  return too_large ? ENOMEM : 0;
}

int CheckInit(const Pd* pd, const ibv_qp_init_attr& attr) {
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr ||
      attr.send_cq->context != pd->context ||
      attr.recv_cq->context != pd->context) {
    return EINVAL;
  }
  if (attr.qp_type != IBV_QPT_RC || attr.srq != nullptr) return EOPNOTSUPP;
  return 0;
}

void AllocateQueues(Qp* qp) {
  const ibv_qp_cap& cap = qp->cap;
  qp->send.resize(cap.max_send_wr);
  qp->send_sges.resize(size_t{cap.max_send_wr} * cap.max_send_sge);
  qp->send_inline.resize(size_t{cap.max_send_wr} * cap.max_inline_data);
  qp->recv.resize(cap.max_recv_wr);
  qp->recv_sges.resize(size_t{cap.max_recv_wr} * cap.max_recv_sge);
}

}  // namespace

Context* MakeContext(Device* device) {
  auto* context = new Context();
  if (context->async.fd() < 0) {
    delete context;
    return nullptr;
  }
  context->sz = sizeof(verbs_context);
  ibv_context& base = context->context;
  base.device = &device->base;
  base.ops.post_send = PostSend;
  base.ops.post_recv = PostRecv;
  base.ops.poll_cq = PollCq;
  base.ops.req_notify_cq = RequestNotify;
  base.cmd_fd = -1;
  base.async_fd = context->async.fd();
  base.num_comp_vectors = 4;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  base.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->device = device;
  device->contexts.push_back(context);
  return context;
}

void DestroyContext(Context* context) {
  std::erase(context->device->contexts, context);
  delete context;
}

void DropAsyncEvents(Context* context, const Qp* qp, const Cq* cq) {
  std::erase_if(context->events, [qp, cq](const ibv_async_event& event) {
    switch (event.event_type) {
      case IBV_EVENT_CQ_ERR:
        return cq != nullptr && event.element.cq == cq;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        return qp != nullptr && event.element.qp == qp;
      default:
        return false;
    }
  });
  if (context->events.empty()) context->async.Clear();
}

int NewQp(Pd* pd, ibv_qp_init_attr* attr, bool extended, uint64_t send_ops,
          Qp** made) {
  Context* context = ToContext(pd->context);
  Device* device = context->device;
  if (context->dead) return EIO;
  int error = CheckInit(pd, *attr);
  if (error != 0) return error;
  const Config& config = device->node->config;
  if (device->qps == config.limits.max_qp) return ENOMEM;
  CapsRequest request = {attr->cap, extended, send_ops};
  error = Grant(config, &request);
  if (error != 0) return error;
  attr->cap = request.cap;

  auto* qp = new Qp();
  qp->context = pd->context;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->state = IBV_QPS_RESET;
  qp->qp_type = IBV_QPT_RC;
  qp->device = device;
  qp->cap = request.cap;
  qp->extended = extended;
  qp->signal_all = attr->sq_sig_all != 0;
  AllocateQueues(qp);
  qp->qp_num = device->node->fabric->Add(qp);
  qp->handle = qp->qp_num;
  ++device->qps;
  ++pd->references;
  ++ToCq(attr->send_cq)->references;
  ++ToCq(attr->recv_cq)->references;
  *made = qp;
  return 0;
}

int DeleteQp(Qp* qp) {
  if (qp->unacked_async > 0) return EBUSY;
  LandAll(qp);
  DropAsyncEvents(ToContext(qp->context), qp, nullptr);
  DropCompletions(ToCq(qp->send_cq), qp);
  DropCompletions(ToCq(qp->recv_cq), qp);
  --ToCq(qp->send_cq)->references;
  --ToCq(qp->recv_cq)->references;
  --ToPd(qp->pd)->references;
  --qp->device->qps;
  if (qp->cm != nullptr) qp->cm->qp = nullptr;
  qp->device->node->fabric->Remove(qp);
  delete qp;
  return 0;
}

}  // namespace mig::soft
