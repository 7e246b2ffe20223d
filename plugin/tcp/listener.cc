// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/newcomers.h"
#include "tcp/opener.h"

namespace mig::tcp {
namespace {

// A step takes no more, so that a flood can't hold up a call.
constexpr int kMostAccepts = 32;
// Without a free fd the backlog waits; looking again at once would spin.
constexpr uint64_t kAcceptRetryNs = 100'000'000;

class Listener final : public Opener {
 public:
  Listener(OpenerSettings settings, const Host* host, Poller* poller,
           uint64_t* refused)
      : settings_(std::move(settings)),
        host_(host),
        poller_(poller),
        refused_(refused) {}

  absl::Status Start(const Uri& uri);
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() const override;
  uint64_t DeadlineNs() const override;
  std::string LocalUri() const override { return local_uri_; }

 private:
  absl::Status Bind(const Uri& uri);
  void AcceptAll(uint64_t now_ns);
  bool MakeRoom(uint64_t now_ns);
  absl::Status AddPeer(NamedStream accepted, uint64_t now_ns);
  void Refused(const Handshake& handshake);

  OpenerSettings settings_;
  const Host* const host_;
  Poller* const poller_;
  uint64_t* const refused_;
  std::unique_ptr<Port> port_;
  uint64_t accept_retry_ns_ = MIG_NO_DEADLINE;
  // No room for who waits in the backlog, before that time.
  bool full_ = false;
  uint64_t room_ns_ = MIG_NO_DEADLINE;
  std::string local_uri_;
  std::vector<std::unique_ptr<Handshake>> pending_;  // oldest first
};

absl::Status Listener::Start(const Uri& uri) {
  if (uri.kind != Uri::Kind::kFd) return Bind(uri);
  auto adopted = settings_.network->Adopt(uri.fd, settings_.tuning, poller_);
  if (!adopted.ok()) return adopted.status();
  local_uri_ = uri.text;
  port_ = std::move(adopted->port);
  if (port_ == nullptr) {
    return AddPeer({std::move(adopted->stream), uri.text}, host_->NowNs());
  }
  // What a peer can use, unlike a number of this process.
  local_uri_ = port_->Uri();
  return absl::OkStatus();
}

absl::Status Listener::Bind(const Uri& uri) {
  std::vector<SocketAddress> addresses;
  if (uri.kind == Uri::Kind::kUnix) {
    addresses.push_back(UnixAddress(uri.path));
  } else {
    const bool local = uri.host == "localhost";
    const std::string host =
        local ? "127.0.0.1" : (uri.host.empty() ? "::" : uri.host);
    auto numeric = Resolve(host, uri.port, true, /*numeric_only=*/true);
    if (!numeric.ok()) {
      return MakeError(MIG_E_URI,
                       absl::StrCat("can't listen at '", uri.text,
                                    "': give a numeric address of this "
                                    "machine, localhost, or none for all"));
    }
    addresses = *std::move(numeric);
    // A machine without IPv6 still has every IPv4 address.
    if (uri.host.empty()) {
      auto any4 = Resolve("0.0.0.0", uri.port, true, /*numeric_only=*/true);
      if (any4.ok())
        addresses.insert(addresses.end(), any4->begin(), any4->end());
    }
  }
  absl::StatusOr<std::unique_ptr<Port>> port = nullptr;
  for (const SocketAddress& address : addresses) {
    port = settings_.network->Listen(address, poller_);
    if (port.ok()) break;
  }
  if (!port.ok()) return port.status();
  port_ = *std::move(port);
  local_uri_ = uri.kind == Uri::Kind::kUnix ? uri.text : port_->Uri();
  return absl::OkStatus();
}

absl::StatusOr<bool> Listener::Step(uint64_t now_ns, Opened* opened) {
  if (port_ != nullptr) AcceptAll(now_ns);
  for (size_t i = 0; i < pending_.size();) {
    Handshake& handshake = *pending_[i];
    switch (handshake.Step(now_ns)) {
      case Handshake::Result::kRunning:
        ++i;
        continue;
      case Handshake::Result::kAgreed:
        opened->connection = handshake.TakeConnection();
        opened->agreement = handshake.agreement();
        return true;
      case Handshake::Result::kFailed:
        Refused(handshake);
        if (handshake.fatal() || port_ == nullptr) return handshake.failure();
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        full_ = false;
        continue;
    }
  }
  return false;
}

void Listener::AcceptAll(uint64_t now_ns) {
  if (now_ns >= accept_retry_ns_) {
    accept_retry_ns_ = MIG_NO_DEADLINE;
    port_->LookAgain();
  }
  for (int i = 0; i < kMostAccepts && port_->Waiting(); ++i) {
    if (!MakeRoom(now_ns)) return;
    auto accepted = port_->Accept(settings_.tuning);
    if (!accepted.ok()) {
      // Others may free fds; the connection waits in the backlog.
      host_->Log(MIG_LOG_WARNING, accepted.status().message());
      accept_retry_ns_ = now_ns + kAcceptRetryNs;
      return;
    }
    if (accepted->stream == nullptr) return;
    const std::string peer = accepted->peer;
    const absl::Status added = AddPeer(*std::move(accepted), now_ns);
    // That one can't be served does not end the session: a stranger's coming
    // must not.
    if (!added.ok()) {
      ++*refused_;
      host_->Log(MIG_LOG_WARNING, absl::StrCat("could not serve peer ", peer,
                                               ": ", added.message()));
    }
  }
}

// False: whoever comes waits in the backlog.
bool Listener::MakeRoom(uint64_t now_ns) {
  full_ = false;
  room_ns_ = MIG_NO_DEADLINE;
  if (pending_.size() < kMostInHandshake) return true;
  std::vector<Newcomer> newcomers;
  newcomers.reserve(pending_.size());
  for (const auto& handshake : pending_) {
    newcomers.push_back({handshake->deadline_ns(), handshake->spoke()});
  }
  const size_t silent =
      PickSilent(newcomers, settings_.handshake_timeout_ns, now_ns, &room_ns_);
  full_ = silent == SIZE_MAX;
  if (full_) return false;
  host_->Log(MIG_LOG_WARNING,
             absl::StrCat("too many peers in the handshake: dropped ",
                          pending_[silent]->peer(), ", which said nothing"));
  ++*refused_;
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(silent));
  return true;
}

absl::Status Listener::AddPeer(NamedStream accepted, uint64_t now_ns) {
  auto connection = Connection::Create(
      std::move(accepted.stream), std::move(accepted.peer), poller_, now_ns);
  if (!connection.ok()) return connection.status();
  MIG_RETURN_IF_ERROR(host_->Random(settings_.hello.nonce.data(), kNonceSize));
  pending_.push_back(std::make_unique<Handshake>(
      *std::move(connection), settings_.hello, settings_.key,
      /*connecting=*/false, now_ns + settings_.handshake_timeout_ns));
  return absl::OkStatus();
}

void Listener::Refused(const Handshake& handshake) {
  ++*refused_;
  host_->Log(MIG_LOG_WARNING,
             absl::StrCat("refused a peer: ", handshake.failure().message()));
}

bool Listener::HasWork() const {
  if (port_ != nullptr && !full_ && port_->Waiting()) return true;
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const auto& pending) { return pending->HasWork(); });
}

uint64_t Listener::DeadlineNs() const {
  uint64_t deadline = accept_retry_ns_;
  if (full_) {
    deadline = std::min(deadline, room_ns_);
  } else if (port_ != nullptr) {
    deadline = std::min(deadline, port_->DueNs());
  }
  for (const auto& pending : pending_) {
    deadline = std::min(deadline, pending->DueNs());
  }
  return deadline;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Opener>> StartListener(const Uri& uri,
                                                      OpenerSettings settings,
                                                      const Host* host,
                                                      Poller* poller,
                                                      uint64_t* refused) {
  auto listener =
      std::make_unique<Listener>(std::move(settings), host, poller, refused);
  MIG_RETURN_IF_ERROR(listener->Start(uri));
  return listener;
}

}  // namespace mig::tcp
