// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/cm_qp.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/qp_mover.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

constexpr int kResolveTimeoutMs = 2000;
// Of a reject that the peer's plugin sent, and of one that its system did.
constexpr int kRejectedByPeer = 28;
constexpr size_t kMaxReason = 148;

SocketAddress AddressOf(const sockaddr& generic,
                        const sockaddr_storage& storage) {
  SocketAddress address;
  address.size = generic.sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                               : sizeof(sockaddr_in);
  std::memcpy(&address.storage, &storage, address.size);
  return address;
}

}  // namespace

// A completion queue for each combination of caps: it has to hold what can be
// under way, and its size may be what the device refuses.
class CmQp::Maker final : public QpMaker {
 public:
  Maker(CmQp* owner, ibv_pd* pd, ibv_comp_channel* channel)
      : owner_(owner), pd_(pd), channel_(channel) {}

  int Make(bool extended, ibv_qp_cap* cap) override {
    const int failure = MakeCq(cap->max_send_wr + cap->max_recv_wr);
    if (failure != 0) return failure;
    return extended ? MakeExtended(cap) : MakePlain(cap);
  }
  void Unmake() override {
    if (owner_->own_qp_ == nullptr) {
      owner_->verbs_->CmDestroyQp(owner_->id_);
      return;
    }
    owner_->verbs_->DestroyQp(std::exchange(owner_->own_qp_, nullptr));
  }

 private:
  int MakeCq(uint32_t entries) {
    WakingCq& cq = owner_->cq_;
    if (cq.cq != nullptr && entries_ == entries) return 0;
    if (cq.cq != nullptr) owner_->verbs_->DestroyCq(cq.cq);
    int failure = 0;
    cq.cq = verbs::ObjectOfCall(&failure, [&] {
      return owner_->verbs_->CreateCq(
          owner_->id_->verbs, static_cast<int>(entries), &cq, channel_, 0);
    });
    entries_ = entries;
    return failure;
  }
  int MakeExtended(ibv_qp_cap* cap) {
    ibv_qp_init_attr_ex attr = {};
    attr.send_cq = attr.recv_cq = owner_->cq_.cq;
    attr.cap = *cap;
    attr.qp_type = IBV_QPT_RC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd_;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
    const int failure =
        owner_->moves_qp()
            ? MakeOwn([&] {
                return owner_->verbs_->CreateQpEx(owner_->id_->verbs, &attr);
              })
            : verbs::ErrnoOfCall([&] {
                return owner_->verbs_->CmCreateQpEx(owner_->id_, &attr);
              });
    if (failure == 0) *cap = attr.cap;
    return failure;
  }
  int MakePlain(ibv_qp_cap* cap) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = owner_->cq_.cq;
    attr.cap = *cap;
    attr.qp_type = IBV_QPT_RC;
    const int failure =
        owner_->moves_qp()
            ? MakeOwn([&] { return owner_->verbs_->CreateQp(pd_, &attr); })
            : verbs::ErrnoOfCall([&] {
                return owner_->verbs_->CmCreateQp(owner_->id_, pd_, &attr);
              });
    if (failure == 0) *cap = attr.cap;
    return failure;
  }
  template <typename Create>
  int MakeOwn(Create create) {
    int failure = 0;
    owner_->own_qp_ = verbs::ObjectOfCall(&failure, create);
    if (owner_->own_qp_ == nullptr) return failure;
    failure = MoveToInit(owner_->verbs_, owner_->id_, owner_->own_qp_);
    if (failure != 0) Unmake();
    return failure;
  }

  CmQp* const owner_;
  ibv_pd* const pd_;
  ibv_comp_channel* const channel_;
  uint32_t entries_ = 0;
};

