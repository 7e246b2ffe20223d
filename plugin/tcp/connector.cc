// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/error.h"
#include "tcp/opener.h"

namespace mig::tcp {
namespace {

class Connector final : public Opener {
 public:
  Connector(Uri uri, OpenerSettings settings, const Host* host, Poller* poller)
      : uri_(std::move(uri)),
        settings_(std::move(settings)),
        host_(host),
        poller_(poller),
        deadline_ns_(host->NowNs() + settings_.connect_timeout_ns) {}

  absl::Status Start();
  void StartAt(std::vector<SocketAddress> addresses) {
    addresses_ = std::move(addresses);
  }
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() const override;
  uint64_t DeadlineNs() const override;
  std::string LocalUri() const override { return ""; }

 private:
  absl::StatusOr<bool> NextAddress(uint64_t now_ns);
  absl::Status OnConnected(NamedStream connected, uint64_t now_ns);
  void AddressFailed(int error);
  absl::Status AllFailed() const;

  const Uri uri_;
  OpenerSettings settings_;
  const Host* const host_;
  Poller* const poller_;
  const uint64_t deadline_ns_;
  std::unique_ptr<Resolver> resolver_;
  bool look_up_in_step_ = false;
  std::vector<SocketAddress> addresses_;
  size_t next_ = 0;
  std::unique_ptr<Dial> dial_;
  uint64_t address_deadline_ns_ = 0;
  std::string failures_;
  int last_errno_ = 0;
  std::unique_ptr<Handshake> handshake_;
};

absl::Status Connector::Start() {
  if (uri_.kind == Uri::Kind::kUnix) {
    addresses_.push_back(UnixAddress(uri_.path));
    return absl::OkStatus();
  }
  if (uri_.kind == Uri::Kind::kFd) {
    auto adopted = settings_.network->Adopt(uri_.fd, settings_.tuning, poller_);
    if (!adopted.ok()) return adopted.status();
    if (adopted->port != nullptr) {
      return MakeError(MIG_E_URI,
                       absl::StrCat("fd ", uri_.fd,
                                    " listens: connect needs a connected one"));
    }
    return OnConnected({std::move(adopted->stream), uri_.text}, host_->NowNs());
  }
  if (uri_.host.empty() || uri_.port == "0") {
    return MakeError(
        MIG_E_URI,
        absl::StrCat("'", uri_.text, "' names no host and port to connect to"));
  }
  auto numeric = Resolve(uri_.host, uri_.port, false, /*numeric_only=*/true);
  if (numeric.ok()) {
    addresses_ = *std::move(numeric);
    return absl::OkStatus();
  }
  // Without threads the look-up waits, so it is progress that does it (rule 3).
  look_up_in_step_ = !settings_.threads;
  if (look_up_in_step_) return absl::OkStatus();
  auto resolver = Resolver::Start(uri_.host, uri_.port, poller_->wake_fd());
  if (!resolver.ok()) return resolver.status();
  resolver_ = *std::move(resolver);
  return absl::OkStatus();
}

absl::StatusOr<bool> Connector::Step(uint64_t now_ns, Opened* opened) {
  if (handshake_ != nullptr) {
    switch (handshake_->Step(now_ns)) {
      case Handshake::Result::kRunning:
        return false;
      case Handshake::Result::kFailed:
        return handshake_->failure();
      case Handshake::Result::kAgreed:
        opened->connection = handshake_->TakeConnection();
        opened->agreement = handshake_->agreement();
        return true;
    }
  }
  if (resolver_ != nullptr) {
    if (resolver_->done()) {
      auto addresses = resolver_->Take();
      resolver_.reset();
      if (!addresses.ok()) return addresses.status();
      addresses_ = *std::move(addresses);
    } else if (now_ns >= deadline_ns_) {
      return MakeError(MIG_E_PEER_UNREACHABLE,
                       absl::StrCat("looking '", uri_.host,
                                    "' up took too long: give a number, or "
                                    "check the name servers"));
    } else {
      return false;
    }
  }
  if (std::exchange(look_up_in_step_, false)) {
    auto addresses = Resolve(uri_.host, uri_.port, false,
                             /*numeric_only=*/false);
    if (!addresses.ok()) return addresses.status();
    addresses_ = *std::move(addresses);
  }
  return NextAddress(now_ns);
}

// Tries one address after the other (C31); false: not connected yet.
absl::StatusOr<bool> Connector::NextAddress(uint64_t now_ns) {
  while (true) {
    if (dial_ != nullptr) {
      const bool done = dial_->Done();
      if (!done && now_ns < address_deadline_ns_) return false;
      const int error = done ? dial_->Result() : ETIMEDOUT;
      if (error == 0) {
        MIG_RETURN_IF_ERROR(OnConnected(dial_->Take(settings_.tuning), now_ns));
        return false;
      }
      dial_.reset();
      AddressFailed(error);
    }
    if (next_ == addresses_.size()) return AllFailed();
    const uint64_t left = deadline_ns_ > now_ns ? deadline_ns_ - now_ns : 0;
    address_deadline_ns_ = now_ns + left / (addresses_.size() - next_);
    int error = 0;
    auto dial =
        settings_.network->Connect(addresses_[next_++], poller_, &error);
    if (!dial.ok()) return dial.status();
    dial_ = *std::move(dial);
    if (dial_ == nullptr) AddressFailed(error);
  }
}

absl::Status Connector::OnConnected(NamedStream connected, uint64_t now_ns) {
  dial_.reset();
  // An unnamed peer is better known by how it was reached.
  if (uri_.kind != Uri::Kind::kTcp) connected.peer = uri_.text;
  auto connection = Connection::Create(
      std::move(connected.stream), std::move(connected.peer), poller_, now_ns);
  if (!connection.ok()) return connection.status();
  MIG_RETURN_IF_ERROR(host_->Random(settings_.hello.nonce.data(), kNonceSize));
  handshake_ = std::make_unique<Handshake>(
      *std::move(connection), settings_.hello, settings_.key,
      /*connecting=*/true, now_ns + settings_.handshake_timeout_ns);
  return absl::OkStatus();
}

void Connector::AddressFailed(int error) {
  last_errno_ = error;
  absl::StrAppend(&failures_, failures_.empty() ? "" : "; ",
                  FormatAddress(addresses_[next_ - 1]), " ", ErrnoText(error));
}

absl::Status Connector::AllFailed() const {
  return MakeError(MIG_E_PEER_UNREACHABLE,
                   absl::StrCat("can't connect to ", uri_.text, " (", failures_,
                                "): is the destination listening there?"),
                   last_errno_);
}

bool Connector::HasWork() const {
  if (handshake_ != nullptr) return handshake_->HasWork();
  if (resolver_ != nullptr) return resolver_->done();
  return dial_ == nullptr || dial_->Done();
}

uint64_t Connector::DeadlineNs() const {
  if (handshake_ != nullptr) return handshake_->DueNs();
  if (dial_ == nullptr) return deadline_ns_;
  return std::min(address_deadline_ns_, dial_->DueNs());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Opener>> StartConnector(const Uri& uri,
                                                       OpenerSettings settings,
                                                       const Host* host,
                                                       Poller* poller) {
  auto connector =
      std::make_unique<Connector>(uri, std::move(settings), host, poller);
  MIG_RETURN_IF_ERROR(connector->Start());
  return connector;
}

std::unique_ptr<Opener> StartConnectorTo(std::vector<SocketAddress> addresses,
                                         const Uri& uri,
                                         OpenerSettings settings,
                                         const Host* host, Poller* poller) {
  auto connector =
      std::make_unique<Connector>(uri, std::move(settings), host, poller);
  connector->StartAt(std::move(addresses));
  return connector;
}

}  // namespace mig::tcp
