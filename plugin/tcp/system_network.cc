// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/error.h"
#include "tcp/network.h"

namespace mig::tcp {
namespace {

class SystemDial final : public Dial {
 public:
  SystemDial(UniqueFd fd, Poller* poller)
      : fd_(std::move(fd)), poller_(poller) {}
  ~SystemDial() override {
    if (fd_.valid()) poller_->Unwatch(fd_.get());
  }
  absl::Status Watch(bool connected) {
    MIG_RETURN_IF_ERROR(poller_->Watch(fd_.get(), &readiness_));
    if (connected) readiness_.writable = true;
    return absl::OkStatus();
  }
  bool Done() const override { return readiness_.writable; }
  int Result() override { return ConnectResult(fd_.get()); }
  NamedStream Take(const SocketTuning& tuning) override {
    poller_->Unwatch(fd_.get());
    Tune(fd_.get(), tuning);
    std::string peer = PeerName(fd_.get());
    return {std::make_unique<SocketStream>(std::move(fd_)), std::move(peer)};
  }
  uint64_t DueNs() const override { return MIG_NO_DEADLINE; }

 private:
  UniqueFd fd_;
  Poller* const poller_;
  Readiness readiness_;
};

class SystemPort final : public Port {
 public:
  SystemPort(UniqueFd fd, Poller* poller, std::string unlink_path)
      : fd_(std::move(fd)),
        poller_(poller),
        unlink_path_(std::move(unlink_path)) {}
  ~SystemPort() override {
    poller_->Unwatch(fd_.get());
    if (!unlink_path_.empty()) unlink(unlink_path_.c_str());
  }
  absl::Status Watch() { return poller_->Watch(fd_.get(), &readiness_); }
  bool Waiting() const override { return readiness_.readable; }
  absl::StatusOr<NamedStream> Accept(const SocketTuning& tuning) override {
    NamedStream accepted;
    auto fd = tcp::Accept(fd_.get(), &accepted.peer);
    if (!fd.ok() || !fd->valid()) readiness_.readable = false;
    if (!fd.ok()) return fd.status();
    if (!fd->valid()) return accepted;
    Tune(fd->get(), tuning);
    accepted.stream = std::make_unique<SocketStream>(*std::move(fd));
    return accepted;
  }
  void LookAgain() override { readiness_.readable = true; }
  uint64_t DueNs() const override { return MIG_NO_DEADLINE; }
  std::string Uri() const override {
    return FormatAddress(LocalAddress(fd_.get()));
  }

 private:
  UniqueFd fd_;
  Poller* const poller_;
  const std::string unlink_path_;
  Readiness readiness_{true, false};
};

class Sockets final : public Network {
 public:
  absl::StatusOr<std::unique_ptr<Dial>> Connect(const SocketAddress& address,
                                                Poller* poller,
                                                int* error) override {
    auto fd = StartConnect(address, error);
    if (!fd.ok()) return fd.status();
    // EAGAIN: a unix socket whose queue is full.
    if (*error != 0 && *error != EINPROGRESS) return nullptr;
    auto dial = std::make_unique<SystemDial>(*std::move(fd), poller);
    MIG_RETURN_IF_ERROR(dial->Watch(/*connected=*/*error == 0));
    return dial;
  }

  absl::StatusOr<std::unique_ptr<Port>> Listen(const SocketAddress& address,
                                               Poller* poller) override {
    auto fd = tcp::Listen(address);
    if (!fd.ok()) return fd.status();
    std::string path;
    if (address.storage.ss_family == AF_UNIX) {
      path = reinterpret_cast<const struct sockaddr_un*>(&address.storage)
                 ->sun_path;
    }
    return Watched(*std::move(fd), poller, std::move(path));
  }

  absl::StatusOr<Adopted> Adopt(int fd, const SocketTuning& tuning,
                                Poller* poller) override {
    Adopted adopted;
    bool listening = false;
    auto copy = AdoptFd(fd, &listening);
    if (!copy.ok()) return copy.status();
    if (listening) {
      auto port = Watched(*std::move(copy), poller, "");
      if (!port.ok()) return port.status();
      adopted.port = *std::move(port);
      return adopted;
    }
    Tune(copy->get(), tuning);
    adopted.stream = std::make_unique<SocketStream>(*std::move(copy));
    return adopted;
  }

 private:
  static absl::StatusOr<std::unique_ptr<Port>> Watched(UniqueFd fd,
                                                       Poller* poller,
                                                       std::string path) {
    auto port =
        std::make_unique<SystemPort>(std::move(fd), poller, std::move(path));
    MIG_RETURN_IF_ERROR(port->Watch());
    return port;
  }
};

}  // namespace

std::shared_ptr<Network> SystemNetwork() {
  static const auto* const network =
      new std::shared_ptr<Network>(std::make_shared<Sockets>());
  return *network;
}

}  // namespace mig::tcp
