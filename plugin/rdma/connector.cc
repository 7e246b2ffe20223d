// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/resolver.h"
#include "rdma/handshake.h"
#include "rdma/opener.h"

namespace mig::rdma {
namespace {

// Completions that a step takes at most: the handshake has few.
constexpr int kPollBudget = 32;

class Connector final : public Opener {
 public:
  Connector(std::string uri, HostPort target, OpenerSettings settings,
            const Io& io)
      : uri_(std::move(uri)),
        target_(std::move(target)),
        settings_(std::move(settings)),
        io_(io),
        deadline_ns_(io.host->NowNs() + settings_.connect_timeout_ns) {}

  absl::Status Start();
  void StartAt(std::vector<SocketAddress> addresses) {
    step_deadline_ns_ = deadline_ns_;
    addresses_ = std::move(addresses);
  }
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() override;
  uint64_t DeadlineNs() const override { return step_deadline_ns_; }
  std::string LocalUri() const override { return ""; }

 private:
  // Each true: done, the next stage may go on.
  absl::StatusOr<bool> LookUp(uint64_t now_ns);
  absl::StatusOr<bool> ConnectControl(uint64_t now_ns);
  absl::StatusOr<bool> Agree(uint64_t now_ns);
  absl::StatusOr<bool> ConnectData(uint64_t now_ns);

  absl::StatusOr<bool> StepControl();
  absl::Status StartHandshake(uint64_t now_ns);
  absl::StatusOr<bool> Leave(uint64_t now_ns);
  absl::StatusOr<bool> StepData(uint16_t index);
  absl::Status MakeData(uint16_t index, CmQp* qp);
  absl::StatusOr<bool> TakeAccept(const CmQp& qp, uint16_t index);
  absl::StatusOr<uint16_t> CheckAccept(const CmQp& qp, uint16_t index) const;
  void AddressFailed(const absl::Status& why);
  absl::Status AllFailed() const;

