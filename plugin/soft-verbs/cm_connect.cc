// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Connections: request, reply, ready, reject, and disconnect.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/process_port.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

using Kind = CmMessage::Kind;

// A connection's numbers stay unusable for a while after its end.
constexpr uint64_t kTimewaitNs = 1'000'000;

CmMessage MakeMessage(const CmId* id, Kind kind, const rdma_conn_param* param) {
  CmMessage message;
  message.kind = kind;
  if (param != nullptr) {
    message.param = *param;
    message.param.private_data = nullptr;
    const auto* data = static_cast<const uint8_t*>(param->private_data);
    if (data != nullptr) {
      message.data.assign(data, data + param->private_data_len);
    }
    message.qp_num = param->qp_num;
  }
  if (id->qp != nullptr) message.qp_num = id->qp->qp_num;
  return message;
}

bool Iwarp(const CmId* id) { return id->node->config.model->iwarp; }

// The queue pair of the id is ready to send.
bool Activate(CmId* id) {
  if (id->qp == nullptr || id->qp->state == IBV_QPS_ERR) return true;
  Qp* qp = ToQp(id->qp);
  qp->dest_qp = id->peer_qp;
  qp->path = PathOf(id);
  qp->retry_count = id->retry_count & 7;
  qp->rnr_retry = id->rnr_retry & 7;
  if (id->has_ack_timeout) qp->timeout = id->ack_timeout;
  if (id->wire != nullptr) {
    qp->remote = id->wire->MakeEnd(Iwarp(id));
    if (qp->remote == nullptr) return false;
    qp->remote_process = true;
  } else {
    qp->remote = MakeLocalEnd(id->node->fabric, id->node, qp->dest_qp);
  }
  qp->state = IBV_QPS_RTS;
  PublishState(qp);
  return true;
}

// A queue pair that the user moves knows nobody in other processes.
bool GiveWire(CmId* id) {
  Qp* const qp = QpOf(id);
  if (qp == nullptr || id->wire == nullptr) return true;
  qp->remote = id->wire->MakeEnd(Iwarp(id));
  qp->remote_process = qp->remote != nullptr;
  return qp->remote_process;
}

void FailQp(CmId* id) {
  if (id->qp != nullptr) EnterError(ToQp(id->qp));
}

void Close(CmId* id, bool timewait) {
  Enter(id, CmState::kClosed);
  if (timewait && !Iwarp(id)) {
    SendToSelf(id, Kind::kTimewaitDone, kTimewaitNs);
  }
}

void OnReply(CmId* id, const CmMessage& message) {
  if (id->state != CmState::kConnecting) return;
  id->peer = message.from;
  id->peer_qp = message.qp_num;
  if (id->fails || (id->wire != nullptr && !id->wire->reachable())) {
    Enter(id, CmState::kClosed);
    FailQp(id);
    const std::string why =
        id->wire != nullptr ? id->wire->refusal() : std::string();
    CmMessage reject = RejectFor(why);
    reject.status = kRejectByUser;
    if (why.empty()) {
      PushEvent(id, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
    } else {
      PushEvent(id, RDMA_CM_EVENT_REJECTED, kRejectByUser, &reject);
    }
    SendToPeer(id, std::move(reject));
    return;
  }
  Enter(id, CmState::kReplied);
  PushEvent(id,
            id->qp != nullptr ? RDMA_CM_EVENT_ESTABLISHED
                              : RDMA_CM_EVENT_CONNECT_RESPONSE,
            0, &message);
}

void OnReject(CmId* id, const CmMessage& message) {
  if (id->state != CmState::kConnecting && id->state != CmState::kAccepting &&
      id->state != CmState::kRequested) {
    return;
  }
  Enter(id, CmState::kClosed);
  FailQp(id);
  const int status = Iwarp(id) ? -ECONNREFUSED : message.status;
  PushEvent(id, RDMA_CM_EVENT_REJECTED, status, &message);
}

void OnDisconnect(CmId* id) {
  switch (id->state) {
    case CmState::kConnected:
    case CmState::kAccepting:
    case CmState::kReplied:
      if (Iwarp(id)) {
        FailQp(id);
        Close(id, false);
      } else {
        Enter(id, CmState::kPeerDisconnected);
      }
      PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, 0);
      break;
    case CmState::kDisconnecting:  // both at once
      SendToPeer(id, MakeMessage(id, Kind::kDisconnectReply, nullptr));
      PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, 0);
      Close(id, true);
      break;
    default:
      break;
  }
}

