// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_DEVICE_SET_H_
#define PLUGIN_RDMA_DEVICE_SET_H_

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/poller.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// What one session has on one device that its ids came up on. A protection
// domain of its own for control, so that a key of guest memory is good for
// nothing on a control queue pair.
struct SessionDevice {
  ibv_context* context = nullptr;
  ibv_pd* control_pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  Readiness readiness;
};

// A completion queue that may wake the session. Its address is the queue's
// cq_context.
struct WakingCq {
  ibv_cq* cq = nullptr;
  bool armed = false;
};

// The devices of one session, made when an id comes up on one. Not
// thread-safe. Queue pairs, completion queues and registrations of a device go
// before.
class DeviceSet {
 public:
  DeviceSet(verbs::Verbs* verbs, Poller* poller)
      : verbs_(verbs), poller_(poller) {}
  ~DeviceSet();
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  // Errors: DEVICE, LIMIT, MEMORY. Valid as long as the set.
  absl::StatusOr<SessionDevice*> Get(ibv_context* context);
  // Takes and acknowledges completion events: their queues are not armed any
  // more. Never waits.
  void DrainEvents();

 private:
  absl::Status Open(SessionDevice* device);

  verbs::Verbs* const verbs_;
  Poller* const poller_;
  std::vector<std::unique_ptr<SessionDevice>> devices_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_DEVICE_SET_H_
