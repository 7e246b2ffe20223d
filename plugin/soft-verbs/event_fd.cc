// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/event_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace mig::soft {
namespace {

bool Readable(int fd, int timeout_ms) {
  pollfd poller = {fd, POLLIN, 0};
  return poll(&poller, 1, timeout_ms) == 1;
}

}  // namespace

EventFd::EventFd() : fd_(eventfd(0, EFD_CLOEXEC)) {}

EventFd::~EventFd() {
  if (fd_ >= 0) close(fd_);
}

void EventFd::Set() {
  if (Readable(fd_, 0)) return;
  eventfd_write(fd_, 1);
}

void EventFd::Clear() {
  if (!Readable(fd_, 0)) return;
  eventfd_t count = 0;
  eventfd_read(fd_, &count);
}

bool IsNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

void WaitReadable(int fd, int timeout_ms) { Readable(fd, timeout_ms); }

}  // namespace mig::soft