void OnTimeout(CmId* id) {
  switch (id->state) {
    case CmState::kConnecting:
    case CmState::kAccepting:
      Enter(id, CmState::kClosed);
      FailQp(id);
      PushEvent(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
      break;
    case CmState::kDisconnecting:
      PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
      Close(id, true);
      break;
    default:
      break;
  }
}

void OnOwn(CmId* id, const CmMessage& message) {
  if (message.kind == Kind::kTimewaitDone) {
    PushEvent(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    return;
  }
  if (message.epoch != id->epoch) return;
  const bool good = message.status == 0;
  switch (message.kind) {
    case Kind::kAddressDone:
      Enter(id, good ? CmState::kAddressResolved : CmState::kBound);
      PushEvent(id,
                good ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
                message.status);
      break;
    case Kind::kRouteDone:
      Enter(id, good ? CmState::kRouteResolved : CmState::kAddressResolved);
      PushEvent(id,
                good ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ROUTE_ERROR,
                message.status);
      break;
    case Kind::kTimeout:
      OnTimeout(id);
      break;
    default:
      break;
  }
}

// To whoever listens there.
void Request(CmId* id, CmMessage request) {
  request.source = id->route.addr.src_storage;
  request.destination = id->route.addr.dst_storage;
  CmId* listener = FindListener(id->node->fabric, request.destination);
  if (listener != nullptr) {
    id->peer = listener->number;
    SendToPeer(id, std::move(request));
    id->peer = 0;
    return;
  }
  ProcessPort* process = id->node->process.get();
  std::string refusal;
  const int error = process == nullptr
                        ? ECONNREFUSED
                        : process->Connect(id, request, &refusal);
  // Sent, or nobody to answer it.
  if (error != ECONNREFUSED && refusal.empty()) return;
  // The peer's stack answers in the place of a listener.
  id->node->fabric->Schedule(
      id->node->host->NowNs() + 2 * id->node->config.cm_delay_ns, id->number,
      RejectFor(refusal));
}

}  // namespace

int Connect(CmId* id, const rdma_conn_param* param) {
  if (id->state != CmState::kRouteResolved) return EINVAL;
  if (ToContext(id->verbs)->dead) return ENODEV;
  if (param != nullptr && param->private_data_len > kRequestData) {
    return EINVAL;
  }
  if (param != nullptr) {
    id->retry_count = param->retry_count;
    id->rnr_retry = param->rnr_retry_count;
  }
  id->fails = id->node->faults.Hits(Fault::Kind::kConnectError);
  const bool rejected = id->node->faults.Hits(Fault::Kind::kReject);
  if (param != nullptr && id->qp == nullptr) id->told_qp = param->qp_num;
  Enter(id, CmState::kConnecting);
  SendToSelf(id, Kind::kTimeout, id->node->config.cm_timeout_ns);
  if (rejected) {
    SendToSelf(id, Kind::kReject, id->node->config.cm_delay_ns,
               kRejectNoService);
  } else {
    Request(id, MakeMessage(id, Kind::kRequest, param));
  }
  return 0;
}

int Accept(CmId* id, const rdma_conn_param* param) {
  if (id->state != CmState::kRequested) return EINVAL;
  if (param != nullptr && param->private_data_len > kReplyData) return EINVAL;
  if (ToContext(id->verbs)->dead) return ENODEV;
  if (param != nullptr) id->rnr_retry = param->rnr_retry_count;
  if (param != nullptr && id->qp == nullptr) id->told_qp = param->qp_num;
  if (!(id->qp != nullptr ? Activate(id) : GiveWire(id))) return ECONNABORTED;
  Enter(id, CmState::kAccepting);
  SendToPeer(id, MakeMessage(id, Kind::kReply, param));
  SendToSelf(id, Kind::kTimeout, id->node->config.cm_timeout_ns);
  return 0;
}

int Reject(CmId* id, const void* data, uint8_t length) {
  if (id->state != CmState::kRequested) return EINVAL;
  if (length > kRejectData) return EINVAL;
  CmMessage message;
  message.kind = Kind::kReject;
  message.status = kRejectByUser;
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (bytes != nullptr) message.data.assign(bytes, bytes + length);
  SendToPeer(id, std::move(message));
  Enter(id, CmState::kClosed);
  return 0;
}

int Disconnect(CmId* id) {
  switch (id->state) {
    case CmState::kReplied:
    case CmState::kAccepting:
    case CmState::kConnected:
      FailQp(id);
      SendToPeer(id, MakeMessage(id, Kind::kDisconnect, nullptr));
      if (Iwarp(id)) {
        PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, 0);
        Close(id, false);
        return 0;
      }
      Enter(id, CmState::kDisconnecting);
      SendToSelf(id, Kind::kTimeout, id->node->config.cm_timeout_ns);
      return 0;
    case CmState::kPeerDisconnected:
      FailQp(id);
      SendToPeer(id, MakeMessage(id, Kind::kDisconnectReply, nullptr));
      Close(id, true);
      return 0;
    default:
      return EINVAL;
  }
}

