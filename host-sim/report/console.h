// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_REPORT_CONSOLE_H_
#define MIGTRANSPORT_HOST_SIM_REPORT_CONSOLE_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "mig_transport.h"

namespace mig::sim {

// What a person sees: lines on stderr, and on a terminal one progress line
// below them that is rewritten in place. Any thread.
class Console {
 public:
  // `who` ("source", "destination" or "") starts each line. With `quiet` only
  // Say and Problem print. Log lines above `log_level` are dropped.
  Console(std::string who, bool quiet, int32_t log_level);
  // Takes the progress line away.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // A line that is always shown: what a person has to know or do.
  void Say(absl::string_view text);
  // A line on how it goes; not shown when quiet.
  void Note(absl::string_view text);
  // What the plugin has to say.
  void Log(int32_t level, absl::string_view text);
  // Rewrites the progress line. Nothing when stderr is no terminal, or quiet.
  void Progress(absl::string_view text);
  // Whether Progress shows anything, so that its text need not be made.
  bool shows_progress() const { return terminal_ && !quiet_; }

  // Host services that log here; this object must outlive the context.
  mig_host_services Services();

 private:
  void Print(absl::string_view text);

  const std::string who_;
  const bool quiet_;
  const int32_t log_level_;
  const bool terminal_;
  std::mutex mutex_;
  std::string progress_;  // what the terminal shows now
};

// CLOCK_MONOTONIC in nanoseconds: the host's clock, which all processes of one
// machine share.
uint64_t MonotonicNs();

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_REPORT_CONSOLE_H_
