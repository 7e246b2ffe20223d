// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/newcomers.h"
#include "rdma/handshake.h"
#include "rdma/opener.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// Peers that were refused and are told why, at a time.
constexpr size_t kMostLeaving = 8;
// Requests that wait for a place in the handshake: ids without a queue pair.
constexpr size_t kMostWaiting = 32;
constexpr int kBacklog = 32;
constexpr int kPollBudget = 32;

// A request that no place in the handshake was free for.
struct Waiting {
  std::unique_ptr<CmQp> qp;
  PrivateData data;
};

// A control connection that is not agreed yet.
struct Pending {
  std::unique_ptr<ControlLink> link;
  std::unique_ptr<Handshake> handshake;
  std::array<uint8_t, kSessionIdSize> session = {};
  uint64_t deadline_ns = 0;
  std::string peer;
};

class Listener final : public Opener, public CmHandler {
 public:
  Listener(OpenerSettings settings, const Io& io, uint64_t* refused)
      : settings_(std::move(settings)), io_(io), refused_(refused) {}
  ~Listener() override;

  absl::Status Start(absl::string_view uri);
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() override;
  uint64_t DeadlineNs() const override;
  std::string LocalUri() const override { return local_uri_; }

  // Connect requests.
  void OnCmEvent(const CmEvent& event) override;

 private:
  absl::Status Bind(absl::string_view uri, const HostPort& at);
  absl::Status BindTo(const SocketAddress& address);
  absl::Status BindToGid(absl::string_view uri, const HostPort& at,
                         const SocketAddress& asked);
  void Refuse(CmQp* qp, const absl::Status& why);
  absl::Status AddControl(std::unique_ptr<CmQp>* qp, const PrivateData& data);
  absl::Status StartHandshake(std::unique_ptr<CmQp>* qp,
                              const PrivateData& data);
  bool MakeRoom(uint64_t now_ns);
  void StepWaiting(uint64_t now_ns);
  absl::Status AddData(std::unique_ptr<CmQp>* qp, const PrivateData& data);
  absl::Status CheckData(const PrivateData& data) const;
  // The peer's failure in the handshake, OK while it runs or has agreed.
  absl::Status StepPending(Pending* pending, uint64_t now_ns);
  absl::Status StepHandshakes(uint64_t now_ns);
  void Leave(std::unique_ptr<Pending> pending, const absl::Status& why,
             uint64_t now_ns);
  void StepLeaving(uint64_t now_ns);
  absl::StatusOr<bool> StepData(uint64_t now_ns);

  OpenerSettings settings_;
  const Io io_;
  uint64_t* const refused_;
  rdma_cm_id* id_ = nullptr;
  std::string local_uri_;
  std::vector<std::unique_ptr<Pending>> pending_;  // oldest first
  std::deque<Waiting> waiting_;
  uint64_t room_ns_ = MIG_NO_DEADLINE;  // when there may be room for those
  std::vector<std::unique_ptr<Pending>> leaving_;  // told why, and then gone
  std::unique_ptr<Pending> agreed_;
  std::vector<std::unique_ptr<CmQp>> data_;  // by index, null: not here yet
  absl::Status over_;  // what ends the session, once those leaving are gone
};

Listener::~Listener() {
  pending_.clear();
  waiting_.clear();
  leaving_.clear();
  if (id_ != nullptr) io_.verbs->CmDestroyId(id_);
}

absl::Status Listener::Start(absl::string_view uri) {
  const auto at = ParseUri(uri);
  if (!at.ok()) return at.status();
  MIG_RETURN_IF_ERROR(Bind(uri, *at));
  SocketAddress address;
  const auto& own = id_->route.addr;
  address.size = own.src_addr.sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                    : sizeof(sockaddr_in);
  std::copy_n(reinterpret_cast<const char*>(&own.src_storage), address.size,
              reinterpret_cast<char*>(&address.storage));
  local_uri_ = FormatUri(address);
  return absl::OkStatus();
}

absl::Status Listener::Bind(absl::string_view uri, const HostPort& at) {
  const bool local = at.host == "localhost";
  const std::string host =
      local ? "127.0.0.1" : (at.host.empty() ? "::" : at.host);
  auto addresses = mig::Resolve(host, at.port, /*passive=*/true,
                                /*numeric_only=*/true);
  if (!addresses.ok()) {
    return MakeError(MIG_E_URI,
                     absl::StrCat("can't listen at '", uri,
                                  "': give a numeric address of this machine, "
                                  "localhost, or none for all"));
  }
  if (settings_.tuning.gid_index >= 0) {
    return BindToGid(uri, at, addresses->front());
  }
  // A machine without IPv6 still has every IPv4 address.
  if (at.host.empty()) {
    auto any4 = mig::Resolve("0.0.0.0", at.port, /*passive=*/true,
                             /*numeric_only=*/true);
    if (any4.ok()) {
      addresses->insert(addresses->end(), any4->begin(), any4->end());
    }
  }
  absl::Status status;
  for (const SocketAddress& address : *addresses) {
    status = BindTo(address);
    if (status.ok()) return status;
    if (id_ != nullptr) io_.verbs->CmDestroyId(std::exchange(id_, nullptr));
  }
  return status;
}

