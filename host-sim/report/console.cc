// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/console.h"

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mig::sim {
namespace {

constexpr char kEraseLine[] = "\r\033[K";

const char* LevelName(int32_t level) {
  switch (level) {
    case MIG_LOG_ERROR:
      return "error";
    case MIG_LOG_WARNING:
      return "warning";
    case MIG_LOG_INFO:
      return "info";
    default:
      return "debug";
  }
}

void LogToConsole(void* host, int32_t level, const char* message) {
  static_cast<Console*>(host)->Log(level, message);
}

uint64_t ClockOfHost(void* /*host*/) { return MonotonicNs(); }

// One write(2), so that lines of two processes do not mix.
void WriteToStderr(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // nobody is left to tell
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

uint64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

Console::Console(std::string who, bool quiet, int32_t log_level)
    : who_(std::move(who)),
      quiet_(quiet),
      log_level_(log_level),
      terminal_(isatty(STDERR_FILENO) == 1) {}

Console::~Console() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!progress_.empty()) WriteToStderr(kEraseLine);
}

void Console::Print(absl::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string out;
  if (!progress_.empty()) out = kEraseLine;
  absl::StrAppend(&out, "mig-host-sim: ", who_, who_.empty() ? "" : ": ", text,
                  "\n", progress_);
  WriteToStderr(out);
}

void Console::Say(absl::string_view text) { Print(text); }

void Console::Note(absl::string_view text) {
  if (!quiet_) Print(text);
}

void Console::Log(int32_t level, absl::string_view text) {
  if (level > log_level_) return;
  Print(absl::StrCat("plugin ", LevelName(level), ": ", text));
}

void Console::Progress(absl::string_view text) {
  if (!shows_progress()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  progress_ = std::string(text);
  WriteToStderr(absl::StrCat(kEraseLine, progress_));
}

mig_host_services Console::Services() {
  mig_host_services services = {};
  services.size = sizeof services;
  services.host = this;
  services.log = &LogToConsole;
  services.clock_ns = &ClockOfHost;
  return services;
}

}  // namespace mig::sim
