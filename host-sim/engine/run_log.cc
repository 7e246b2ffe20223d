// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "report/console.h"

namespace mig::sim {

void RunLog::Note(absl::string_view what) const {
  if (path_.empty()) return;
  const int fd =
      open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::string line =
      absl::StrCat(who_, " ", what, " ", MonotonicNs(), "\n");
  if (write(fd, line.data(), line.size()) < 0) {
    // A test that reads the log will miss the line.
  }
  close(fd);
}

}  // namespace mig::sim
