// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace mig::tcp {
namespace {

ssize_t Outcome(ssize_t moved) {
  if (moved >= 0) return moved;
  return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

}  // namespace

ssize_t SocketStream::Read(std::span<const struct iovec> to) {
  struct msghdr message = {};
  message.msg_iov = const_cast<struct iovec*>(to.data());
  message.msg_iovlen = to.size();
  return Outcome(recvmsg(fd_.get(), &message, MSG_DONTWAIT));
}

ssize_t SocketStream::Write(std::span<const struct iovec> from) {
  struct msghdr message = {};
  message.msg_iov = const_cast<struct iovec*>(from.data());
  message.msg_iovlen = from.size();
  return Outcome(sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void SocketStream::ShutdownWrite() { shutdown(fd_.get(), SHUT_WR); }

}  // namespace mig::tcp