  const std::string uri_;
  const HostPort target_;
  OpenerSettings settings_;
  const Io io_;
  const uint64_t deadline_ns_;
  uint64_t step_deadline_ns_ = 0;
  std::unique_ptr<Resolver> resolver_;
  bool look_up_in_step_ = false;
  bool ready_ = true;  // something is to be done without an event
  std::vector<SocketAddress> addresses_;
  size_t next_ = 0;
  std::string failures_;
  absl::Status last_failure_;
  std::array<uint8_t, kSessionIdSize> session_ = {};
  std::unique_ptr<CmQp> resolving_;
  std::unique_ptr<ControlLink> control_;
  std::unique_ptr<Handshake> handshake_;
  absl::Status leaving_;  // why, while the last word is on its way
  std::vector<std::unique_ptr<CmQp>> data_;
  std::vector<uint16_t> peer_rails_;  // of data_
};

absl::Status Connector::Start() {
  step_deadline_ns_ = deadline_ns_;
  if (target_.host.empty() || target_.port == "0") {
    return MakeError(
        MIG_E_URI,
        absl::StrCat("'", uri_, "' names no host and port to connect to"));
  }
  auto numeric = mig::Resolve(target_.host, target_.port, /*passive=*/false,
                              /*numeric_only=*/true);
  if (numeric.ok()) {
    addresses_ = *std::move(numeric);
    return absl::OkStatus();
  }
  // Without threads the look-up waits, so it is progress that does it (rule 3).
  look_up_in_step_ = !settings_.threads;
  if (look_up_in_step_) return absl::OkStatus();
  auto resolver =
      Resolver::Start(target_.host, target_.port, io_.poller->wake_fd());
  if (!resolver.ok()) return resolver.status();
  resolver_ = *std::move(resolver);
  return absl::OkStatus();
}

absl::StatusOr<bool> Connector::Step(uint64_t now_ns, Opened* opened) {
  ready_ = false;
  for (const auto stage : {&Connector::LookUp, &Connector::ConnectControl,
                           &Connector::Agree, &Connector::ConnectData}) {
    absl::StatusOr<bool> done = (this->*stage)(now_ns);
    if (!done.ok() || !*done) return done;
  }
  opened->control = std::move(control_);
  opened->data = std::move(data_);
  opened->peer_rails = std::move(peer_rails_);
  opened->agreement = handshake_->agreement();
  opened->peer = FormatUri(addresses_[next_ - 1]);
  return true;
}

absl::StatusOr<bool> Connector::LookUp(uint64_t now_ns) {
  if (resolver_ != nullptr && !resolver_->done()) {
    if (now_ns < deadline_ns_) return false;
    return MakeError(MIG_E_PEER_UNREACHABLE,
                     absl::StrCat("looking '", target_.host,
                                  "' up took too long: give a number, or check "
                                  "the name servers"));
  }
  if (resolver_ == nullptr && !look_up_in_step_) return true;
  auto addresses = resolver_ != nullptr
                       ? resolver_->Take()
                       : mig::Resolve(target_.host, target_.port,
                                      /*passive=*/false,
                                      /*numeric_only=*/false);
  resolver_.reset();
  look_up_in_step_ = false;
  if (!addresses.ok()) return addresses.status();
  addresses_ = *std::move(addresses);
  return true;
}

// Tries one address after the other (C31).
absl::StatusOr<bool> Connector::ConnectControl(uint64_t now_ns) {
  while (handshake_ == nullptr) {
    if (resolving_ == nullptr && control_ == nullptr) {
      if (next_ == addresses_.size()) return AllFailed();
      const uint64_t left = deadline_ns_ > now_ns ? deadline_ns_ - now_ns : 0;
      step_deadline_ns_ = now_ns + left / (addresses_.size() - next_);
      auto qp = CmQp::Resolve(io_.verbs, io_.events, settings_.tuning,
                              "control", addresses_[next_++]);
      if (!qp.ok()) {
        AddressFailed(qp.status());
        continue;
      }
      resolving_ = *std::move(qp);
    }
    absl::StatusOr<bool> done = StepControl();
    if (done.ok() && !*done && now_ns >= step_deadline_ns_) {
      done = MakeError(MIG_E_PEER_TIMEOUT, "no answer in time");
    }
    if (done.ok() && !*done) return false;
    absl::Status status = done.status();
    if (status.ok()) status = StartHandshake(now_ns);
    if (!status.ok()) AddressFailed(status);
  }
  return true;
}

// False: nothing to do before the next event.
absl::StatusOr<bool> Connector::StepControl() {
  CmQp& qp = resolving_ != nullptr ? *resolving_ : control_->qp();
  switch (qp.state()) {
    case CmState::kAddressResolved:
      MIG_RETURN_IF_ERROR(qp.ResolveRoute());
      return false;
    case CmState::kRouteResolved: {
      control_ =
          std::make_unique<ControlLink>(io_.verbs, std::move(resolving_));
      MIG_RETURN_IF_ERROR(control_->Make(io_.devices, settings_.control));
      MIG_RETURN_IF_ERROR(io_.host->Random(session_.data(), session_.size()));
      PrivateData data;
      data.role = static_cast<uint8_t>(settings_.hello.role);
      data.slots = control_->receives();
      data.session = session_;
      MIG_RETURN_IF_ERROR(control_->qp().Connect(EncodePrivateData(data)));
      return false;
    }
    case CmState::kEstablished:
      return true;
    case CmState::kEnded:
      return qp.failure();
    default:
      return false;
  }
}

absl::Status Connector::StartHandshake(uint64_t now_ns) {
  const auto data = DecodePrivateData(control_->qp().peer_data());
  if (!data.ok()) return data.status();
  if (data->kind != QpKind::kControl || data->session != session_) {
    return MakeError(MIG_E_PEER_PROTOCOL,
                     "the peer accepted with what belongs to another session");
  }
  MIG_RETURN_IF_ERROR(
      io_.host->Random(settings_.hello.nonce.data(), kNonceSize));
  control_->channel().SetPeer(data->role == MIG_ROLE_SOURCE, data->slots);
  control_->channel().Open();
  handshake_ = std::make_unique<Handshake>(&control_->channel(),
                                           settings_.hello, settings_.key,
                                           /*connecting=*/true);
  handshake_->Start();
  step_deadline_ns_ = now_ns + settings_.handshake_timeout_ns;
  ready_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Connector::Agree(uint64_t now_ns) {
  if (!leaving_.ok()) return Leave(now_ns);
  // Afterwards frames wait for the session in the completion queue.
  if (handshake_->agreed()) return true;
  int count = 0;
  absl::Status status =
      control_->channel().Poll(handshake_.get(), kPollBudget, &count);
  if (status.ok() && handshake_->agreed()) return true;
  if (status.ok()) status = control_->qp().failure();
  if (status.ok() && now_ns >= step_deadline_ns_) {
    status = MakeError(MIG_E_PEER_TIMEOUT,
                       "the peer did not finish the handshake in time: is it a "
                       "migtransport destination?");
  }
  if (status.ok()) return false;
  leaving_ = Annotate(
      status,
      absl::StrCat("handshake with ", FormatUri(addresses_[next_ - 1]), ": "));
  handshake_->Fail(status);
  control_->channel().StopReading();
  step_deadline_ns_ = now_ns + kLastWordNs;
  return Leave(now_ns);
}

absl::StatusOr<bool> Connector::Leave(uint64_t now_ns) {
  int count = 0;
  control_->channel().Poll(handshake_.get(), kPollBudget, &count).IgnoreError();
  const bool over = !control_->channel().status().ok() ||
                    control_->channel().Settled() ||
                    control_->qp().state() == CmState::kEnded;
  if (over || now_ns >= step_deadline_ns_) return leaving_;
  return false;
}

absl::StatusOr<bool> Connector::ConnectData(uint64_t now_ns) {
  control_->channel().SetMaxMessage(handshake_->agreement().max_message);
  const auto count = static_cast<uint16_t>(handshake_->agreement().data_qps);
  while (data_.size() < count) {
    auto qp = CmQp::Resolve(io_.verbs, io_.events, settings_.tuning,
                            absl::StrCat("data ", data_.size()),
                            addresses_[next_ - 1]);
    if (!qp.ok()) return qp.status();
    data_.push_back(*std::move(qp));
    peer_rails_.push_back(0);
  }
  bool all = true;
  for (uint16_t index = 0; index < count; ++index) {
    const auto done = StepData(index);
    if (!done.ok()) return done.status();
    all = all && *done;
  }
  if (all) return true;
  MIG_RETURN_IF_ERROR(control_->qp().failure());
  if (now_ns < step_deadline_ns_) return false;
  return MakeError(
      MIG_E_PEER_TIMEOUT,
      absl::StrCat("the ", count, " data queue pairs did not connect in time"));
}

absl::StatusOr<bool> Connector::StepData(uint16_t index) {
  CmQp& qp = *data_[index];
  switch (qp.state()) {
    case CmState::kAddressResolved:
      MIG_RETURN_IF_ERROR(qp.ResolveRoute());
      return false;
    case CmState::kRouteResolved:
      MIG_RETURN_IF_ERROR(MakeData(index, &qp));
      return false;
    case CmState::kEstablished:
      return TakeAccept(qp, index);
    case CmState::kEnded:
      return qp.failure();
    default:
      return false;
  }
}

absl::Status Connector::MakeData(uint16_t index, CmQp* qp) {
  const auto device = io_.devices->Get(qp->context());
  if (!device.ok()) return device.status();
  const auto guest = settings_.guest_device(qp->id());
  if (!guest.ok()) return guest.status();
  MIG_RETURN_IF_ERROR(
      qp->MakeQp(guest->guest_pd, (*device)->channel, settings_.data));
  if (settings_.prepare) MIG_RETURN_IF_ERROR(settings_.prepare(index, qp));
  PrivateData data;
  data.kind = QpKind::kData;
  data.role = static_cast<uint8_t>(settings_.hello.role);
  data.index = index;
  data.count = static_cast<uint16_t>(data_.size());
  data.session = session_;
  const auto mac = handshake_->DataMac(/*connecting=*/true, index);
  if (!mac.ok()) return mac.status();
  data.mac = *mac;
  return qp->Connect(EncodePrivateData(data));
}

absl::StatusOr<bool> Connector::TakeAccept(const CmQp& qp, uint16_t index) {
  const auto rail = CheckAccept(qp, index);
  if (!rail.ok()) return rail.status();
  peer_rails_[index] = *rail;
  return true;
}

// What answers may be another than who agreed: it gets no guest memory.
absl::StatusOr<uint16_t> Connector::CheckAccept(const CmQp& qp,
                                                uint16_t index) const {
  const auto data = DecodePrivateData(qp.peer_data());
  if (!data.ok()) return data.status();
  const auto mac = handshake_->DataMac(/*connecting=*/false, index);
  if (!mac.ok()) return mac.status();
  if (data->kind == QpKind::kData && data->index == index &&
      data->session == session_ && SameMac(data->mac, *mac)) {
    return data->rail;
  }
  return MakeError(MIG_E_PEER_AUTH,
                   absl::StrCat("data queue pair ", index,
                                " was accepted without the right proof: "
                                "another process answers at that address"));
}

void Connector::AddressFailed(const absl::Status& why) {
  resolving_.reset();
  control_.reset();
  last_failure_ = why;
  absl::StrAppend(&failures_, failures_.empty() ? "" : "; ",
                  FormatUri(addresses_[next_ - 1]), " ", why.message());
}

// What the last one says decides the code: a device that is missing is no
// unreachable peer.
absl::Status Connector::AllFailed() const {
  const int32_t code = ErrorCode(last_failure_);
  const bool of_peer = code / 100 == MIG_E_PEER_UNREACHABLE / 100;
  return MakeError(
      of_peer ? MIG_E_PEER_UNREACHABLE : code,
      absl::StrCat("can't connect to ", uri_, " (", failures_, ")",
                   of_peer ? ": is the destination listening there?" : ""),
      ErrorErrno(last_failure_));
}

bool Connector::HasWork() {
  if (resolver_ != nullptr) return resolver_->done();
  if (ready_ || look_up_in_step_) return true;
  if (resolving_ == nullptr && control_ == nullptr) return true;
  // A completion between the last Poll and Arm brings no event.
  return handshake_ != nullptr && !handshake_->agreed() && control_->qp().Arm();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Opener>> StartConnector(absl::string_view uri,
                                                       OpenerSettings settings,
                                                       const Io& io) {
  auto target = ParseUri(uri);
  if (!target.ok()) return target.status();
  auto connector = std::make_unique<Connector>(
      std::string(uri), *std::move(target), std::move(settings), io);
  MIG_RETURN_IF_ERROR(connector->Start());
  return connector;
}

std::unique_ptr<Opener> StartConnectorTo(std::vector<SocketAddress> addresses,
                                         absl::string_view uri,
                                         OpenerSettings settings,
                                         const Io& io) {
  auto connector = std::make_unique<Connector>(std::string(uri), HostPort(),
                                               std::move(settings), io);
  connector->StartAt(std::move(addresses));
  return connector;
}

}  // namespace mig::rdma
