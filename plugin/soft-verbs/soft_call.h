// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What every cold call of the soft device begins with: the fabric's lock, and
// a look into the fault schedule.
#ifndef PLUGIN_SOFT_VERBS_SOFT_CALL_H_
#define PLUGIN_SOFT_VERBS_SOFT_CALL_H_

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "soft-verbs/soft_verbs.h"

namespace mig::soft {

class SoftVerbs::Call {
 public:
  Call(SoftVerbs* verbs, absl::string_view name)
      : lock_(verbs->fabric_->mutex()),
        fault_(verbs->node_.faults.OnCall(name)) {
    if (fault_ != nullptr) errno = fault_->error;
  }

  // A fault of the schedule; errno says which.
  bool fails() const { return fault_ != nullptr; }
  // It, in the way of calls that answer an errno.
  int error() const { return fault_->minus_one ? -1 : fault_->error; }
  // Answers of calls that set errno.
  static int MinusOne(int error) {
    if (error == 0) return 0;
    errno = error;
    return -1;
  }

 private:
  std::lock_guard<std::mutex> lock_;
  const Fault* fault_;
};

template <typename Take>
int SoftVerbs::WaitFor(int fd, Take take) {
  for (;;) {
    for (const bool drive : {false, true}) {
      if (drive) Drive();
      {
        const std::lock_guard<std::mutex> lock(fabric_->mutex());
        if (take()) return 0;
      }
      if (IsNonBlocking(fd)) {
        errno = EAGAIN;
        return -1;
      }
    }
    const uint64_t due = NextDueNs();
    const uint64_t now = node_.host->NowNs();
    constexpr uint64_t kSliceMs = 10;
    const uint64_t wait_ms = due <= now ? 0 : (due - now) / 1'000'000 + 1;
    WaitReadable(fd, static_cast<int>(std::min(wait_ms, kSliceMs)));
  }
}

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_SOFT_CALL_H_
