// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The host's services with their defaults filled in (rule 4): time, log and
// randomness come from nowhere else in a plugin.
#ifndef PLUGIN_COMMON_HOST_H_
#define PLUGIN_COMMON_HOST_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mig_transport.h"

namespace mig {

class Host {
 public:
  // Defaults only. `services` is copied as far as its own size goes.
  Host() = default;
  explicit Host(const struct mig_host_services& services);

  // Nanoseconds on the host's clock; any thread.
  uint64_t NowNs() const;
  // Fills `size` bytes. Errors: RESOURCE when the host can't. Any thread.
  absl::Status Random(void* buffer, size_t size) const;
  // Writes one line at `level` (mig_log_level); any thread.
  void Log(int32_t level, absl::string_view line) const;
  bool simulated_clock() const {
    return (services_.flags & MIG_HOST_SIMULATED_CLOCK) != 0;
  }

 private:
  struct mig_host_services services_ = {};
};

}  // namespace mig

#endif  // PLUGIN_COMMON_HOST_H_
