// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/report_pipe.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "report/console.h"

namespace mig::sim {

void SendReportLine(int fd, absl::string_view line) {
  const std::string text =
      absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
  absl::string_view rest = text;
  while (!rest.empty()) {
    // No SIGPIPE, which would take the guest down with the parent.
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

ReportReader::~ReportReader() { close(fd_); }

std::optional<std::string> ReportReader::Line(uint64_t limit_ns) {
  const uint64_t deadline = MonotonicNs() + limit_ns;
  for (;;) {
    const size_t end = rest_.find('\n');
    if (end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    const uint64_t now = MonotonicNs();
    if (now >= deadline) return std::nullopt;
    pollfd ready = {fd_, POLLIN, 0};
    const uint64_t wait_ms =
        std::min<uint64_t>((deadline - now) / 1'000'000 + 1, 1000);
    if (poll(&ready, 1, static_cast<int>(wait_ms)) <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = read(fd_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    rest_.append(piece.data(), static_cast<size_t>(got));
  }
}

}  // namespace mig::sim
