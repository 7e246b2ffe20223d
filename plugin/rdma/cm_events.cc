// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/cm_events.h"

#include <fcntl.h>

#include <cerrno>

#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// A flood of requests must not hold up a call.
constexpr int kMostEvents = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<CmEvents>> CmEvents::Create(verbs::Verbs* verbs,
                                                           Poller* poller) {
  auto events = std::unique_ptr<CmEvents>(new CmEvents(verbs, poller));
  int failure = 0;
  events->channel_ = verbs::ObjectOfCall(
      &failure, [&] { return verbs->CmCreateEventChannel(); });
  if (events->channel_ == nullptr) {
    return verbs::StatusOfErrno(
        "the RDMA connection manager can't be opened: load the module rdma_ucm "
        "(modprobe rdma_ucm), see that a device is there (rdma link) and that "
        "/dev/infiniband/rdma_cm may be opened",
        failure);
  }
  const int fd = events->channel_->fd;
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
      fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return MakeSystemError(MIG_E_DEVICE, "the CM channel can't be set up",
                           errno);
  }
  MIG_RETURN_IF_ERROR(poller->Watch(fd, &events->readiness_));
  return events;
}

CmEvents::~CmEvents() {
  if (channel_ == nullptr) return;
  poller_->Unwatch(channel_->fd);
  verbs_->CmDestroyEventChannel(channel_);
}

bool CmEvents::Next(CmEvent* event, CmHandler** handler) {
  rdma_cm_event* raw = nullptr;
  if (verbs_->CmGetEvent(channel_, &raw) != 0) return false;
  event->type = raw->event;
  event->status = raw->status;
  event->id = raw->id;
  event->private_data.clear();
  const auto* data = static_cast<const uint8_t*>(raw->param.conn.private_data);
  const bool connecting = raw->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
                          raw->event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
                          raw->event == RDMA_CM_EVENT_ESTABLISHED ||
                          raw->event == RDMA_CM_EVENT_REJECTED;
  if (connecting && data != nullptr) {
    event->private_data.assign(data, data + raw->param.conn.private_data_len);
  }
  rdma_cm_id* const of =
      raw->event == RDMA_CM_EVENT_CONNECT_REQUEST ? raw->listen_id : raw->id;
  *handler = static_cast<CmHandler*>(of->context);
  verbs_->CmAckEvent(raw);
  return true;
}

bool CmEvents::Dispatch() {
  CmEvent event;
  CmHandler* handler = nullptr;
  int count = 0;
  while (count < kMostEvents && Next(&event, &handler)) {
    ++count;
    if (handler != nullptr) handler->OnCmEvent(event);
  }
  return count == kMostEvents;
}

}  // namespace mig::rdma