// The address of the GID, with the port of `asked`.
absl::Status Listener::BindToGid(absl::string_view uri, const HostPort& at,
                                 const SocketAddress& asked) {
  SocketAddress address = settings_.tuning.source_address;
  // The port is in the same place in both families.
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port =
      reinterpret_cast<const sockaddr_in*>(&asked.storage)->sin_port;
  const std::string own = FormatUri(address);
  if (at.host.empty() || own == FormatUri(asked)) return BindTo(address);
  return MakeError(MIG_E_URI,
                   absl::StrCat("can't listen at '", uri, "': gid index ",
                                settings_.tuning.gid_index, " means ", own,
                                ": give that one, or no host"));
}

absl::Status Listener::BindTo(const SocketAddress& address) {
  int failure = verbs::ErrnoOfCall([&] {
    return io_.verbs->CmCreateId(io_.events->channel(), &id_,
                                 static_cast<CmHandler*>(this), RDMA_PS_TCP);
  });
  if (failure != 0) {
    id_ = nullptr;
    return verbs::StatusOfErrno("can't make an id to listen with", failure);
  }
  SocketAddress copy = address;
  failure = verbs::ErrnoOfCall([&] {
    return io_.verbs->CmBindAddr(id_,
                                 reinterpret_cast<sockaddr*>(&copy.storage));
  });
  if (failure == 0) {
    failure =
        verbs::ErrnoOfCall([&] { return io_.verbs->CmListen(id_, kBacklog); });
  }
  // A port in use and an address of no RDMA device are told by several errnos
  // (C18).
  if (failure == ENODEV) failure = EADDRNOTAVAIL;
  return verbs::StatusOfErrno(
      absl::StrCat("can't listen at ", FormatUri(address),
                   ": choose another port, port 0 for any free one, or an "
                   "address of an RDMA device of this machine"),
      failure);
}

void Listener::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    over_ = MakeError(MIG_E_DEVICE_REMOVED,
                      "the RDMA device was removed while listening: "
                      "probe again, and use another one");
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  const auto data = DecodePrivateData(event.private_data);
  const bool control = data.ok() && data->kind == QpKind::kControl;
  std::unique_ptr<CmQp> qp = CmQp::Adopt(
      io_.verbs, event.id, settings_.tuning,
      control ? "control" : absl::StrCat("data ", data.ok() ? data->index : 0));
  absl::Status status = data.status();
  if (status.ok()) status = qp->failure();
  if (status.ok()) {
    status = control ? AddControl(&qp, *data) : AddData(&qp, *data);
  }
  // Nobody who comes ends the session: a stranger must not be able to.
  if (!status.ok() && qp != nullptr) Refuse(qp.get(), status);
}

void Listener::Refuse(CmQp* qp, const absl::Status& why) {
  ++*refused_;
  io_.host->Log(MIG_LOG_WARNING, absl::StrCat("refused a connection from ",
                                              FormatUri(qp->peer_address()),
                                              ": ", why.message()));
  qp->Reject(why.message());
}

absl::Status Listener::AddControl(std::unique_ptr<CmQp>* qp,
                                  const PrivateData& data) {
  if (agreed_ != nullptr) {
    return MakeError(MIG_E_PEER_FAILED,
                     "this destination has its source already");
  }
  if (waiting_.empty() && MakeRoom(io_.host->NowNs())) {
    return StartHandshake(qp, data);
  }
  if (waiting_.size() == kMostWaiting) {
    return MakeError(MIG_E_PEER_FAILED,
                     "too many peers are in the handshake: try again in a "
                     "moment");
  }
  waiting_.push_back({std::move(*qp), data});
  return absl::OkStatus();
}

bool Listener::MakeRoom(uint64_t now_ns) {
  room_ns_ = MIG_NO_DEADLINE;
  if (pending_.size() < kMostInHandshake) return true;
  std::vector<Newcomer> newcomers;
  newcomers.reserve(pending_.size());
  for (const auto& pending : pending_) {
    newcomers.push_back({pending->deadline_ns, pending->handshake->spoke()});
  }
  const size_t silent =
      PickSilent(newcomers, settings_.handshake_timeout_ns, now_ns, &room_ns_);
  if (silent == SIZE_MAX) return false;
  ++*refused_;
  io_.host->Log(MIG_LOG_WARNING,
                absl::StrCat("too many peers in the handshake: dropped ",
                             pending_[silent]->peer, ", which said nothing"));
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(silent));
  return true;
}

