// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One id of the connection manager with its queue pair and completion queue:
// from resolving an address, or from a connect request, to its end.
#ifndef PLUGIN_RDMA_CM_QP_H_
#define PLUGIN_RDMA_CM_QP_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net_address.h"
#include "rdma/caps_ladder.h"
#include "rdma/cm_events.h"
#include "rdma/device_set.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// How a connection behaves. Nothing of it is left to what a stack happens to
// do (C09).
struct CmTuning {
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 6;         // 7 would be for ever
  uint8_t ack_timeout = 14;      // 4.096 us << 14 = 67 ms
  uint8_t min_rnr_timer = 12;    // 0.64 ms
  uint8_t traffic_class = 0;     // 0: the system's
  int service_level = -1;        // 0..15; -1: the system's
  std::string device;            // the only one that may be used; "" any
  uint8_t port = 0;              // the same of its ports; 0: any
  SocketAddress source_address;  // size 0: the system's choice
  // The index of the GID whose address that is, and which has to come of it;
  // -1: any. A listener listens at that address, too.
  int gid_index = -1;
};

enum class CmState {
  kResolving,        // address or route
  kAddressResolved,  // the device is known
  kRouteResolved,
  kConnecting,
  kEstablished,
  kEnded  // see failure()
};

// Not thread-safe. Errors of calls and of events alike end it.
class CmQp final : public CmHandler {
 public:
  // The connecting side: starts to resolve. `what` names it in messages
  // ("control", "data 3"). Errors: what CmState::kEnded has.
  static absl::StatusOr<std::unique_ptr<CmQp>> Resolve(verbs::Verbs* verbs,
                                                       CmEvents* events,
                                                       const CmTuning& tuning,
                                                       std::string what,
                                                       const SocketAddress& to);
  // The listening side: takes over the id of a request.
  static std::unique_ptr<CmQp> Adopt(verbs::Verbs* verbs, rdma_cm_id* id,
                                     const CmTuning& tuning, std::string what);
  // The queue pair goes first, then what it used. Never waits: no event is
  // left unacknowledged.
  ~CmQp() override;
  CmQp(const CmQp&) = delete;
  CmQp& operator=(const CmQp&) = delete;

  absl::Status ResolveRoute();
  // Makes the queue pair and its completion queue on the id's device, with
  // what the ladder comes to. The completion queue holds all that can be
  // posted to a queue pair of cap(). Errors: DEVICE.
  absl::Status MakeQp(ibv_pd* pd, ibv_comp_channel* channel,
                      const QpWants& wants);
  absl::Status Connect(std::span<const uint8_t> private_data);
  absl::Status Accept(std::span<const uint8_t> private_data);
  // Answers a request with a reason. The id is of no use afterwards.
  void Reject(absl::string_view reason);
  // The queue pair to the error state: all that is posted completes.
  void Break();
  // Tells the peer; the event comes later. Idempotent.
  void Disconnect();

  CmState state() const { return state_; }
  const absl::Status& failure() const { return failure_; }
  // Of the accept, on the connecting side once established.
  const std::vector<uint8_t>& peer_data() const { return peer_data_; }
  rdma_cm_id* id() { return id_; }
  ibv_context* context() { return id_->verbs; }
  ibv_qp* qp() const { return own_qp_ != nullptr ? own_qp_ : id_->qp; }
  ibv_cq* cq() { return cq_.cq; }
  const QpGrant& grant() const { return grant_; }
  // What may be used: no more than was granted, nor than the completion queue
  // was made for.
  ibv_qp_cap cap() const;
  uint8_t port() const { return id_->port_num; }
  SocketAddress peer_address() const;
  SocketAddress local_address() const;
  const std::string& what() const { return what_; }

  // Asks for an event at the next completion, if that is not done yet. True:
  // just now, so that the queue must be polled once more.
  bool Arm();

  void OnCmEvent(const CmEvent& event) override;

 private:
  class Maker;

  CmQp(verbs::Verbs* verbs, const CmTuning& tuning, std::string what)
      : verbs_(verbs), tuning_(tuning), what_(std::move(what)) {}
  absl::Status Failed(absl::string_view did, int failure) const;
  void End(const absl::Status& why);
  void OnRejected(const CmEvent& event);
  absl::Status CheckDevice() const;
  absl::Status CheckServiceLevel() const;
  absl::Status CheckGid();
  bool moves_qp() const { return tuning_.service_level >= 0; }
  void Establish();
  void SetOptions();
  void SetRnrTimer();
  bool iwarp() const {
    return id_->verbs != nullptr &&
           id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
  }
  rdma_conn_param Parameters(std::span<const uint8_t> private_data) const;

  verbs::Verbs* const verbs_;
  const CmTuning tuning_;
  const std::string what_;
  rdma_cm_id* id_ = nullptr;
  // In place of the id's own, where this moves it: see qp_mover.h.
  ibv_qp* own_qp_ = nullptr;
  WakingCq cq_;
  QpGrant grant_;
  CmState state_ = CmState::kResolving;
  absl::Status failure_;
  std::vector<uint8_t> peer_data_;
  bool disconnected_ = false;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CM_QP_H_
