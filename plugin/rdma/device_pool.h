// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_DEVICE_POOL_H_
#define PLUGIN_RDMA_DEVICE_POOL_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "common/host.h"
#include "rdma/registration.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// What the sessions of a context share on one device.
class PoolDevice {
 public:
  // `like` came up on the device. Errors: as DevicePool::Get.
  static absl::StatusOr<std::shared_ptr<PoolDevice>> Open(
      verbs::Verbs* verbs, const Host* host, RegistrationSettings settings,
      const rdma_cm_id* like);
  ~PoolDevice();
  PoolDevice(const PoolDevice&) = delete;
  PoolDevice& operator=(const PoolDevice&) = delete;

  ibv_context* context() const { return context_; }
  ibv_pd* guest_pd() const { return guest_pd_; }
  RegistrationCache* registrations() const { return registrations_.get(); }
  // Bytes of one work request.
  uint64_t max_message() const { return max_message_; }

 private:
  PoolDevice(verbs::Verbs* verbs, ibv_context* context)
      : verbs_(verbs), context_(context) {}
  absl::Status Keep(const rdma_cm_id* like);
  absl::Status KeepAt(const rdma_cm_id* like, sockaddr_storage address);
  absl::Status Ask(uint8_t port, RegistrationSettings* settings);

  verbs::Verbs* const verbs_;
  ibv_context* const context_;
  rdma_event_channel* keeper_channel_ = nullptr;
  rdma_cm_id* keeper_ = nullptr;
  ibv_pd* guest_pd_ = nullptr;
  std::unique_ptr<RegistrationCache> registrations_;
  uint64_t max_message_ = 0;
};

// The devices of one context with one set of registration settings. Guest
// memory that the host keeps stays registered here from one session to the
// next. Any thread.
class DevicePool {
 public:
  // `owned` may be null: then `verbs` lives as long as the process. `host` must
  // outlive it.
  DevicePool(std::unique_ptr<verbs::Verbs> owned, verbs::Verbs* verbs,
             const Host* host, const RegistrationSettings& settings)
      : owned_(std::move(owned)),
        verbs_(verbs),
        host_(host),
        settings_(settings) {}
  // Every session must be gone, and what they took from here.
  ~DevicePool() = default;
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  verbs::Verbs* verbs() { return verbs_; }
  const RegistrationSettings& settings() const { return settings_; }
  // The device that `id` came up on, made when it is first asked for. Errors:
  // DEVICE, LIMIT, MEMORY, UNSUPPORTED (on-demand paging).
  absl::StatusOr<std::shared_ptr<PoolDevice>> Get(const rdma_cm_id* id);
  // The device was removed: it goes with the last session that has it, and
  // whoever asks for it again gets a new one.
  void Retire(const PoolDevice* device);

 private:
  const std::unique_ptr<verbs::Verbs> owned_;
  verbs::Verbs* const verbs_;
  const Host* const host_;
  const RegistrationSettings settings_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<PoolDevice>> devices_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_DEVICE_POOL_H_
