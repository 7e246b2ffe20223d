// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/error.h"

namespace mig::tcp {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof(value));
}

const struct sockaddr* Generic(const SocketAddress& address) {
  return reinterpret_cast<const struct sockaddr*>(&address.storage);
}

std::string UnixPath(const SocketAddress& address) {
  constexpr size_t kHead = offsetof(struct sockaddr_un, sun_path);
  const auto* unix_address =
      reinterpret_cast<const struct sockaddr_un*>(&address.storage);
  if (address.size <= kHead) return "";
  return std::string(unix_address->sun_path,
                     strnlen(unix_address->sun_path, address.size - kHead));
}

// A socket file whose server is gone refuses; one that is served must stay, and
// so must any other file: connecting to a regular one is refused as well.
bool RemoveStaleUnixSocket(const SocketAddress& address) {
  struct stat status = {};
  if (lstat(UnixPath(address).c_str(), &status) != 0 ||
      !S_ISSOCK(status.st_mode)) {
    return false;
  }
  const UniqueFd probe(socket(AF_UNIX, kSocketFlags, 0));
  if (connect(probe.get(), Generic(address), address.size) == 0 ||
      errno != ECONNREFUSED) {
    return false;
  }
  return unlink(UnixPath(address).c_str()) == 0;
}

}  // namespace

std::string FormatAddress(const SocketAddress& address) {
  if (address.storage.ss_family == AF_UNIX) {
    const std::string path = UnixPath(address);
    return absl::StrCat("unix:", path.empty() ? "(unnamed)" : path);
  }
  const std::string name = FormatHostPort(address);
  return name.empty() ? "(unknown address)" : absl::StrCat("tcp://", name);
}

absl::Status ListenFailure(const SocketAddress& address, int error) {
  const std::string name = FormatAddress(address);
  if (error == EACCES || error == EPERM) {
    return MakeSystemError(
        MIG_E_PERMISSION,
        absl::StrCat("can't listen at ", name,
                     " (ports below 1024 and some folders need privileges)"),
        error);
  }
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    return MakeSystemError(
        MIG_E_LIMIT,
        absl::StrCat("can't listen at ", name,
                     ": raise the limit of files (ulimit -n)"),
        error);
  }
  return MakeSystemError(
      MIG_E_ADDRESS,
      absl::StrCat("can't listen at ", name,
                   ": choose another port or path, port 0 for any free one, "
                   "or an address of this machine"),
      error);
}

SocketAddress UnixAddress(const std::string& path) {
  SocketAddress address;
  auto* unix_address = reinterpret_cast<struct sockaddr_un*>(&address.storage);
  unix_address->sun_family = AF_UNIX;
  // ParseUri has checked the length.
  std::memcpy(unix_address->sun_path, path.c_str(), path.size() + 1);
  address.size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) +
                                        path.size() + 1);
  return address;
}

absl::StatusOr<UniqueFd> StartConnect(const SocketAddress& address,
                                      int* error) {
  UniqueFd fd(socket(address.storage.ss_family, kSocketFlags, 0));
  if (!fd.valid()) {
    *error = errno;
    if (errno == EAFNOSUPPORT) return fd;
    return MakeSystemError(MIG_E_LIMIT, "can't make a socket", errno);
  }
  *error = connect(fd.get(), Generic(address), address.size) == 0 ? 0 : errno;
  return fd;
}

int ConnectResult(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

absl::StatusOr<UniqueFd> Listen(const SocketAddress& address) {
  UniqueFd fd(socket(address.storage.ss_family, kSocketFlags, 0));
  if (!fd.valid()) return ListenFailure(address, errno);
  if (address.storage.ss_family == AF_UNIX) {
    int error = bind(fd.get(), Generic(address), address.size) == 0 ? 0 : errno;
    if (error == EADDRINUSE && RemoveStaleUnixSocket(address)) {
      error = bind(fd.get(), Generic(address), address.size) == 0 ? 0 : errno;
    }
    if (error != 0) return ListenFailure(address, error);
  } else {
    SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd.get(), Generic(address), address.size) != 0) {
      return ListenFailure(address, errno);
    }
  }
  constexpr int kBacklog = 64;  // also who waits for a place in the handshake
  if (listen(fd.get(), kBacklog) != 0) return ListenFailure(address, errno);
  return fd;
}

absl::StatusOr<UniqueFd> Accept(int listener, std::string* peer) {
  // What went away while it waited is skipped: others may stand behind it, and
  // the edge that told of them does not come again (accept(2) lists them).
  constexpr int kMostGone = 64;
  UniqueFd fd;
  int error = ECONNABORTED;
  for (int i = 0; i < kMostGone && !fd.valid(); ++i) {
    fd.Reset(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    error = errno;
    if (fd.valid()) *peer = PeerName(fd.get());
    if (error == EAGAIN || error == EMFILE || error == ENFILE ||
        error == ENOBUFS || error == ENOMEM) {
      break;
    }
  }
  if (fd.valid() || error == EAGAIN) return fd;
  return MakeSystemError(MIG_E_LIMIT, "can't accept a connection", error);
}

absl::StatusOr<UniqueFd> AdoptFd(int fd, bool* listening) {
  int type = 0;
  int accepts = 0;
  socklen_t size = sizeof(int);
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      type != SOCK_STREAM ||
      getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0) {
    return MakeError(MIG_E_URI,
                     absl::StrCat("fd ", fd,
                                  " is no stream socket: hand over a "
                                  "connected or listening one"));
  }
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    return MakeSystemError(MIG_E_LIMIT, absl::StrCat("can't duplicate fd ", fd),
                           errno);
  }
  *listening = accepts != 0;
  // accept, unlike recvmsg, takes no flag that keeps it from waiting.
  if (*listening && fcntl(copy.get(), F_SETFL,
                          fcntl(copy.get(), F_GETFL) | O_NONBLOCK) != 0) {
    return MakeSystemError(
        MIG_E_URI, absl::StrCat("fd ", fd, " can't be made non-blocking"),
        errno);
  }
  return copy;
}

void Tune(int fd, const SocketTuning& tuning) {
  if (tuning.buffer_bytes > 0) {
    const int bytes =
        static_cast<int>(std::min<uint64_t>(tuning.buffer_bytes, 1u << 30));
    SetOption(fd, SOL_SOCKET, SO_SNDBUF, bytes);
    SetOption(fd, SOL_SOCKET, SO_RCVBUF, bytes);
  }
  const sa_family_t family = LocalAddress(fd).storage.ss_family;
  if (family != AF_INET && family != AF_INET6) return;
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (tuning.peer_timeout_ns == 0) return;
  const int timeout_ms = static_cast<int>(
      std::min<uint64_t>(tuning.peer_timeout_ns / 1'000'000, 1u << 30));
  // Linux counts a full window at the peer as silence, however well the peer
  // answers the probes. A host may be busy for minutes and read nothing (C36),
  // so this only cleans up; who is silent is the session's to decide.
  constexpr int kBusyMaxMs = static_cast<int>(MIG_HOST_BUSY_MAX_NS / 1'000'000);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms + kBusyMaxMs);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, timeout_ms / 2000));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, timeout_ms / 8000));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

SocketAddress LocalAddress(int fd) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (getsockname(fd, reinterpret_cast<struct sockaddr*>(&address.storage),
                  &address.size) != 0) {
    address = SocketAddress();
  }
  return address;
}

std::string PeerName(int fd) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (getpeername(fd, reinterpret_cast<struct sockaddr*>(&address.storage),
                  &address.size) != 0) {
    return "(unknown peer)";
  }
  return FormatAddress(address);
}

}  // namespace mig::tcp
