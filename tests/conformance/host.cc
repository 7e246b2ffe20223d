// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "host.h"

#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <cstring>

namespace mig::conformance {
namespace {

// Not 0, so that "no time yet" and "now" differ, and not near the real clock,
// so that a plugin that mixes the two is caught.
constexpr uint64_t kSimulatedStart = 1'000'000'000'000'000;

}  // namespace

uint64_t RealNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

Host::Host(ClockKind clock) : clock_(clock), simulated_now_(kSimulatedStart) {
  services_.size = sizeof(services_);
  services_.flags =
      clock == ClockKind::kSimulated ? MIG_HOST_SIMULATED_CLOCK : 0;
  services_.host = this;
  services_.log = &LogCallback;
  services_.clock_ns = &ClockCallback;
  services_.random = &RandomCallback;
}

uint64_t Host::Now() const {
  return simulated() ? simulated_now_.load() : RealNow();
}

void Host::LogCallback(void* host, int32_t level, const char* message) {
  auto* self = static_cast<Host*>(host);
  const std::lock_guard<std::mutex> lock(self->mutex_);
  if (level < MIG_LOG_ERROR || level > MIG_LOG_DEBUG || message == nullptr ||
      *message == '\0' || strchr(message, '\n') != nullptr) {
    self->bad_log_lines_ += "level " + std::to_string(level) + ": " +
                            (message == nullptr ? "(null)" : message) + "\n";
    return;
  }
  self->log_.append(message).append("\n");
}

uint64_t Host::ClockCallback(void* host) {
  auto* self = static_cast<Host*>(host);
  ++self->clock_calls_;
  return self->Now();
}

int32_t Host::RandomCallback(void* host, void* buffer, size_t length) {
  auto* self = static_cast<Host*>(host);
  ++self->random_calls_;
  const int32_t failure = self->random_errno_;
  if (failure != 0) return failure;
  auto* bytes = static_cast<char*>(buffer);
  while (length > 0) {
    const ssize_t got = getrandom(bytes, length, 0);
    if (got < 0) return errno;
    bytes += got;
    length -= static_cast<size_t>(got);
  }
  return 0;
}

std::string Host::Log() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return log_;
}

std::string Host::BadLogLines() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bad_log_lines_;
}

}  // namespace mig::conformance
