// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The connection manager of the seam: every call answers 0, or -1 and errno.
#include <sys/epoll.h>

#include "soft-verbs/process_port.h"
#include "soft-verbs/queue_pair.h"
#include "soft-verbs/soft_call.h"
#include "soft-verbs/text.h"

namespace mig::soft {
namespace {

// A descriptor that is readable when one of two is.
OwnedFd PollBoth(int one, int other) {
  OwnedFd both(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {one, other}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    epoll_ctl(both.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return both;
}

}  // namespace

rdma_event_channel* SoftVerbs::CmCreateEventChannel() {
  const Call call(this, "CmCreateEventChannel");
  if (call.fails()) return nullptr;
  auto* channel = new CmChannel();
  if (channel->event.fd() < 0) {
    delete channel;
    return nullptr;
  }
  channel->node = &node_;
  channel->fd = channel->event.fd();
  if (node_.process != nullptr) {
    channel->both = PollBoth(channel->event.fd(), node_.process->fd());
    channel->fd = channel->both.get();
  }
  cm_channels_.insert(channel);
  return channel;
}

void SoftVerbs::CmDestroyEventChannel(rdma_event_channel* base) {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  auto* channel = static_cast<CmChannel*>(base);
  // Ids without their channel could not live: it stays until the end then.
  if (channel->references > 0) return;
  cm_channels_.erase(channel);
  delete channel;
}

int SoftVerbs::CmGetEvent(rdma_event_channel* base, rdma_cm_event** event) {
  {
    const Call call(this, "CmGetEvent");
    if (call.fails()) return -1;
  }
  auto* channel = static_cast<CmChannel*>(base);
  return WaitFor(channel->fd, [channel, event] {
    CmEvent* next = PopEvent(channel);
    *event = next;
    return next != nullptr;
  });
}

int SoftVerbs::CmAckEvent(rdma_cm_event* event) {
  const Call call(this, "CmAckEvent");
  if (event == nullptr) return Call::MinusOne(EINVAL);
  AckEvent(static_cast<CmEvent*>(event));
  return 0;
}

const char* SoftVerbs::CmEventText(rdma_cm_event_type type) {
  return soft::CmEventText(type);
}

int SoftVerbs::CmCreateId(rdma_event_channel* channel, rdma_cm_id** id,
                          void* id_context, rdma_port_space space) {
  const Call call(this, "CmCreateId");
  if (call.fails()) return -1;
  // Ids without a channel are synchronous, which needs a thread.
  if (channel == nullptr || space != RDMA_PS_TCP) {
    return Call::MinusOne(EINVAL);
  }
  *id = NewId(static_cast<CmChannel*>(channel), id_context, space);
  return 0;
}

int SoftVerbs::CmDestroyId(rdma_cm_id* id) {
  const Call call(this, "CmDestroyId");
  if (call.fails()) return -1;
  return Call::MinusOne(DestroyId(ToId(id)));
}

int SoftVerbs::CmBindAddr(rdma_cm_id* id, sockaddr* address) {
  const Call call(this, "CmBindAddr");
  if (call.fails()) return -1;
  return Call::MinusOne(BindAddress(ToId(id), address));
}

int SoftVerbs::CmResolveAddr(rdma_cm_id* id, sockaddr* source,
                             sockaddr* destination, int) {
  const Call call(this, "CmResolveAddr");
  if (call.fails()) return -1;
  return Call::MinusOne(ResolveAddress(ToId(id), source, destination));
}

int SoftVerbs::CmResolveRoute(rdma_cm_id* id, int) {
  const Call call(this, "CmResolveRoute");
  if (call.fails()) return -1;
  return Call::MinusOne(ResolveRoute(ToId(id)));
}

int SoftVerbs::CmListen(rdma_cm_id* id, int) {
  const Call call(this, "CmListen");
  if (call.fails()) return -1;
  return Call::MinusOne(Listen(ToId(id)));
}

int SoftVerbs::CmConnect(rdma_cm_id* id, rdma_conn_param* param) {
  const Call call(this, "CmConnect");
  if (call.fails()) return -1;
  return Call::MinusOne(Connect(ToId(id), param));
}

int SoftVerbs::CmAccept(rdma_cm_id* id, rdma_conn_param* param) {
  const Call call(this, "CmAccept");
  if (call.fails()) return -1;
  return Call::MinusOne(Accept(ToId(id), param));
}

int SoftVerbs::CmReject(rdma_cm_id* id, const void* private_data,
                        uint8_t length) {
  const Call call(this, "CmReject");
  if (call.fails()) return -1;
  return Call::MinusOne(Reject(ToId(id), private_data, length));
}

int SoftVerbs::CmDisconnect(rdma_cm_id* id) {
  const Call call(this, "CmDisconnect");
  if (call.fails()) return -1;
  return Call::MinusOne(Disconnect(ToId(id)));
}

int SoftVerbs::CmSetOption(rdma_cm_id* id, int level, int name, void* value,
                           size_t length) {
  const Call call(this, "CmSetOption");
  if (call.fails()) return -1;
  return Call::MinusOne(SetIdOption(ToId(id), level, name, value, length));
}

int SoftVerbs::AttachQp(CmId* id, ibv_pd* pd, ibv_qp_init_attr* attr,
                        bool extended, uint64_t send_ops) {
  if (id->verbs == nullptr || id->qp != nullptr || pd == nullptr ||
      pd->context != id->verbs) {
    return EINVAL;
  }
  Qp* qp = nullptr;
  const int error = NewQp(ToPd(pd), attr, extended, send_ops, &qp);
  if (error != 0) return error;
  qp->cm = id;
  qp->access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  qp->state = IBV_QPS_INIT;
  id->qp = qp;
  id->pd = pd;
  id->send_cq = attr->send_cq;
  id->recv_cq = attr->recv_cq;
  return 0;
}

int SoftVerbs::CmCreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  const Call call(this, "CmCreateQp");
  if (call.fails()) return -1;
  return Call::MinusOne(AttachQp(ToId(id), pd, attr, false, 0));
}

int SoftVerbs::CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) {
  const Call call(this, "CmCreateQpEx");
  if (call.fails()) return -1;
  return Call::MinusOne(NewExtendedQp(attr, ToId(id), nullptr));
}

void SoftVerbs::CmDestroyQp(rdma_cm_id* id) {
  const Call call(this, "CmDestroyQp");
  if (id->qp == nullptr) return;
  // As rdma_destroy_qp does, without a word if it can't.
  if (DeleteQp(ToQp(id->qp)) == 0) id->qp = nullptr;
}

int SoftVerbs::CmInitQpAttr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
  const Call call(this, "CmInitQpAttr");
  if (call.fails()) return -1;
  return Call::MinusOne(InitQpAttributes(ToId(id), attr, mask));
}

int SoftVerbs::CmEstablish(rdma_cm_id* id) {
  const Call call(this, "CmEstablish");
  if (call.fails()) return -1;
  return Call::MinusOne(Establish(ToId(id)));
}

}  // namespace mig::soft
