// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <cstring>

#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"

namespace mig::soft {
namespace {

// InfiniBand messages have room for the most there can be, and the receiver is
// told that much, padded with zeros; iWARP tells the true length.
size_t DeliveredLength(const CmId* id, rdma_cm_event_type type, size_t length) {
  if (id->node->config.model->iwarp) return length;
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return kRequestData;
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return kReplyData;
    case RDMA_CM_EVENT_REJECTED:
      return kRejectData;
    default:
      return length;
  }
}

void SetParameters(const CmId* id, const CmMessage& message, CmEvent* event) {
  event->param.conn = message.param;
  // What one side asks to start, the other has to answer.
  event->param.conn.responder_resources = message.param.initiator_depth;
  event->param.conn.initiator_depth = message.param.responder_resources;
  event->param.conn.qp_num = message.qp_num;
  event->data = message.data;
  event->data.resize(DeliveredLength(id, event->event, message.data.size()));
  event->param.conn.private_data =
      event->data.empty() ? nullptr : event->data.data();
  event->param.conn.private_data_len = static_cast<uint8_t>(event->data.size());
}

}  // namespace

void PushEvent(CmId* id, rdma_cm_event_type type, int status,
               const CmMessage* message, CmId* listener) {
  auto event = std::make_unique<CmEvent>();
  event->id = id;
  event->listen_id = listener;
  event->event = type;
  event->status = status;
  event->counted = listener != nullptr ? listener : id;
  if (message != nullptr) SetParameters(id, *message, event.get());
  auto* channel = static_cast<CmChannel*>(id->channel);
  channel->queue.push_back(std::move(event));
  channel->event.Set();
}

CmEvent* PopEvent(CmChannel* channel) {
  if (channel->queue.empty()) return nullptr;
  CmEvent* event = channel->queue.front().release();
  channel->queue.pop_front();
  if (channel->queue.empty()) channel->event.Clear();
  ++event->counted->unacked;
  CmId* id = ToId(event->id);
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) id->listener = nullptr;
  if (event->event == RDMA_CM_EVENT_ESTABLISHED) OnReplySeen(id);
  return event;
}

void AckEvent(CmEvent* event) {
  --event->counted->unacked;
  delete event;
}

void DropEvents(CmId* id) {
  auto* channel = static_cast<CmChannel*>(id->channel);
  std::erase_if(channel->queue, [id](const std::unique_ptr<CmEvent>& event) {
    return event->id == id || event->counted == id;
  });
  if (channel->queue.empty()) channel->event.Clear();
}

void SendToPeer(CmId* id, CmMessage message) {
  Node* node = id->node;
  const uint64_t now = node->host->NowNs();
  if (node->Silent(now)) return;
  message.from = id->number;
  if (id->wire != nullptr) {
    id->wire->Send(id, message);
    return;
  }
  node->fabric->Schedule(now + node->config.cm_delay_ns, id->peer,
                         std::move(message));
}

void SendToSelf(CmId* id, CmMessage::Kind kind, uint64_t delay_ns, int status) {
  CmMessage message;
  message.kind = kind;
  message.epoch = id->epoch;
  message.status = status;
  id->node->fabric->Schedule(id->node->host->NowNs() + delay_ns, id->number,
                             std::move(message));
}

}  // namespace mig::soft
