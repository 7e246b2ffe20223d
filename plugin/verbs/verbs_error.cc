// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/verbs_error.h"

#include "common/error.h"

namespace mig::verbs {

int ErrnoOf(int result, int errno_after) {
  if (result == 0) return 0;
  if (result > 0) return result;
  // -1 is also -EPERM, but who means that sets no errno.
  if (result == -1) {
    if (errno_after > 0) return errno_after;
    return kNoReason;
  }
  // INT_MIN has no positive counterpart.
  return result < -4095 ? kNoReason : -result;
}

int32_t CodeOfErrno(int failure) {
  switch (failure) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return MIG_E_LIMIT;
    case EACCES:
    case EPERM:
      return MIG_E_PERMISSION;
    // librdmacm tells a port that is taken in both ways.
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return MIG_E_ADDRESS;
    case ENOMEM:
      return MIG_E_MEMORY;
    default:
      return MIG_E_DEVICE;
  }
}

absl::Status StatusOfErrno(absl::string_view what, int failure) {
  if (failure == 0) return absl::OkStatus();
  return MakeSystemError(CodeOfErrno(failure), what, failure);
}

}  // namespace mig::verbs
