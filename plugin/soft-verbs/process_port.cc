// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/process_port.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"

namespace mig::soft {
namespace {

// More than this without a request are strangers.
constexpr size_t kMaxPeers = 1024;
constexpr int kBacklog = 128;

OwnedFd NewSocket() {
  return OwnedFd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// An abstract name: it needs no directory, and goes with the process.
socklen_t MakeName(const std::string& address, uint16_t port, sockaddr_un* to) {
  const std::string name = ListenerName(address, port);
  *to = {};
  to->sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof(to->sun_path) - 1);
  std::memcpy(to->sun_path + 1, name.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

int ConnectTo(int fd, const std::string& address, uint16_t port) {
  sockaddr_un name = {};
  const socklen_t size = MakeName(address, port, &name);
  return connect(fd, reinterpret_cast<sockaddr*>(&name), size) == 0 ? 0 : errno;
}

void SendReject(ProcessLink* link) {
  link->Send(nullptr, RejectFor(link->refusal()));
}

}  // namespace

ProcessPort::ProcessPort(Node* node)
    : node_(node), poller_(epoll_create1(EPOLL_CLOEXEC)) {}

ProcessPort::~ProcessPort() = default;

bool ProcessPort::Watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(poller_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

int ProcessPort::Bind(const CmId* id, const std::string& address,
                      uint16_t port) {
  OwnedFd socket = NewSocket();
  if (!socket.valid()) return errno;
  sockaddr_un name = {};
  const socklen_t size = MakeName(address, port, &name);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) {
    return errno;
  }
  listeners_[id->number] = std::move(socket);
  return 0;
}

int ProcessPort::Listen(const CmId* id) {
  const auto found = listeners_.find(id->number);
  if (found == listeners_.end()) return EINVAL;
  const int fd = found->second.get();
  return listen(fd, kBacklog) == 0 && Watch(fd) ? 0 : errno;
}

int ProcessPort::Connect(CmId* id, const CmMessage& request,
                         std::string* refusal) {
  const uint16_t port = AddressPort(request.destination);
  const std::string address = AddressText(request.destination);
  OwnedFd socket = NewSocket();
  if (!socket.valid()) return errno;
  int error = ConnectTo(socket.get(), address, port);
  if (error != 0) error = ConnectTo(socket.get(), "", port);
  if (error != 0) return error;
  const int fd = socket.get();
  auto link = ProcessLink::Make(std::move(socket), node_->host);
  if (link == nullptr) return EACCES;
  if (!link->refusal().empty()) {
    *refusal = link->refusal();
    return EACCES;
  }
  if (!Watch(fd)) return errno;
  id->wire = link;
  peers_[fd] = {link, id->number, 0};
  SendToPeer(id, request);
  return 0;
}

void ProcessPort::Forget(const CmId* id) {
  listeners_.erase(id->number);
  for (auto at = peers_.begin(); at != peers_.end();) {
    const bool of_id =
        at->second.id == id->number ||
        (at->second.id == 0 && at->second.listener == id->number);
    const int fd = at->first;
    ++at;
    if (of_id) Drop(fd);
  }
}

void ProcessPort::Drop(int fd) {
  epoll_ctl(poller_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return;
  // A queue pair may hold the link longer; what was sent is still delivered.
  shutdown(fd, SHUT_RDWR);
  found->second.link->set_dead();
  peers_.erase(found);
}

void ProcessPort::AcceptAll(uint32_t listener, int socket) {
  while (peers_.size() < kMaxPeers) {
    OwnedFd accepted(
        accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid()) return;
    const int fd = accepted.get();
    auto link = ProcessLink::Make(std::move(accepted), node_->host);
    if (link != nullptr && !link->refusal().empty()) {
      SendReject(link.get());
      continue;
    }
    if (link == nullptr || !Watch(fd)) continue;
    peers_[fd] = {std::move(link), 0, listener};
  }
}

// The first message of an accepted link: a request, or nothing of ours.
void ProcessPort::OnFirst(Peer* peer, const CmMessage& message) {
  CmId* listener = node_->fabric->FindId(peer->listener);
  CmId* id = nullptr;
  const bool served =
      message.kind == CmMessage::Kind::kRequest && listener != nullptr &&
      listener->state == CmState::kListening && peer->link->reachable() &&
      !node_->Silent(node_->host->NowNs());
  if (served) id = OnRequest(listener, message);
  if (id != nullptr) {
    id->wire = peer->link;
    peer->id = id->number;
    return;
  }
  SendReject(peer->link.get());
  Drop(peer->link->fd());
}

void ProcessPort::Serve(int fd) {
  for (;;) {
    const auto found = peers_.find(fd);
    if (found == peers_.end()) return;
    // Held: what a message leads to may drop the peer.
    const std::shared_ptr<ProcessLink> link = found->second.link;
    CmMessage message;
    switch (link->Receive(&message)) {
      case ProcessLink::Received::kNothing:
        return;
      case ProcessLink::Received::kMessage:
        if (found->second.id == 0) {
          OnFirst(&found->second, message);
        } else if (CmId* id = node_->fabric->FindId(found->second.id)) {
          OnMessage(id, message);
        }
        break;
      case ProcessLink::Received::kEnd: {
        CmId* id = node_->fabric->FindId(found->second.id);
        Drop(fd);
        if (id != nullptr) OnPeerGone(id);
        return;
      }
    }
  }
}

void ProcessPort::Drive() {
  if (listeners_.empty() && peers_.empty()) return;
  epoll_event ready[16];
  const int count = epoll_wait(poller_.get(), ready, 16, 0);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[i].data.fd;
    uint32_t listener = 0;
    for (const auto& [number, socket] : listeners_) {
      if (socket.get() == fd) listener = number;
    }
    if (listener != 0) {
      AcceptAll(listener, fd);
    } else {
      Serve(fd);
    }
  }
}

}  // namespace mig::soft
