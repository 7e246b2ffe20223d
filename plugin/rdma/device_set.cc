// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/device_set.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {

DeviceSet::~DeviceSet() {
  for (const auto& device : devices_) {
    if (device->channel != nullptr) {
      poller_->Unwatch(device->channel->fd);
      verbs_->DestroyCompChannel(device->channel);
    }
    if (device->control_pd != nullptr) verbs_->DeallocPd(device->control_pd);
  }
}

absl::StatusOr<SessionDevice*> DeviceSet::Get(ibv_context* context) {
  for (const auto& device : devices_) {
    if (device->context == context) return device.get();
  }
  auto device = std::make_unique<SessionDevice>();
  device->context = context;
  SessionDevice* const made = device.get();
  // In the set first: what was made of it is undone with the set.
  devices_.push_back(std::move(device));
  const absl::Status opened = Open(made);
  if (opened.ok()) return made;
  made->context = nullptr;
  return opened;
}

absl::Status DeviceSet::Open(SessionDevice* device) {
  int failure = 0;
  device->control_pd = verbs::ObjectOfCall(
      &failure, [&] { return verbs_->AllocPd(device->context); });
  if (device->control_pd == nullptr) {
    return verbs::StatusOfErrno(
        "the device gives no protection domain for control", failure);
  }
  device->channel = verbs::ObjectOfCall(
      &failure, [&] { return verbs_->CreateCompChannel(device->context); });
  if (device->channel == nullptr) {
    return verbs::StatusOfErrno("the device gives no completion channel",
                                failure);
  }
  const int fd = device->channel->fd;
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    return MakeSystemError(MIG_E_DEVICE, "a completion channel can't be set up",
                           errno);
  }
  return poller_->Watch(fd, &device->readiness);
}

void DeviceSet::DrainEvents() {
  for (const auto& device : devices_) {
    if (device->channel == nullptr) continue;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (verbs_->GetCqEvent(device->channel, &cq, &context) == 0) {
      verbs_->AckCqEvents(cq, 1);
      static_cast<WakingCq*>(context)->armed = false;
    }
  }
}

}  // namespace mig::rdma
