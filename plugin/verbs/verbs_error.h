// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Errors of verbs calls, whichever way they are told. Providers answer an
// errno, its negative, or -1 (or a null) with errno, and not always the way
// that their manual pages say; some tell no reason at all.
#ifndef PLUGIN_VERBS_VERBS_ERROR_H_
#define PLUGIN_VERBS_VERBS_ERROR_H_

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mig::verbs {

// What a call that failed without a reason counts as.
inline constexpr int kNoReason = EIO;

// The positive errno of a call that answered `result` and left errno at
// `errno_after` where it was 0 before; 0 for success.
int ErrnoOf(int result, int errno_after);

// Makes a call that answers an int; 0, or its positive errno. Any thread.
template <typename Fn>
int ErrnoOfCall(Fn&& fn) {
  errno = 0;
  const int result = std::forward<Fn>(fn)();
  return ErrnoOf(result, errno);
}

// Makes a call that answers a pointer; *failure is 0 if that is not null, else
// a positive errno. Any thread.
template <typename Fn>
auto ObjectOfCall(int* failure, Fn&& fn) {
  errno = 0;
  auto* const object = std::forward<Fn>(fn)();
  *failure = 0;
  if (object == nullptr) *failure = errno > 0 ? errno : kNoReason;
  return object;
}

// The ABI code for an errno of a verbs call: LIMIT, PERMISSION, ADDRESS,
// MEMORY or DEVICE.
int32_t CodeOfErrno(int failure);

// "<what>: <text of errno>", with CodeOfErrno. `what` says what was asked and
// what to do. OK for 0.
absl::Status StatusOfErrno(absl::string_view what, int failure);

}  // namespace mig::verbs

#endif  // PLUGIN_VERBS_VERBS_ERROR_H_