absl::StatusOr<std::unique_ptr<CmQp>> CmQp::Resolve(verbs::Verbs* verbs,
                                                    CmEvents* events,
                                                    const CmTuning& tuning,
                                                    std::string what,
                                                    const SocketAddress& to) {
  auto made = std::unique_ptr<CmQp>(new CmQp(verbs, tuning, std::move(what)));
  CmQp& self = *made;
  int failure = verbs::ErrnoOfCall([&] {
    return verbs->CmCreateId(events->channel(), &self.id_,
                             static_cast<CmHandler*>(&self), RDMA_PS_TCP);
  });
  if (failure != 0) {
    self.id_ = nullptr;
    return self.Failed("made", failure);
  }
  self.SetOptions();
  SocketAddress from = tuning.source_address;
  SocketAddress target = to;
  auto* const source =
      from.size == 0 ? nullptr : reinterpret_cast<sockaddr*>(&from.storage);
  failure = verbs::ErrnoOfCall([&] {
    return verbs->CmResolveAddr(self.id_, source,
                                reinterpret_cast<sockaddr*>(&target.storage),
                                kResolveTimeoutMs);
  });
  if (failure != 0) return self.Failed("given an address", failure);
  return made;
}

std::unique_ptr<CmQp> CmQp::Adopt(verbs::Verbs* verbs, rdma_cm_id* id,
                                  const CmTuning& tuning, std::string what) {
  auto made = std::unique_ptr<CmQp>(new CmQp(verbs, tuning, std::move(what)));
  made->id_ = id;
  id->context = static_cast<CmHandler*>(made.get());
  made->state_ = CmState::kRouteResolved;
  made->SetOptions();
  const absl::Status device = made->CheckDevice();
  if (!device.ok()) made->End(device);
  return made;
}

CmQp::~CmQp() {
  if (id_ == nullptr) return;
  if (own_qp_ != nullptr) verbs_->DestroyQp(own_qp_);
  if (id_->qp != nullptr) verbs_->CmDestroyQp(id_);
  if (cq_.cq != nullptr) verbs_->DestroyCq(cq_.cq);
  verbs_->CmDestroyId(id_);
}

absl::Status CmQp::Failed(absl::string_view did, int failure) const {
  return verbs::StatusOfErrno(
      absl::StrCat("the ", what_, " connection could not be ", did), failure);
}

// Older kernels know neither: then what the system does has to do.
void CmQp::SetOptions() {
  uint8_t timeout = tuning_.ack_timeout;
  verbs_->CmSetOption(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                      sizeof(timeout));
  uint8_t traffic_class = tuning_.traffic_class;
  if (traffic_class != 0) {
    verbs_->CmSetOption(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class,
                        sizeof(traffic_class));
  }
}

absl::Status CmQp::CheckDevice() const {
  if (id_->verbs == nullptr) {
    return MakeError(MIG_E_DEVICE,
                     absl::StrCat("the address of the ", what_,
                                  " connection belongs to no RDMA device: use "
                                  "one of those that probe shows"));
  }
  const char* const name = verbs_->GetDeviceName(id_->verbs->device);
  if (!tuning_.device.empty() && tuning_.device != name) {
    return MakeError(
        MIG_E_DEVICE,
        absl::StrCat("the ", what_, " connection came up on device ", name,
                     ", and device=", tuning_.device,
                     " was asked for: use an address of that one"));
  }
  if (tuning_.port != 0 && tuning_.port != id_->port_num) {
    return MakeError(MIG_E_DEVICE,
                     absl::StrCat("the ", what_, " connection came up on port ",
                                  id_->port_num, " of device ", name,
                                  ", and port=", tuning_.port,
                                  " was asked for: use an address of that "
                                  "one"));
  }
  return CheckServiceLevel();
}

absl::Status CmQp::CheckServiceLevel() const {
  if (!moves_qp()) return absl::OkStatus();
  if (iwarp()) {
    return MakeError(MIG_E_UNSUPPORTED,
                     absl::StrCat("service-level=", tuning_.service_level,
                                  " was asked for, and iWARP has none: leave "
                                  "it out, and use traffic-class"));
  }
  constexpr int kMostOnEthernet = 7;  // the three bits of IEEE 802.1Q
  ibv_port_attr port = {};
  const int failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryPort(id_->verbs, id_->port_num, &port); });
  if (failure != 0) return Failed("told its kind of link", failure);
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET ||
      tuning_.service_level <= kMostOnEthernet) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_OPTION,
      absl::StrCat("service-level=", tuning_.service_level,
                   " is more than the priorities of Ethernet, 0 to ",
                   kMostOnEthernet, ": choose one of those"));
}