void Listener::StepWaiting(uint64_t now_ns) {
  std::erase_if(waiting_, [](const Waiting& one) {
    return one.qp->state() == CmState::kEnded;
  });
  while (!waiting_.empty() && MakeRoom(now_ns)) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const absl::Status status = StartHandshake(&next.qp, next.data);
    if (!status.ok() && next.qp != nullptr) Refuse(next.qp.get(), status);
  }
}

absl::Status Listener::StartHandshake(std::unique_ptr<CmQp>* qp,
                                      const PrivateData& data) {
  auto pending = std::make_unique<Pending>();
  pending->peer = FormatUri((*qp)->peer_address());
  pending->session = data.session;
  pending->deadline_ns = io_.host->NowNs() + settings_.handshake_timeout_ns;
  pending->link = std::make_unique<ControlLink>(io_.verbs, std::move(*qp));
  ControlLink& link = *pending->link;
  absl::Status status = link.Make(io_.devices, settings_.control);
  if (status.ok()) {
    status = io_.host->Random(settings_.hello.nonce.data(), kNonceSize);
  }
  if (!status.ok()) {
    Refuse(&link.qp(), status);
    return absl::OkStatus();
  }
  link.channel().SetPeer(data.role == MIG_ROLE_SOURCE, data.slots);
  pending->handshake = std::make_unique<Handshake>(
      &link.channel(), settings_.hello, settings_.key, /*connecting=*/false);
  PrivateData answer;
  answer.role = static_cast<uint8_t>(settings_.hello.role);
  answer.slots = link.receives();
  answer.session = data.session;
  MIG_RETURN_IF_ERROR(link.qp().Accept(EncodePrivateData(answer)));
  // This side is silent until it has a hello, which shows that it may send.
  link.channel().Open();
  pending_.push_back(std::move(pending));
  return absl::OkStatus();
}

// Before any memory is registered for it: who it belongs to, and the proof.
absl::Status Listener::CheckData(const PrivateData& data) const {
  if (agreed_ == nullptr || data.session != agreed_->session) {
    return MakeError(MIG_E_PEER_AUTH, "a data queue pair of no agreed session");
  }
  const auto mac = agreed_->handshake->DataMac(/*connecting=*/true, data.index);
  if (!mac.ok()) return mac.status();
  if (data.count != data_.size() || data.index >= data_.size() ||
      data.role == settings_.hello.role || !SameMac(data.mac, *mac)) {
    return MakeError(MIG_E_PEER_AUTH,
                     "a data queue pair without the right proof");
  }
  if (data_[data.index] != nullptr) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("data queue pair ", data.index, " is connected already"));
  }
  return absl::OkStatus();
}

absl::Status Listener::AddData(std::unique_ptr<CmQp>* qp,
                               const PrivateData& data) {
  MIG_RETURN_IF_ERROR(CheckData(data));
  const auto device = io_.devices->Get((*qp)->context());
  if (!device.ok()) return device.status();
  const auto guest = settings_.guest_device((*qp)->id());
  if (!guest.ok()) return guest.status();
  MIG_RETURN_IF_ERROR(
      (*qp)->MakeQp(guest->guest_pd, (*device)->channel, settings_.data));
  if (settings_.prepare) {
    MIG_RETURN_IF_ERROR(settings_.prepare(data.index, qp->get()));
  }
  PrivateData answer = data;
  answer.role = static_cast<uint8_t>(settings_.hello.role);
  answer.rail = guest->rail;
  const auto mac =
      agreed_->handshake->DataMac(/*connecting=*/false, data.index);
  if (!mac.ok()) return mac.status();
  answer.mac = *mac;
  MIG_RETURN_IF_ERROR((*qp)->Accept(EncodePrivateData(answer)));
  data_[data.index] = std::move(*qp);
  return absl::OkStatus();
}

absl::StatusOr<bool> Listener::Step(uint64_t now_ns, Opened* opened) {
  StepLeaving(now_ns);
  if (!over_.ok())
    return leaving_.empty() ? over_ : absl::StatusOr<bool>(false);
  if (agreed_ == nullptr) MIG_RETURN_IF_ERROR(StepHandshakes(now_ns));
  if (agreed_ == nullptr) return false;
  auto done = StepData(now_ns);
  if (!done.ok() || !*done) return done;
  opened->control = std::move(agreed_->link);
  opened->data = std::move(data_);
  opened->agreement = agreed_->handshake->agreement();
  opened->peer = agreed_->peer;
  return true;
}

