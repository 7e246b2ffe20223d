// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_TESTS_FAULT_PROCESS_H_
#define MIGTRANSPORT_TESTS_FAULT_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mig::test {

using Millis = std::chrono::milliseconds;

// A directory that goes with everything in it.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What is in a file now; empty if it is not there.
std::string ReadFile(const std::string& path);

// The exit code of a shell's command, -1 if a signal ended it.
int Shell(const std::string& command);

// A program that a test runs, with its output in files. Killed and reaped, with
// all that it started, when it goes out of scope. One thread.
class Process {
 public:
  // Starts `arguments[0]`, looked for as a path. `dir` outlives this object.
  Process(const TempDir& dir, std::vector<std::string> arguments);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Whether stderr has `text` within `limit`.
  bool WaitForText(const std::string& text, Millis limit);
  // The exit code, 128 and the signal's number, or nothing if it has not ended
  // within `limit`.
  std::optional<int> Wait(Millis limit);
  void Signal(int signal) const;
  std::string Stdout() const { return ReadFile(stdout_path_); }
  std::string Stderr() const { return ReadFile(stderr_path_); }
  pid_t pid() const { return pid_; }

 private:
  std::string stdout_path_, stderr_path_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace mig::test

#endif  // MIGTRANSPORT_TESTS_FAULT_PROCESS_H_
