// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/error.h"

namespace mig {

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return MakeSystemError(
        MIG_E_LIMIT,
        "a session needs two more file descriptors: raise the "
        "limit (ulimit -n)",
        errno);
  }
  struct epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return MakeSystemError(MIG_E_LIMIT, "epoll_ctl failed", errno);
  }
  return std::unique_ptr<Poller>(new Poller(std::move(epoll), std::move(wake)));
}

absl::Status Poller::Watch(int fd, Readiness* readiness) {
  struct epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = readiness;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return MakeSystemError(MIG_E_LIMIT,
                           absl::StrCat("fd ", fd, " can't be polled"), errno);
  }
  return absl::OkStatus();
}

void Poller::Unwatch(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool Poller::Wait(int64_t timeout_ns) {
  std::array<struct epoll_event, 16> events;
  int timeout_ms = -1;
  if (timeout_ns >= 0) {
    // Rounded up, or the last part of a millisecond would be spun away.
    timeout_ms = static_cast<int>(std::min<int64_t>(
        timeout_ns / 1'000'000 + (timeout_ns % 1'000'000 != 0), 1'000'000));
  }
  const int ready =
      epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  for (int i = 0; i < ready; ++i) {
    auto* readiness = static_cast<Readiness*>(events[i].data.ptr);
    if (readiness == nullptr) {
      uint64_t drained = 0;
      (void)!read(wake_.get(), &drained, sizeof(drained));
      continue;
    }
    constexpr uint32_t kIn = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    constexpr uint32_t kOut = EPOLLOUT | EPOLLHUP | EPOLLERR;
    if ((events[i].events & kIn) != 0) readiness->readable = true;
    if ((events[i].events & kOut) != 0) readiness->writable = true;
  }
  return ready > 0;
}

void Poller::Wake() const {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

}  // namespace mig