int Establish(CmId* id) {
  if (id->qp != nullptr || id->state != CmState::kReplied) return EINVAL;
  if (!GiveWire(id)) return ECONNABORTED;
  Enter(id, CmState::kConnected);
  SendToPeer(id, MakeMessage(id, Kind::kReady, nullptr));
  return 0;
}

CmId* OnRequest(CmId* listener, const CmMessage& message) {
  Device* device = DeviceOfConnection(listener->node, message.destination);
  if (device == nullptr) return nullptr;
  CmId* id = NewId(static_cast<CmChannel*>(listener->channel),
                   listener->context, listener->ps);
  if (!SetDevice(id, device)) {
    DestroyId(id);
    return nullptr;
  }
  id->listener = listener;
  id->peer = message.from;
  id->peer_qp = message.qp_num;
  id->retry_count = message.param.retry_count;
  id->route.addr.src_storage = message.destination;
  if (message.destination.ss_family == AF_INET6) {
    // The kernel tells the address of an accepted id without its scope.
    reinterpret_cast<sockaddr_in6*>(&id->route.addr.src_storage)
        ->sin6_scope_id = 0;
  }
  id->route.addr.dst_storage = message.source;
  Enter(id, CmState::kRequested);
  PushEvent(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &message, listener);
  return id;
}

void OnMessage(CmId* id, const CmMessage& message) {
  const bool own = message.kind <= Kind::kTimewaitDone;
  if (!own && id->node->Silent(id->node->host->NowNs())) return;
  switch (message.kind) {
    case Kind::kRequest:
      if (id->state == CmState::kListening) OnRequest(id, message);
      return;
    case Kind::kReply:
      OnReply(id, message);
      return;
    case Kind::kReady:
      if (id->state != CmState::kAccepting) return;
      Enter(id, CmState::kConnected);
      PushEvent(id, RDMA_CM_EVENT_ESTABLISHED, 0);
      return;
    case Kind::kReject:
      OnReject(id, message);
      return;
    case Kind::kDisconnect:
      OnDisconnect(id);
      return;
    case Kind::kDisconnectReply:
      if (id->state != CmState::kDisconnecting) return;
      PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, 0);
      Close(id, true);
      return;
    default:
      OnOwn(id, message);
  }
}

void OnStray(Fabric* fabric, const CmMessage& message, uint64_t now) {
  CmMessage answer;
  if (message.kind == Kind::kDisconnect) {
    answer.kind = Kind::kDisconnectReply;
  } else if (message.kind == Kind::kRequest || message.kind == Kind::kReply) {
    answer.kind = Kind::kReject;
    answer.status = kRejectNoService;
  } else {
    return;
  }
  fabric->Schedule(now, message.from, std::move(answer));
}

CmMessage RejectFor(const std::string& reason) {
  CmMessage reject;
  reject.kind = Kind::kReject;
  reject.status = reason.empty() ? kRejectNoService : kRejectByUser;
  reject.data.assign(reason.begin(), reason.end());
  reject.data.resize(std::min(reject.data.size(), kRejectData));
  return reject;
}

void OnPeerGone(CmId* id) {
  // It may have died at work.
  Qp* const qp = QpOf(id);
  if (qp != nullptr && qp->share != nullptr) qp->share->header().busy = 0;
  switch (id->state) {
    case CmState::kConnecting:
    case CmState::kAccepting:
    case CmState::kDisconnecting:
      OnTimeout(id);
      break;
    default:
      OnDisconnect(id);
  }
}

void OnReplySeen(CmId* id) {
  if (id->state != CmState::kReplied) return;
  Activate(id);
  Enter(id, CmState::kConnected);
  SendToPeer(id, MakeMessage(id, Kind::kReady, nullptr));
}

void OnBroken(CmId* id) {
  if (id->state == CmState::kClosed) return;
  Close(id, true);
  PushEvent(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void OnRemoval(Fabric* fabric, Context* context) {
  for (const auto& [number, id] : fabric->ids()) {
    if (id->verbs != &context->context) continue;
    Enter(id, CmState::kClosed);
    PushEvent(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
  }
}

}  // namespace mig::soft
