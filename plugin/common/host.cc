// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/host.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "common/error.h"

namespace mig {

Host::Host(const struct mig_host_services& services) {
  std::memcpy(&services_, &services,
              std::min<size_t>(services.size, sizeof(services_)));
}

uint64_t Host::NowNs() const {
  if (services_.clock_ns != nullptr) return services_.clock_ns(services_.host);
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

absl::Status Host::Random(void* buffer, size_t size) const {
  if (services_.random != nullptr) {
    const int32_t failure = services_.random(services_.host, buffer, size);
    if (failure == 0) return absl::OkStatus();
    return MakeSystemError(
        MIG_E_LIMIT, absl::StrCat("the host gave no ", size, " random bytes"),
        failure);
  }
  auto* to = static_cast<unsigned char*>(buffer);
  while (size > 0) {
    const ssize_t got = getrandom(to, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      return MakeSystemError(MIG_E_LIMIT, "getrandom failed", errno);
    }
    to += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

void Host::Log(int32_t level, absl::string_view line) const {
  if (services_.log == nullptr) return;
  std::string text(line);
  // Peers' texts are logged too; a line stays one line.
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  services_.log(services_.host, level, text.c_str());
}

}  // namespace mig
