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
  ~Connector() override { Abandon(); }

  absl::Status Start();
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() const override;
  uint64_t DeadlineNs() const override;
  std::string LocalUri() const override { return ""; }

 private:
  absl::StatusOr<bool> NextAddress(uint64_t now_ns);
  absl::Status OnConnected(uint64_t now_ns);
  void AddressFailed(int error);
  void Abandon();
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
  UniqueFd connecting_;
  Readiness readiness_;
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
    bool listening = false;
    auto fd = AdoptFd(uri_.fd, &listening);
    if (!fd.ok()) return fd.status();
    if (listening) {
      return MakeError(MIG_E_URI,
                       absl::StrCat("fd ", uri_.fd,
                                    " listens: connect needs a connected one"));
    }
    connecting_ = *std::move(fd);
    return OnConnected(host_->NowNs());
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
    if (connecting_.valid()) {
      if (!readiness_.writable && now_ns < address_deadline_ns_) return false;
      const int error =
          readiness_.writable ? ConnectResult(connecting_.get()) : ETIMEDOUT;
      if (error == 0) {
        poller_->Unwatch(connecting_.get());
        MIG_RETURN_IF_ERROR(OnConnected(now_ns));
        return false;
      }
      Abandon();
      AddressFailed(error);
    }
    if (next_ == addresses_.size()) return AllFailed();
    const uint64_t left = deadline_ns_ > now_ns ? deadline_ns_ - now_ns : 0;
    address_deadline_ns_ = now_ns + left / (addresses_.size() - next_);
    int error = 0;
    auto fd = StartConnect(addresses_[next_++], &error);
    if (!fd.ok()) return fd.status();
    // EAGAIN: a unix socket whose queue is full.
    if (error != 0 && error != EINPROGRESS) {
      AddressFailed(error);
      continue;
    }
    connecting_ = *std::move(fd);
    readiness_ = Readiness();
    MIG_RETURN_IF_ERROR(poller_->Watch(connecting_.get(), &readiness_));
    if (error == 0) readiness_.writable = true;
  }
}

absl::Status Connector::OnConnected(uint64_t now_ns) {
  Tune(connecting_.get(), settings_.tuning);
  std::string peer = PeerName(connecting_.get());
  // An unnamed peer is better known by how it was reached.
  if (uri_.kind != Uri::Kind::kTcp) peer = uri_.text;
  auto connection =
      Connection::Create(std::make_unique<SocketStream>(std::move(connecting_)),
                         std::move(peer), poller_, now_ns);
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

void Connector::Abandon() {
  if (!connecting_.valid()) return;
  poller_->Unwatch(connecting_.get());
  connecting_.Reset();
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
  return !connecting_.valid() || readiness_.writable;
}

uint64_t Connector::DeadlineNs() const {
  if (handshake_ != nullptr) return handshake_->deadline_ns();
  return connecting_.valid() ? address_deadline_ns_ : deadline_ns_;
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

}  // namespace mig::tcp
