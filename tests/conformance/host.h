// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The services that a test lends to a plugin: a log that is kept, a clock that
// is real or moved by hand, and randomness that can be made to fail.
#ifndef TESTS_CONFORMANCE_HOST_H_
#define TESTS_CONFORMANCE_HOST_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "mig_transport.h"

namespace mig::conformance {

enum class ClockKind {
  kReal,       // CLOCK_MONOTONIC
  kSimulated,  // stands still until Advance; announced to the plugin
};

class Host {
 public:
  explicit Host(ClockKind clock = ClockKind::kReal);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const mig_host_services& services() const { return services_; }
  bool simulated() const { return clock_ == ClockKind::kSimulated; }
  uint64_t Now() const;
  void Advance(uint64_t nanoseconds) { simulated_now_ += nanoseconds; }
  // Every later random() answers this errno; 0 ends it.
  void FailRandom(int32_t errno_value) { random_errno_ = errno_value; }

  std::string Log() const;
  uint64_t clock_calls() const { return clock_calls_; }
  uint64_t random_calls() const { return random_calls_; }
  // Log lines that broke a rule of form: a newline, an empty text, a level
  // that does not exist.
  std::string BadLogLines() const;

 private:
  static void LogCallback(void* host, int32_t level, const char* message);
  static uint64_t ClockCallback(void* host);
  static int32_t RandomCallback(void* host, void* buffer, size_t length);

  const ClockKind clock_;
  mig_host_services services_ = {};
  std::atomic<uint64_t> simulated_now_;
  std::atomic<int32_t> random_errno_{0};
  std::atomic<uint64_t> clock_calls_{0};
  std::atomic<uint64_t> random_calls_{0};
  mutable std::mutex mutex_;
  std::string log_;
  std::string bad_log_lines_;
};

// Real time, for measuring calls and for bounds of waiting.
uint64_t RealNow();

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_HOST_H_
