// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_POLLER_H_
#define PLUGIN_COMMON_POLLER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace mig {

// What is known of an fd: set by the poller, cleared by whoever met EAGAIN.
struct Readiness {
  bool readable = false;
  bool writable = false;
};

// One epoll fd for all of a session's fds, so that a host has one fd to sleep
// on and it never changes. Edge-triggered: nothing is rearmed on the hot path.
class Poller {
 public:
  // Errors: LIMIT.
  static absl::StatusOr<std::unique_ptr<Poller>> Create();

  // *readiness must live until Unwatch(fd). Errors: LIMIT, ARGUMENT.
  absl::Status Watch(int fd, Readiness* readiness);
  void Unwatch(int fd);
  // Sleeps up to timeout_ns (negative: for ever; 0: only looks) and notes what
  // is ready. True if anything was, a wake included.
  bool Wait(int64_t timeout_ns);
  // Ends a Wait that sleeps, or the next one. Any thread.
  void Wake() const;

  int fd() const { return epoll_.get(); }
  int wake_fd() const { return wake_.get(); }

 private:
  Poller(UniqueFd epoll, UniqueFd wake)
      : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  UniqueFd epoll_;
  UniqueFd wake_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_POLLER_H_
