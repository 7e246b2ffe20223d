// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What must hold after every test: no fd and no thread is left, no SIGPIPE
// came, and the signal mask is what it was.
#include <signal.h>

#include <filesystem>
#include <thread>

#include "pair.h"
#include "signals.h"

namespace mig::conformance {
namespace {

size_t CountEntries(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// A joined thread leaves /proc a moment after the join.
bool Settles(const std::function<bool()>& holds) {
  for (int i = 0; i < 200; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

}  // namespace

size_t CountFds() { return CountEntries("/proc/self/fd"); }
size_t CountThreads() { return CountEntries("/proc/self/task"); }

void Conformance::SetUp() {
  ASSERT_NE(Ops(), nullptr);
  ResetSignals();
  fds_before_ = CountFds();
  threads_before_ = CountThreads();
}

void Conformance::TearDown() {
  EXPECT_TRUE(Settles([this] { return CountFds() <= fds_before_; }))
      << "rule 15: " << CountFds() << " fds are open, before the test "
      << fds_before_;
  EXPECT_TRUE(Settles([this] { return CountThreads() <= threads_before_; }))
      << "rule 15: " << CountThreads() << " threads run, before the test "
      << threads_before_;
  EXPECT_EQ(SigpipeCount(), 0) << "rule 5: a call raised SIGPIPE";
  EXPECT_TRUE(SignalMaskUnchanged())
      << "rule 5: a call changed the signal mask";
}

}  // namespace mig::conformance
