// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/process_link.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "soft-verbs/device.h"

namespace mig::soft {
namespace {

// Between two processes of one machine: the machine's own byte order.
struct WireMessage {
  static constexpr uint64_t kMagic = 0x31307366'6f73676d;
  static constexpr size_t kMaxFds = 3;

  uint64_t magic;
  uint64_t cookie_address;
  uint64_t cookie;
  uint32_t kind;
  uint32_t from;
  int32_t status;
  uint32_t qp_num;
  sockaddr_storage source;
  sockaddr_storage destination;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t data_length;
  uint8_t data[256];
};

WireMessage Encode(const CmMessage& message) {
  WireMessage wire = {};
  wire.magic = WireMessage::kMagic;
  wire.kind = static_cast<uint32_t>(message.kind);
  wire.from = message.from;
  wire.status = message.status;
  wire.qp_num = message.qp_num;
  wire.source = message.source;
  wire.destination = message.destination;
  wire.responder_resources = message.param.responder_resources;
  wire.initiator_depth = message.param.initiator_depth;
  wire.flow_control = message.param.flow_control;
  wire.retry_count = message.param.retry_count;
  wire.rnr_retry_count = message.param.rnr_retry_count;
  wire.data_length = static_cast<uint8_t>(message.data.size());
  std::copy(message.data.begin(), message.data.end(), wire.data);
  return wire;
}

// False if it is none that one process sends another.
bool Decode(const WireMessage& wire, CmMessage* message) {
  if (wire.magic != WireMessage::kMagic ||
      wire.kind < static_cast<uint32_t>(CmMessage::Kind::kRequest) ||
      wire.kind > static_cast<uint32_t>(CmMessage::Kind::kDisconnectReply)) {
    return false;
  }
  *message = {};
  message->kind = static_cast<CmMessage::Kind>(wire.kind);
  message->from = wire.from;
  message->status = wire.status;
  message->qp_num = wire.qp_num;
  message->source = wire.source;
  message->destination = wire.destination;
  message->param.responder_resources = wire.responder_resources;
  message->param.initiator_depth = wire.initiator_depth;
  message->param.flow_control = wire.flow_control;
  message->param.retry_count = wire.retry_count;
  message->param.rnr_retry_count = wire.rnr_retry_count;
  message->data.assign(wire.data, wire.data + wire.data_length);
  return true;
}

// Where Yama guards the memory of processes, the other one is let in. Only one
// process can be named; a second one opens it to all that the rest of the
// rules allows, which is this user.
void AllowAccessBy(pid_t pid) {
  static std::atomic<pid_t> named{0};
  pid_t none = 0;
  const bool first = named.compare_exchange_strong(none, pid) || none == pid;
  prctl(PR_SET_PTRACER,
        first ? static_cast<unsigned long>(pid) : PR_SET_PTRACER_ANY, 0, 0, 0);
}

std::vector<OwnedFd> DescriptorsOf(msghdr* header) {
  std::vector<OwnedFd> fds;
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// What the other side needs to work on a queue pair.
std::vector<int> DescriptorsFor(const CmId* id) {
  const Qp* qp = id == nullptr ? nullptr : QpOf(id);
  if (qp == nullptr || qp->share == nullptr) return {};
  std::vector<int> fds = {qp->device->memory_file.get(), qp->share->fd()};
  if (qp->recv_cq->channel != nullptr) {
    fds.push_back(qp->recv_cq->channel->fd);
  }
  return fds;
}

}  // namespace

std::string ListenerName(const std::string& address, uint16_t port) {
  return absl::StrCat("mig-soft-verbs/", address.empty() ? "*" : address, "/",
                      port);
}

std::shared_ptr<ProcessLink> ProcessLink::Make(OwnedFd socket,
                                               const Host* host) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return nullptr;
  }
  std::shared_ptr<ProcessLink> link(
      new ProcessLink(std::move(socket), host, peer.pid));
  if (peer.uid != geteuid()) {
    link->Refuse(absl::StrCat("one side runs as user ", geteuid(),
                              ", the other as ", peer.uid,
                              ": run both as one user"));
    return link;
  }
  if (peer.pid <= 0) {
    link->Refuse(
        "the two sides are in different PID namespaces: run both in one "
        "container");
    return link;
  }
  AllowAccessBy(peer.pid);
  // Not a secret: only a value that is hardly there by chance.
  link->cookie_ = host->NowNs() ^ reinterpret_cast<uint64_t>(link.get());
  return link;
}

