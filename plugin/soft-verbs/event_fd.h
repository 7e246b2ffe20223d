// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A file descriptor that is readable while something waits behind it.
#ifndef PLUGIN_SOFT_VERBS_EVENT_FD_H_
#define PLUGIN_SOFT_VERBS_EVENT_FD_H_

namespace mig::soft {

// Not thread-safe, but fd() may be polled by anyone. The user may make it
// non-blocking: nothing here reads or writes it unless it is ready.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  // -1 if there was none to be had; errno then says why.
  int fd() const { return fd_; }
  void Set();
  // Also forgets what others wrote to it.
  void Clear();

 private:
  int fd_ = -1;
};

// Whether the user made it non-blocking.
bool IsNonBlocking(int fd);
// Waits until it is readable, at most `timeout_ms`.
void WaitReadable(int fd, int timeout_ms);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_EVENT_FD_H_
