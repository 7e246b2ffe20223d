// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

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
  ~Listener() override;

  absl::Status Start(const Uri& uri);
  absl::StatusOr<bool> Step(uint64_t now_ns, Opened* opened) override;
  bool HasWork() const override;
  uint64_t DeadlineNs() const override;
  std::string LocalUri() const override { return local_uri_; }

 private:
  absl::Status Bind(const Uri& uri);
  void AcceptAll(uint64_t now_ns);
  bool MakeRoom(uint64_t now_ns);
  absl::Status AddPeer(UniqueFd fd, std::string peer, uint64_t now_ns);
  void Refused(const Handshake& handshake);

  OpenerSettings settings_;
  const Host* const host_;
  Poller* const poller_;
  uint64_t* const refused_;
  UniqueFd listener_;
  Readiness readiness_{true, false};
  uint64_t accept_retry_ns_ = MIG_NO_DEADLINE;
  // No room for who waits in the backlog, before that time.
  bool full_ = false;
  uint64_t room_ns_ = MIG_NO_DEADLINE;
  std::string unlink_path_;
  std::string local_uri_;
  std::vector<std::unique_ptr<Handshake>> pending_;  // oldest first
};

Listener::~Listener() {
  pending_.clear();
  if (listener_.valid()) poller_->Unwatch(listener_.get());
  if (!unlink_path_.empty()) unlink(unlink_path_.c_str());
}

absl::Status Listener::Start(const Uri& uri) {
  if (uri.kind == Uri::Kind::kFd) {
    bool listening = false;
    auto fd = AdoptFd(uri.fd, &listening);
    if (!fd.ok()) return fd.status();
    local_uri_ = uri.text;
    if (!listening) return AddPeer(*std::move(fd), uri.text, host_->NowNs());
    listener_ = *std::move(fd);
    // What a peer can use, unlike a number of this process.
    local_uri_ = FormatAddress(LocalAddress(listener_.get()));
  } else {
    MIG_RETURN_IF_ERROR(Bind(uri));
  }
  return poller_->Watch(listener_.get(), &readiness_);
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
  absl::StatusOr<UniqueFd> fd = UniqueFd();
  for (const SocketAddress& address : addresses) {
    fd = Listen(address);
    if (fd.ok()) break;
  }
  if (!fd.ok()) return fd.status();
  listener_ = *std::move(fd);
  local_uri_ = FormatAddress(LocalAddress(listener_.get()));
  if (uri.kind == Uri::Kind::kUnix) {
    unlink_path_ = uri.path;
    local_uri_ = uri.text;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Listener::Step(uint64_t now_ns, Opened* opened) {
  if (listener_.valid()) AcceptAll(now_ns);
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
        if (handshake.fatal() || !listener_.valid()) return handshake.failure();
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
    readiness_.readable = true;
  }
  for (int i = 0; i < kMostAccepts && readiness_.readable; ++i) {
    if (!MakeRoom(now_ns)) return;
    std::string peer;
    auto fd = Accept(listener_.get(), &peer);
    if (!fd.ok()) {
      // Others may free fds; the connection waits in the backlog.
      host_->Log(MIG_LOG_WARNING, fd.status().message());
      readiness_.readable = false;
      accept_retry_ns_ = now_ns + kAcceptRetryNs;
      return;
    }
    if (!fd->valid()) {
      readiness_.readable = false;
      return;
    }
    const absl::Status added = AddPeer(*std::move(fd), peer, now_ns);
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

absl::Status Listener::AddPeer(UniqueFd fd, std::string peer, uint64_t now_ns) {
  Tune(fd.get(), settings_.tuning);
  auto connection =
      Connection::Create(std::make_unique<SocketStream>(std::move(fd)),
                         std::move(peer), poller_, now_ns);
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
  if (listener_.valid() && readiness_.readable && !full_) return true;
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const auto& pending) { return pending->HasWork(); });
}

uint64_t Listener::DeadlineNs() const {
  uint64_t deadline = accept_retry_ns_;
  if (full_) deadline = std::min(deadline, room_ns_);
  for (const auto& pending : pending_) {
    deadline = std::min(deadline, pending->deadline_ns());
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
