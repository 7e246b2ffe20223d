// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_CM_EVENTS_H_
#define PLUGIN_RDMA_CM_EVENTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/poller.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// A copy of an event, which is acknowledged already.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  rdma_cm_id* id = nullptr;  // of a connect request: new, and the handler's
  std::vector<uint8_t> private_data;
};

// What an id's context points to.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  // May destroy ids, its own too.
  virtual void OnCmEvent(const CmEvent& event) = 0;
};

// The connection manager's events of one session. Each is copied and
// acknowledged at once, whatever comes of it, since destroying an id waits for
// what is not (C16). Not thread-safe.
class CmEvents {
 public:
  // Watches its descriptor with the poller, which must outlive it. Errors:
  // DEVICE, LIMIT, with the remedy.
  static absl::StatusOr<std::unique_ptr<CmEvents>> Create(verbs::Verbs* verbs,
                                                          Poller* poller);
  // Every id must be destroyed before.
  ~CmEvents();
  CmEvents(const CmEvents&) = delete;
  CmEvents& operator=(const CmEvents&) = delete;

  rdma_event_channel* channel() { return channel_; }
  // Hands out what has happened, up to a limit; true if there may be more.
  // Never waits.
  bool Dispatch();

 private:
  CmEvents(verbs::Verbs* verbs, Poller* poller)
      : verbs_(verbs), poller_(poller) {}
  bool Next(CmEvent* event, CmHandler** handler);

  verbs::Verbs* const verbs_;
  Poller* const poller_;
  Readiness readiness_;
  rdma_event_channel* channel_ = nullptr;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CM_EVENTS_H_
