// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/device_pool.h"

#include <utility>

#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {

DevicePool::~DevicePool() {
  for (const auto& device : devices_) {
    device->registrations.reset();
    if (device->guest_pd != nullptr) verbs_->DeallocPd(device->guest_pd);
  }
}

absl::StatusOr<PoolDevice*> DevicePool::Get(ibv_context* context,
                                            uint8_t port) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& device : devices_) {
    if (device->context == context) return device.get();
  }
  auto device = std::make_unique<PoolDevice>();
  device->context = context;
  const absl::Status opened = Open(device.get(), port);
  if (!opened.ok()) {
    device->registrations.reset();
    if (device->guest_pd != nullptr) verbs_->DeallocPd(device->guest_pd);
    return opened;
  }
  devices_.push_back(std::move(device));
  return devices_.back().get();
}

absl::Status DevicePool::Open(PoolDevice* device, uint8_t port) {
  ibv_port_attr port_attr = {};
  int failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryPort(device->context, port, &port_attr); });
  MIG_RETURN_IF_ERROR(
      verbs::StatusOfErrno("the device's port can't be asked", failure));
  device->max_message = port_attr.max_msg_sz;
  RegistrationSettings settings = settings_;
  ibv_device_attr_ex attr = {};
  failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryDeviceEx(device->context, &attr); });
  if (failure != 0) {
    failure = verbs::ErrnoOfCall(
        [&] { return verbs_->QueryDevice(device->context, &attr.orig_attr); });
  }
  MIG_RETURN_IF_ERROR(verbs::StatusOfErrno(
      "the device can't be asked for its limits", failure));
  if (settings.on_demand) MIG_RETURN_IF_ERROR(CheckOdp(attr));
  settings.max_mr_size = attr.orig_attr.max_mr_size;
  if (attr.orig_attr.max_mr > 0) {
    settings.max_mr = static_cast<uint64_t>(attr.orig_attr.max_mr);
  }
  device->guest_pd = verbs::ObjectOfCall(
      &failure, [&] { return verbs_->AllocPd(device->context); });
  if (device->guest_pd == nullptr) {
    return verbs::StatusOfErrno(
        "the device gives no protection domain for guest memory", failure);
  }
  auto cache =
      RegistrationCache::Create(verbs_, device->guest_pd, host_, settings);
  if (!cache.ok()) return cache.status();
  device->registrations = *std::move(cache);
  return absl::OkStatus();
}

}  // namespace mig::rdma
