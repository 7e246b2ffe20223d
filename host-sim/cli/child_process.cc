// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "guest/errno_text.h"
#include "report/console.h"

extern char** environ;

namespace mig::sim {
namespace {

constexpr int kReportFd = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    std::vector<std::string> arguments) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("socketpair: ", ErrnoText(errno),
                     ": raise the limit on open files (ulimit -n)"));
  }
  arguments.insert(arguments.begin(), "mig-host-sim");
  arguments.emplace_back("--report-fd");
  arguments.push_back(absl::StrCat(kReportFd));
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], kReportFd);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  if (error != 0) {
    close(pair[0]);
    return absl::ResourceExhaustedError(
        absl::StrCat("starting the destination: ", ErrnoText(error),
                     ": raise the limit on processes (ulimit -u)"));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, pair[0]));
}

std::optional<int> ChildProcess::Wait(uint64_t limit_ns) {
  const uint64_t start = MonotonicNs();
  while (!code_.has_value()) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      code_ =
          WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    } else if (ended < 0 && errno != EINTR) {
      code_ = 255;
    } else if (MonotonicNs() - start > limit_ns) {
      break;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return code_;
}

void ChildProcess::Kill() {
  if (code_.has_value()) return;
  kill(pid_, SIGKILL);
  (void)Wait(5'000'000'000);
}

}  // namespace mig::sim
