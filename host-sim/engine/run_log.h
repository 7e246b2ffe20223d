// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_RUN_LOG_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_RUN_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace mig::sim {

// For tests: a file in which both sides note when they let the guest run and
// when it stopped, "source run 123456" (CLOCK_MONOTONIC in ns), so that two
// guests at one time would show.
class RunLog {
 public:
  // An empty path notes nothing.
  RunLog(std::string path, std::string who)
      : path_(std::move(path)), who_(std::move(who)) {}

  // Appends a line in one write(2), with the time of the call.
  void Note(absl::string_view what) const;

 private:
  const std::string path_;
  const std::string who_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_RUN_LOG_H_
