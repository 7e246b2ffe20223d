// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// libibverbs and librdmacm behind the seam, opened when they are first needed:
// the plugin loads, and says what is missing, where rdma-core is not installed.
#ifndef PLUGIN_VERBS_REAL_VERBS_H_
#define PLUGIN_VERBS_REAL_VERBS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verbs/verbs.h"

namespace mig::verbs {

// The process's own table. It lives until the process ends, since providers
// leave threads and locks behind that no closing of the libraries removes.
// Errors: DEVICE, naming the library or symbol and the package to install;
// asked again it tries again. Any thread.
absl::StatusOr<Verbs*> RealVerbs();

// For tests, which give others.
struct Libraries {
  std::string ibverbs = "libibverbs.so.1";
  std::string rdmacm = "librdmacm.so.1";
};
absl::StatusOr<std::unique_ptr<Verbs>> OpenLibraries(
    const Libraries& libraries);

}  // namespace mig::verbs

#endif  // PLUGIN_VERBS_REAL_VERBS_H_
