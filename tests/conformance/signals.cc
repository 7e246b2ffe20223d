// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace mig::conformance {
namespace {

std::atomic<int> g_sigpipes{0};
sigset_t g_mask;

void CountSigpipe(int) { ++g_sigpipes; }

struct Running {
  std::mutex mutex;
  std::string test;
  std::chrono::steady_clock::time_point since;
};

// Never freed: the watching thread outlives main.
Running& CurrentTest() {
  static auto* const running = new Running;
  return *running;
}

class Notes : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& info) override {
    Set(std::string(info.test_suite_name()) + "." + info.name());
  }
  void OnTestEnd(const testing::TestInfo&) override { Set(""); }

  static void Set(const std::string& test) {
    Running& running = CurrentTest();
    const std::lock_guard<std::mutex> lock(running.mutex);
    running.test = test;
    running.since = std::chrono::steady_clock::now();
  }
};

void GiveUpAfter(std::chrono::seconds limit) {
  Running& running = CurrentTest();
  const std::lock_guard<std::mutex> lock(running.mutex);
  if (running.test.empty()) return;
  if (std::chrono::steady_clock::now() - running.since < limit) return;
  fprintf(stderr,
          "mig-conformance: %s has run for %d s: a call of the plugin does "
          "not return; giving up\n",
          running.test.c_str(), static_cast<int>(limit.count()));
  abort();
}

}  // namespace

void InstallSigpipeCounter() {
  struct sigaction action = {};
  action.sa_handler = &CountSigpipe;
  sigaction(SIGPIPE, &action, nullptr);
}

void ResetSignals() {
  g_sigpipes = 0;
  pthread_sigmask(SIG_SETMASK, nullptr, &g_mask);
}

int SigpipeCount() { return g_sigpipes; }

bool SignalMaskUnchanged() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  // Member by member: the kernel fills only a part of a sigset_t.
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&now, signal) != sigismember(&g_mask, signal)) return false;
  }
  return true;
}

void StartWatchdog(int seconds_per_test) {
  testing::UnitTest::GetInstance()->listeners().Append(new Notes);  // owns it
  std::thread([limit = std::chrono::seconds(seconds_per_test)] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      GiveUpAfter(limit);
    }
  }).detach();
}

}  // namespace mig::conformance