// The address decides which GID it is, but the system which of its versions.
absl::Status CmQp::CheckGid() {
  if (tuning_.gid_index < 0 || qp() == nullptr) return absl::OkStatus();
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  const int failure = verbs::ErrnoOfCall(
      [&] { return verbs_->QueryQp(qp(), &attr, IBV_QP_AV, &init); });
  if (failure != 0) return Failed("asked for its GID", failure);
  const int got = attr.ah_attr.grh.sgid_index;
  if (attr.ah_attr.is_global == 0 || got == tuning_.gid_index) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_DEVICE,
      absl::StrCat("the ", what_, " connection came up with GID index ", got,
                   ", and gid index ", tuning_.gid_index,
                   " was asked for: set default_roce_mode of the device to "
                   "\"RoCE v2\" (configfs rdma_cm), or leave gid out"));
}

absl::Status CmQp::ResolveRoute() {
  state_ = CmState::kResolving;
  const int failure = verbs::ErrnoOfCall(
      [&] { return verbs_->CmResolveRoute(id_, kResolveTimeoutMs); });
  return failure == 0 ? absl::OkStatus() : Failed("given a route", failure);
}

absl::Status CmQp::MakeQp(ibv_pd* pd, ibv_comp_channel* channel,
                          const QpWants& wants) {
  Maker maker(this, pd, channel);
  absl::Status made = ClimbDown(wants, &maker, &grant_);
  if (made.ok()) return made;
  return Annotate(made, absl::StrCat(what_, " connection: "));
}

ibv_qp_cap CmQp::cap() const {
  ibv_qp_cap cap = grant_.granted;
  cap.max_send_wr = std::min(cap.max_send_wr, grant_.asked.max_send_wr);
  cap.max_recv_wr = std::min(cap.max_recv_wr, grant_.asked.max_recv_wr);
  return cap;
}

rdma_conn_param CmQp::Parameters(std::span<const uint8_t> private_data) const {
  rdma_conn_param param = {};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  // Nothing is read, but some iWARP devices set up a connection by a read.
  param.responder_resources = 1;
  param.initiator_depth = 1;
  param.retry_count = tuning_.retry_count;
  param.rnr_retry_count = std::min<uint8_t>(tuning_.rnr_retry, 6);
  if (own_qp_ != nullptr) param.qp_num = own_qp_->qp_num;
  return param;
}

absl::Status CmQp::Connect(std::span<const uint8_t> private_data) {
  rdma_conn_param param = Parameters(private_data);
  const int failure =
      verbs::ErrnoOfCall([&] { return verbs_->CmConnect(id_, &param); });
  if (failure != 0) return Failed("connected", failure);
  state_ = CmState::kConnecting;
  return absl::OkStatus();
}

absl::Status CmQp::Accept(std::span<const uint8_t> private_data) {
  rdma_conn_param param = Parameters(private_data);
  int failure = 0;
  if (own_qp_ != nullptr) {
    failure = MoveToRts(verbs_, id_, own_qp_,
                        static_cast<uint8_t>(tuning_.service_level));
  }
  if (failure == 0) {
    failure = verbs::ErrnoOfCall([&] { return verbs_->CmAccept(id_, &param); });
  }
  if (failure != 0) return Failed("accepted", failure);
  SetRnrTimer();
  state_ = CmState::kConnecting;
  return absl::OkStatus();
}

// The system sets 0, which is 655 ms. iWARP has no such timer.
void CmQp::SetRnrTimer() {
  if (qp() == nullptr || iwarp()) return;
  ibv_qp_attr attr = {};
  attr.min_rnr_timer = tuning_.min_rnr_timer;
  verbs_->ModifyQp(qp(), &attr, IBV_QP_MIN_RNR_TIMER);
}

