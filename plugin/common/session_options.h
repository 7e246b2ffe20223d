// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What every plugin's session takes from its context's options and parameters.
#ifndef PLUGIN_COMMON_SESSION_OPTIONS_H_
#define PLUGIN_COMMON_SESSION_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/options.h"
#include "mig_transport.h"

namespace mig {

// The key of the options key and key-file, empty for none. Neither waits nor
// reads without end, whatever the path names. Errors: OPTION.
absl::StatusOr<std::string> ReadKey(const Options& options);

// Role, attempt, flags and extensions, of which no plugin has any yet. Errors:
// ARGUMENT, UNSUPPORTED.
absl::Status CheckParams(const struct mig_session_params& params);

}  // namespace mig

#endif  // PLUGIN_COMMON_SESSION_OPTIONS_H_