ProcessLink::~ProcessLink() = default;

void ProcessLink::Send(CmId* from, const CmMessage& message) {
  if (dead_) return;
  WireMessage wire = Encode(message);
  wire.cookie_address = reinterpret_cast<uint64_t>(&cookie_);
  wire.cookie = cookie_;
  iovec part = {&wire, sizeof(wire)};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(WireMessage::kMaxFds * sizeof(int))];
  const bool sets_up = message.kind == CmMessage::Kind::kRequest ||
                       message.kind == CmMessage::Kind::kReply;
  const std::vector<int> fds =
      sets_up ? DescriptorsFor(from) : std::vector<int>();
  if (!fds.empty()) {
    std::memset(control, 0, sizeof(control));
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
  }
  // A full socket is a peer that does not read: the message is lost, as in any
  // network, and whoever waits for an answer times out.
  (void)sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ProcessLink::Received ProcessLink::Receive(CmMessage* message) {
  WireMessage wire = {};
  iovec part = {&wire, sizeof(wire)};
  alignas(cmsghdr) char control[CMSG_SPACE(WireMessage::kMaxFds * sizeof(int))];
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  constexpr int kFlags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
  ssize_t got = recvmsg(socket_.get(), &header, kFlags);
  // Told once where the peer left with something unread; its last word, why it
  // did, comes after.
  if (got < 0 && errno == ECONNRESET) {
    header.msg_controllen = sizeof(control);
    got = recvmsg(socket_.get(), &header, kFlags);
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Received::kNothing;
  }
  std::vector<OwnedFd> fds;
  if (got > 0) fds = DescriptorsOf(&header);
  if (got != sizeof(wire) || (header.msg_flags & MSG_TRUNC) != 0 ||
      !Decode(wire, message)) {
    return Received::kEnd;
  }
  if (!fds.empty()) {
    reachable_ = TakeDescriptors(std::move(fds)) &&
                 Probe(wire.cookie_address, wire.cookie);
  }
  return Received::kMessage;
}

bool ProcessLink::TakeDescriptors(std::vector<OwnedFd> fds) {
  if (fds.size() < 2 || share_ != nullptr) return false;
  memory_ = SharedMapping(fds[0].get(), sizeof(MemoryEntry), false);
  share_ = QpShare::Open(fds[1].get());
  if (fds.size() > 2) wake_ = std::move(fds[2]);
  return memory_.valid() && share_ != nullptr;
}

// Reads a value that the peer has told: that this is allowed, and that the
// process of this number is the one that told it, is known only then.
bool ProcessLink::Probe(uint64_t address, uint64_t value) {
  uint64_t read = 0;
  const iovec to = {&read, sizeof(read)};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const iovec from = {reinterpret_cast<void*>(address), sizeof(read)};
  if (process_vm_readv(pid_, &to, 1, &from, 1, 0) ==
          static_cast<ssize_t>(sizeof(read)) &&
      read == value) {
    return true;
  }
  SetUnreachable(errno);
  return false;
}

void ProcessLink::Refuse(absl::string_view why) {
  if (!refusal_.empty()) return;
  refusal_ = absl::StrCat("soft device: ", why);
  host_->Log(MIG_LOG_ERROR, refusal_);
}

void ProcessLink::SetUnreachable(int error) {
  if (error == EPERM || error == ENOSYS) {
    Refuse(
        "process_vm_writev is forbidden: it needs one user, seccomp's leave, "
        "kernel.yama.ptrace_scope 0 or 1, and PR_SET_DUMPABLE 1");
    return;
  }
  Refuse(absl::StrCat("the memory of process ", pid_,
                      " can't be reached: ", ErrnoText(error)));
}

void ProcessLink::Wake() const {
  const uint64_t one = 1;
  // Full means readable, which is all that is wanted.
  if (wake_.valid()) (void)!write(wake_.get(), &one, sizeof(one));
}

std::unique_ptr<RemoteEnd> ProcessLink::MakeEnd(bool iwarp) {
  if (!reachable_ || share_ == nullptr) return nullptr;
  return MakeProcessEnd(shared_from_this(), std::move(share_), iwarp);
}

}  // namespace mig::soft