void CmQp::Reject(absl::string_view reason) {
  reason = reason.substr(0, kMaxReason);
  verbs_->CmReject(id_, reason.data(), static_cast<uint8_t>(reason.size()));
  End(MakeError(MIG_E_PEER_PROTOCOL, reason));
}

void CmQp::Break() {
  if (qp() == nullptr) return;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  verbs_->ModifyQp(qp(), &attr, IBV_QP_STATE);
}

void CmQp::Disconnect() {
  if (std::exchange(disconnected_, true)) return;
  if (state_ == CmState::kResolving) return;
  if (own_qp_ != nullptr) Break();
  verbs_->CmDisconnect(id_);
}

SocketAddress CmQp::peer_address() const {
  return AddressOf(id_->route.addr.dst_addr, id_->route.addr.dst_storage);
}

SocketAddress CmQp::local_address() const {
  return AddressOf(id_->route.addr.src_addr, id_->route.addr.src_storage);
}

bool CmQp::Arm() {
  if (cq_.cq == nullptr || cq_.armed) return false;
  cq_.armed = true;
  ibv_req_notify_cq(cq_.cq, 0);
  return true;
}

void CmQp::End(const absl::Status& why) {
  if (state_ != CmState::kEnded) failure_ = why;
  state_ = CmState::kEnded;
  // librdmacm does so with those that are attached.
  if (own_qp_ != nullptr) Break();
}

// Of a queue pair that this moves, the connecting side.
void CmQp::Establish() {
  int failure = MoveToRts(verbs_, id_, own_qp_,
                          static_cast<uint8_t>(tuning_.service_level));
  if (failure == 0) {
    failure = verbs::ErrnoOfCall([&] { return verbs_->CmEstablish(id_); });
  }
  if (failure != 0) End(Failed("established", failure));
}

void CmQp::OnRejected(const CmEvent& event) {
  std::string text(event.private_data.begin(), event.private_data.end());
  // Padded with zeros by some fabrics.
  text.resize(std::min(text.find('\0'), text.size()));
  if (event.status == kRejectedByPeer || !text.empty()) {
    return End(
        MakeError(MIG_E_PEER_FAILED,
                  absl::StrCat("the peer refused the ", what_, " connection",
                               text.empty() ? "" : ": ", text)));
  }
  End(MakeError(MIG_E_PEER_UNREACHABLE,
                absl::StrCat("the ", what_, " connection was rejected, reason ",
                             event.status, ": is the destination listening?")));
}

void CmQp::OnCmEvent(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      const absl::Status device = CheckDevice();
      if (!device.ok()) return End(device);
      state_ = CmState::kAddressResolved;
      return;
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      state_ = CmState::kRouteResolved;
      return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (state_ != CmState::kConnecting || own_qp_ == nullptr) return;
      Establish();
      [[fallthrough]];
    case RDMA_CM_EVENT_ESTABLISHED: {
      if (state_ != CmState::kConnecting) return;
      if (!event.private_data.empty()) peer_data_ = event.private_data;
      SetRnrTimer();
      const absl::Status gid = CheckGid();
      if (!gid.ok()) return End(gid);
      state_ = CmState::kEstablished;
      return;
    }
    case RDMA_CM_EVENT_REJECTED:
      return OnRejected(event);
    case RDMA_CM_EVENT_DISCONNECTED:
      Break();
      return End(
          MakeError(MIG_E_PEER_LOST,
                    absl::StrCat("the peer ended the ", what_, " connection")));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return End(MakeError(MIG_E_DEVICE_REMOVED,
                           "the RDMA device was removed: probe again, and use "
                           "another one"));
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return;
    default:
      return End(MakeError(
          MIG_E_PEER_UNREACHABLE,
          absl::StrCat("the ", what_, " connection failed (",
                       verbs_->CmEventText(event.type), ", status ",
                       event.status, "): check address, link and route"),
          event.status < 0 ? -event.status : 0));
  }
}

}  // namespace mig::rdma