absl::Status Listener::StepHandshakes(uint64_t now_ns) {
  for (size_t i = 0; i < pending_.size();) {
    Pending& pending = *pending_[i];
    const absl::Status status = StepPending(&pending, now_ns);
    if (status.ok() && pending.handshake->agreed()) {
      agreed_ = std::move(pending_[i]);
      agreed_->deadline_ns = now_ns + settings_.handshake_timeout_ns;
      agreed_->link->channel().SetMaxMessage(
          agreed_->handshake->agreement().max_message);
      data_.resize(agreed_->handshake->agreement().data_qps);
      pending_.clear();
      waiting_.clear();
      return absl::OkStatus();
    }
    if (status.ok()) {
      ++i;
      continue;
    }
    const bool fatal = pending.handshake->fatal();
    const absl::Status why =
        Annotate(status, absl::StrCat("handshake with ", pending.peer, ": "));
    std::unique_ptr<Pending> leaver = std::move(pending_[i]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    leaver->handshake->Fail(status);
    Leave(std::move(leaver), why, now_ns);
    if (!fatal) continue;
    pending_.clear();
    waiting_.clear();
    over_ = why;
    break;
  }
  StepWaiting(now_ns);
  StepLeaving(now_ns);
  return !over_.ok() && leaving_.empty() ? over_ : absl::OkStatus();
}

// A queue pair that is destroyed at once would take its last word along.
void Listener::Leave(std::unique_ptr<Pending> pending, const absl::Status& why,
                     uint64_t now_ns) {
  ++*refused_;
  io_.host->Log(MIG_LOG_WARNING,
                absl::StrCat("refused a peer: ", why.message()));
  pending->link->channel().StopReading();
  pending->deadline_ns = now_ns + kLastWordNs;
  if (leaving_.size() == kMostLeaving) leaving_.erase(leaving_.begin());
  leaving_.push_back(std::move(pending));
}

void Listener::StepLeaving(uint64_t now_ns) {
  for (size_t i = 0; i < leaving_.size();) {
    Pending& pending = *leaving_[i];
    ControlChannel& channel = pending.link->channel();
    int count = 0;
    channel.Poll(pending.handshake.get(), kPollBudget, &count).IgnoreError();
    if (channel.status().ok() && !channel.Settled() &&
        pending.link->qp().state() != CmState::kEnded &&
        now_ns < pending.deadline_ns) {
      ++i;
      continue;
    }
    leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

absl::Status Listener::StepPending(Pending* pending, uint64_t now_ns) {
  int count = 0;
  ControlLink& link = *pending->link;
  absl::Status status =
      link.channel().Poll(pending->handshake.get(), kPollBudget, &count);
  if (status.ok()) status = link.qp().failure();
  if (status.ok() && !pending->handshake->agreed() &&
      now_ns >= pending->deadline_ns) {
    status = MakeError(MIG_E_PEER_TIMEOUT,
                       "the peer did not finish the handshake in time");
  }
  return status;
}

absl::StatusOr<bool> Listener::StepData(uint64_t now_ns) {
  size_t established = 0;
  for (const auto& qp : data_) {
    if (qp == nullptr) continue;
    MIG_RETURN_IF_ERROR(qp->failure());
    if (qp->state() == CmState::kEstablished) ++established;
  }
  if (established == data_.size()) return true;
  MIG_RETURN_IF_ERROR(agreed_->link->qp().failure());
  if (now_ns < agreed_->deadline_ns) return false;
  return MakeError(MIG_E_PEER_TIMEOUT,
                   absl::StrCat(established, " of ", data_.size(),
                                " data queue pairs connected in time: see the "
                                "source's log"));
}

bool Listener::HasWork() {
  bool work = false;
  // A completion between the last Poll and Arm brings no event.
  for (const auto& pending : pending_) {
    work = pending->link->qp().Arm() || work;
  }
  for (const auto& leaver : leaving_) {
    work = leaver->link->qp().Arm() || work;
  }
  return work;
}

uint64_t Listener::DeadlineNs() const {
  uint64_t deadline = MIG_NO_DEADLINE;
  if (agreed_ != nullptr) deadline = agreed_->deadline_ns;
  if (!waiting_.empty()) deadline = std::min(deadline, room_ns_);
  for (const auto& pending : pending_) {
    deadline = std::min(deadline, pending->deadline_ns);
  }
  for (const auto& leaver : leaving_) {
    deadline = std::min(deadline, leaver->deadline_ns);
  }
  return deadline;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Opener>> StartListener(absl::string_view uri,
                                                      OpenerSettings settings,
                                                      const Io& io,
                                                      uint64_t* refused) {
  auto listener = std::make_unique<Listener>(std::move(settings), io, refused);
  MIG_RETURN_IF_ERROR(listener->Start(uri));
  return listener;
}

}  // namespace mig::rdma
