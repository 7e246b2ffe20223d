// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_RESOLVER_H_
#define PLUGIN_COMMON_RESOLVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net_address.h"

namespace mig {

// Looks one name up on a thread of its own, since getaddrinfo blocks for as
// long as name servers are silent and can't be cancelled.
class Resolver {
 public:
  // Starts. `wake_fd`, an eventfd, is duplicated and written to at the end.
  // Errors: LIMIT.
  static absl::StatusOr<std::unique_ptr<Resolver>> Start(std::string host,
                                                         std::string port,
                                                         int wake_fd);
  // Lets go of a look-up that still runs: its thread ends by itself and
  // touches nothing but what it owns (plugins are never unmapped, DESIGN H11).
  ~Resolver();

  bool done() const;
  // Once, after done().
  absl::StatusOr<std::vector<SocketAddress>> Take();

 private:
  struct Shared;
  explicit Resolver(std::shared_ptr<Shared> shared);
  static void* Run(void* argument);
  std::shared_ptr<Shared> shared_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_RESOLVER_H_
