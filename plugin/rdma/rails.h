// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The devices that the data queue pairs of one session came up on. One is the
// usual case; where ids of the same addresses come up on several (ports of a
// bond, routes that differ), memory is registered on each, with keys of its
// own.
#ifndef PLUGIN_RDMA_RAILS_H_
#define PLUGIN_RDMA_RAILS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma/chunk_map.h"
#include "rdma/device_pool.h"
#include "rdma/opener.h"
#include "rdma/registration.h"

namespace mig::rdma {

// One block's registrations on every device; each call is for all of them.
// See BlockRegistration for what they do.
class RailRegistrations {
 public:
  void Add(std::unique_ptr<BlockRegistration> one) {
    rails_.push_back(std::move(one));
  }
  size_t rails() const { return rails_.size(); }
  BlockRegistration& rail(size_t rail) { return *rails_[rail]; }
  const BlockRegistration& rail(size_t rail) const { return *rails_[rail]; }

  uint32_t chunk_count() const { return rails_.front()->chunk_count(); }
  void Ask(uint32_t first, uint32_t count = 1);
  void AskAll();
  uint64_t asked_bytes() const;
  uint64_t ready_bytes() const;
  void Release();
  bool released() const;

 private:
  std::vector<std::unique_ptr<BlockRegistration>> rails_;
};

// Not thread-safe. A local device is numbered in the order in which the first
// queue pair came up on it: that is the rail of the wire's chunk keys.
class Rails {
 public:
  explicit Rails(DevicePool* pool) : pool_(pool) {}

  // The device of a data queue pair's id. Errors: those of DevicePool::Get.
  absl::StatusOr<GuestDevice> Of(const rdma_cm_id* id);
  bool empty() const { return devices_.empty(); }
  const PoolDevice& device(size_t rail) const { return *devices_[rail]; }
  // A session that ends since its device was removed.
  void Retire();

  // -- The source's pairs of a local and a remote device: ChunkMap's rails ----
  // The next lane runs between these. Answers the number of the pair.
  uint32_t AddLane(uint16_t local, uint16_t remote);
  uint32_t pairs() const { return static_cast<uint32_t>(pairs_.size()); }
  // Calls `use` with each pair of that local device, or of that remote one.
  template <typename Use>
  absl::Status EachOfLocal(size_t local, Use use) const {
    return Each([local](const Pair& p) { return p.local == local; }, use);
  }
  template <typename Use>
  absl::Status EachOfRemote(uint64_t remote, Use use) const {
    return Each([remote](const Pair& p) { return p.remote == remote; }, use);
  }
  bool HasRemote(uint64_t remote) const;

  // -- Registrations
  // ------------------------------------------------------------ On every
  // device. Errors: those of RegistrationCache::Open.
  absl::StatusOr<std::unique_ptr<RailRegistrations>> Open(
      const RegistrationCache::Request& request);
  // Of all these on all devices: they share the limit of one process.
  absl::Status CheckPinnable(
      std::span<const RailRegistrations* const> blocks) const;
  // Without threads: one slice of one device, as RegistrationCache::Step.
  void Step();
  bool HasWork() const;
  // When it has; MIG_NO_DEADLINE: not before a call brings something.
  uint64_t DueNs() const;
  RegistrationStats stats() const;

 private:
  struct Pair {
    uint16_t local = 0;
    uint16_t remote = 0;
  };
  template <typename Is, typename Use>
  absl::Status Each(Is is, Use use) const {
    for (uint32_t pair = 0; pair < pairs(); ++pair) {
      if (!is(pairs_[pair])) continue;
      absl::Status status = use(pair);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  DevicePool* const pool_;
  std::vector<std::shared_ptr<PoolDevice>> devices_;
  std::vector<Pair> pairs_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_RAILS_H_
