// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace mig::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Millis kPoll(5);

// Calls `done` until it answers true or the time is over.
template <typename Done>
bool Until(Millis limit, Done done) {
  const Clock::time_point end = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace

TempDir::TempDir() {
  std::string path =
      (std::filesystem::temp_directory_path() / "mig-test-XXXXXX").string();
  const char* made = mkdtemp(path.data());
  path_ = made == nullptr ? "/nonexistent" : made;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int Shell(const std::string& command) {
  // One thread, and nothing of a stranger's in the command.
  const int status = system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Process::Process(const TempDir& dir, std::vector<std::string> arguments) {
  static std::atomic<int> number{0};
  const std::string name = std::to_string(++number);
  stdout_path_ = dir.Path(name + ".out");
  stderr_path_ = dir.Path(name + ".err");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, stdout_path_.c_str(), kFlags,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, 2, stderr_path_.c_str(), kFlags,
                                   0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  if (posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(),
                  environ) != 0) {
    pid_ = -1;
    code_ = 127;
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

Process::~Process() {
  if (pid_ > 0) kill(-pid_, SIGKILL);  // and its children, in its group
  (void)Wait(Millis(5000));
}

bool Process::WaitForText(const std::string& text, Millis limit) {
  return Until(limit,
               [&] {
                 return Stderr().find(text) != std::string::npos ||
                        Wait(Millis(0));
               }) &&
         Stderr().find(text) != std::string::npos;
}

std::optional<int> Process::Wait(Millis limit) {
  Until(limit, [this] {
    if (code_.has_value()) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  });
  return code_;
}

void Process::Signal(int signal) const {
  // -1, of a process that did not start, would be everybody.
  if (pid_ > 0 && !code_.has_value()) kill(pid_, signal);
}

}  // namespace mig::test
