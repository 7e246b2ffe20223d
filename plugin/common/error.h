// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Errors inside a plugin: an absl::Status that carries the ABI's code and the
// system's errno, turned into a mig_error once, at the ABI boundary.
#ifndef PLUGIN_COMMON_ERROR_H_
#define PLUGIN_COMMON_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mig_transport.h"

namespace mig {

// A status with ABI code `code` (a mig_status below 0). The message is one
// line: what was asked, what happened, what to do. Any thread.
absl::Status MakeError(int32_t code, absl::string_view message,
                       int system_errno = 0);

// The same, with ": <text of errno>" appended.
absl::Status MakeSystemError(int32_t code, absl::string_view message,
                             int system_errno);

// The text of an errno, from any thread.
std::string ErrnoText(int system_errno);

// The ABI code of a status: MIG_OK if ok, INTERNAL where none was attached.
int32_t ErrorCode(const absl::Status& status);
// The attached errno, or 0.
int ErrorErrno(const absl::Status& status);

// The same code and errno, with `prefix` before the message.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix);

// Fills *error (may be null; only up to error->size) and returns the code.
// A non-ok status only. Never allocates more than the status did.
int32_t FillError(const absl::Status& status, struct mig_error* error);
// The same from plain values, for where a Status could not be allocated.
int32_t FillPlainError(int32_t code, const char* message,
                       struct mig_error* error);

}  // namespace mig

#define MIG_RETURN_IF_ERROR(expr)                             \
  do {                                                        \
    if (absl::Status mig_status_ = (expr); !mig_status_.ok()) \
      return mig_status_;                                     \
  } while (false)

#endif  // PLUGIN_COMMON_ERROR_H_
