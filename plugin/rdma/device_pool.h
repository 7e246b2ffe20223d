// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_DEVICE_POOL_H_
#define PLUGIN_RDMA_DEVICE_POOL_H_

#include <infiniband/verbs.h>

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
struct PoolDevice {
  ibv_context* context = nullptr;
  ibv_pd* guest_pd = nullptr;
  std::unique_ptr<RegistrationCache> registrations;
  uint64_t max_message = 0;  // bytes of one work request
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
  // Every session must be gone.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  verbs::Verbs* verbs() { return verbs_; }
  const RegistrationSettings& settings() const { return settings_; }
  // Made when it is first asked for, and valid as long as the pool. Errors:
  // DEVICE, LIMIT, MEMORY, UNSUPPORTED (on-demand paging).
  absl::StatusOr<PoolDevice*> Get(ibv_context* context, uint8_t port);

 private:
  absl::Status Open(PoolDevice* device, uint8_t port);

  const std::unique_ptr<verbs::Verbs> owned_;
  verbs::Verbs* const verbs_;
  const Host* const host_;
  const RegistrationSettings settings_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PoolDevice>> devices_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_DEVICE_POOL_H_
