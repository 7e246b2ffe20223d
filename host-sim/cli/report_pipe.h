// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_REPORT_PIPE_H_
#define MIGTRANSPORT_HOST_SIM_CLI_REPORT_PIPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace mig::sim {

// Sends one line to the process that started this one, over a socket. A parent
// that is gone is no error: the guest matters more.
void SendReportLine(int fd, absl::string_view line);

// Reads lines from a child. Owns the fd.
class ReportReader {
 public:
  explicit ReportReader(int fd) : fd_(fd) {}
  ReportReader(const ReportReader&) = delete;
  ReportReader& operator=(const ReportReader&) = delete;
  ~ReportReader();

  // The next line without its end, waiting up to `limit_ns` for it. Nothing
  // when the child has closed its end or the time is over.
  std::optional<std::string> Line(uint64_t limit_ns);

 private:
  const int fd_;
  std::string rest_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_REPORT_PIPE_H_
