// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/device_pool.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <utility>
#include <vector>

#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// The address with no port, in each scope that it may be in: the kernel tells
// the link-local address of an accepted id without its scope, and binds none
// to it that has none.
std::vector<sockaddr_storage> PlacesOf(sockaddr_storage address) {
  if (address.ss_family != AF_INET6) {
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = 0;
    return {address};
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
  v6->sin6_port = 0;
  ifaddrs* list = nullptr;
  if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) || v6->sin6_scope_id != 0 ||
      getifaddrs(&list) != 0) {
    return {address};
  }
  std::vector<sockaddr_storage> places;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET6) {
      continue;
    }
    const auto* const own = reinterpret_cast<sockaddr_in6*>(each->ifa_addr);
    if (!IN6_ARE_ADDR_EQUAL(&own->sin6_addr, &v6->sin6_addr)) continue;
    v6->sin6_scope_id = own->sin6_scope_id;
    places.push_back(address);
  }
  freeifaddrs(list);
  if (places.empty()) places.push_back(address);
  return places;
}

}  // namespace

absl::StatusOr<std::shared_ptr<PoolDevice>> PoolDevice::Open(
    verbs::Verbs* verbs, const Host* host, RegistrationSettings settings,
    const rdma_cm_id* like) {
  std::shared_ptr<PoolDevice> device(new PoolDevice(verbs, like->verbs));
  MIG_RETURN_IF_ERROR(device->Keep(like));
  MIG_RETURN_IF_ERROR(device->Ask(like->port_num, &settings));
  int failure = 0;
  device->guest_pd_ = verbs::ObjectOfCall(
      &failure, [&] { return verbs->AllocPd(device->context_); });
  if (device->guest_pd_ == nullptr) {
    return verbs::StatusOfErrno(
        "the device gives no protection domain for guest memory", failure);
  }
  auto cache =
      RegistrationCache::Create(verbs, device->guest_pd_, host, settings);
  if (!cache.ok()) return cache.status();
  device->registrations_ = *std::move(cache);
  return device;
}

PoolDevice::~PoolDevice() {
  registrations_.reset();
  if (guest_pd_ != nullptr) verbs_->DeallocPd(guest_pd_);
  if (keeper_ != nullptr) verbs_->CmDestroyId(keeper_);
  if (keeper_channel_ != nullptr) {
    verbs_->CmDestroyEventChannel(keeper_channel_);
  }
}

// The context is librdmacm's, which closes that of a removed device as soon as
// no id is on it (rdma-core, librdmacm/cma.c, ucma_put_device), whatever was
// made with it. So an id of the pool's own stays as long as its registrations.
absl::Status PoolDevice::Keep(const rdma_cm_id* like) {
  int failure = 0;
  keeper_channel_ = verbs::ObjectOfCall(
      &failure, [&] { return verbs_->CmCreateEventChannel(); });
  if (keeper_channel_ == nullptr) {
    return verbs::StatusOfErrno("can't make an event channel", failure);
  }
  const auto places = PlacesOf(like->route.addr.src_storage);
  absl::Status kept;
  for (const sockaddr_storage& place : places) {
    if (keeper_ != nullptr) {
      verbs_->CmDestroyId(std::exchange(keeper_, nullptr));
    }
    kept = KeepAt(like, place);
    // The same link-local address may be on several devices.
    if (kept.ok() && keeper_->verbs == context_) return kept;
  }
  return kept;
}

absl::Status PoolDevice::KeepAt(const rdma_cm_id* like,
                                sockaddr_storage address) {
  int failure = verbs::ErrnoOfCall([&] {
    return verbs_->CmCreateId(keeper_channel_, &keeper_, nullptr, like->ps);
  });
  if (failure != 0) {
    keeper_ = nullptr;
    return verbs::StatusOfErrno("can't make an id to keep the device with",
                                failure);
  }
  failure = verbs::ErrnoOfCall([&] {
    return verbs_->CmBindAddr(keeper_, reinterpret_cast<sockaddr*>(&address));
  });
  return verbs::StatusOfErrno("can't keep the device by an id of its own",
                              failure);
}

absl::Status PoolDevice::Ask(uint8_t port, RegistrationSettings* settings) {
  ibv_port_attr port_attr = {};
  int failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryPort(context_, port, &port_attr); });
  MIG_RETURN_IF_ERROR(
      verbs::StatusOfErrno("the device's port can't be asked", failure));
  max_message_ = port_attr.max_msg_sz;
  ibv_device_attr_ex attr = {};
  failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryDeviceEx(context_, &attr); });
  if (failure != 0) {
    failure = verbs::ErrnoOfCall(
        [&] { return verbs_->QueryDevice(context_, &attr.orig_attr); });
  }
  MIG_RETURN_IF_ERROR(verbs::StatusOfErrno(
      "the device can't be asked for its limits", failure));
  if (settings->on_demand) MIG_RETURN_IF_ERROR(CheckOdp(attr));
  settings->max_mr_size = attr.orig_attr.max_mr_size;
  if (attr.orig_attr.max_mr > 0) {
    settings->max_mr = static_cast<uint64_t>(attr.orig_attr.max_mr);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PoolDevice>> DevicePool::Get(
    const rdma_cm_id* id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& device : devices_) {
    if (device->context() == id->verbs) return device;
  }
  auto device = PoolDevice::Open(verbs_, host_, settings_, id);
  if (device.ok()) devices_.push_back(*device);
  return device;
}

void DevicePool::Retire(const PoolDevice* device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(devices_,
                [device](const auto& kept) { return kept.get() == device; });
}

}  // namespace mig::rdma
