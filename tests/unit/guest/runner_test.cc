// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <atomic>
#include <chrono>
#include <memory>

#include "guest/dirty_tracker.h"
#include "guest/workload_runner.h"
#include "migrate.h"

namespace mig::sim {
namespace {

using std::chrono::milliseconds;

void Sleep(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

// A busy machine may let a thread wait for its first step.
void AwaitSteps(const WorkloadRunner& runner, uint64_t steps) {
  for (int i = 0; i < 30'000 && runner.steps() < steps; ++i) Sleep(1);
  ASSERT_GE(runner.steps(), steps);
}

// Counts its steps in plain memory: a step after Pause is a data race too.
class CountingWorkload final : public Workload {
 public:
  explicit CountingWorkload(GuestMemory* memory)
      : Workload({"count", memory, 0, nullptr}) {}
  absl::Status Init() override { return absl::OkStatus(); }
  absl::Status Attach() override { return absl::OkStatus(); }
  absl::Status Verify() override { return absl::OkStatus(); }
  std::string Summary() const override { return ""; }
  absl::Status Step() override {
    inside = true;
    ++begun;
    ++count;
    if (step_us > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(step_us));
    }
    inside = false;
    if (count == fail_at) return absl::InternalError("as planned");
    return absl::OkStatus();
  }
  bool Done() const override { return count == done_at; }
  int64_t DelayNs() override { return delay_ns; }
  void SkipTime(int64_t ns) override { skipped_ns += ns; }

  uint64_t count = 0;
  std::atomic<uint64_t> begun{0};
  bool inside = false;
  int step_us = 0;
  uint64_t fail_at = 0;
  uint64_t done_at = 0;
  int64_t delay_ns = 0;
  int64_t skipped_ns = 0;
};

class RunnerTest : public testing::Test {
 protected:
  void AwaitEnd() {
    for (int i = 0; i < 5000 && !runner_.ended(); ++i) Sleep(1);
    ASSERT_TRUE(runner_.ended());
  }
  // Of the time from here to a pause after `ms`.
  double SkippedShareOf(int ms) {
    runner_.Pause();
    workload_.skipped_ns = 0;
    const auto start = std::chrono::steady_clock::now();
    runner_.Resume();
    Sleep(ms);
    runner_.Pause();
    const std::chrono::nanoseconds took =
        std::chrono::steady_clock::now() - start;
    return static_cast<double>(workload_.skipped_ns) /
           static_cast<double>(took.count());
  }
  GuestMemory memory_ = MakeMemory({"ram:64K"});
  CountingWorkload workload_{&memory_};
  WorkloadRunner runner_{&workload_};
};

TEST_F(RunnerTest, RunsNoStepBetweenPauseAndResume) {
  MIG_ASSERT_OK(runner_.Start());
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_GE(runner_.Pause(), 0);
    EXPECT_FALSE(workload_.inside);
    const uint64_t count = workload_.count;
    if (i % 20 == 0) Sleep(5);
    EXPECT_EQ(workload_.count, count);
    EXPECT_GE(count, last);
    EXPECT_EQ(runner_.steps(), count);
    last = count;
    runner_.Resume();
    if (i % 10 == 0) AwaitSteps(runner_, count + 1);
  }
  runner_.Stop();
}

TEST_F(RunnerTest, PauseTakesAsLongAsTheStepThatRuns) {
  workload_.step_us = 200'000;
  MIG_ASSERT_OK(runner_.Start());
  AwaitSteps(runner_, 1);
  while (workload_.begun == 1) Sleep(1);
  const int64_t ns = runner_.Pause();
  EXPECT_GT(ns, 5'000'000);
  EXPECT_FALSE(workload_.inside);
  // It stands already.
  EXPECT_LT(runner_.Pause(), ns);
}

TEST_F(RunnerTest, StaysPausedUntilResumedThoughRunPausedCameBetween) {
  MIG_ASSERT_OK(runner_.Start());
  runner_.Pause();
  const uint64_t count = workload_.count;
  bool called = false;
  runner_.RunPaused([&] { called = true; });
  EXPECT_TRUE(called);
  Sleep(5);
  EXPECT_EQ(workload_.count, count);
  runner_.Resume();
  AwaitSteps(runner_, count + 1);
  uint64_t later = 0;
  runner_.RunPaused([&] { later = workload_.count; });
  AwaitSteps(runner_, later + 1);
}

TEST_F(RunnerTest, StartsPausedWhenPausedBefore) {
  runner_.Pause();
  MIG_ASSERT_OK(runner_.Start());
  Sleep(5);
  EXPECT_EQ(workload_.count, 0U);
  EXPECT_EQ(runner_.Start().code(), absl::StatusCode::kFailedPrecondition);
  runner_.Stop();
}

TEST_F(RunnerTest, KeepsTheErrorThatEndedTheGuest) {
  workload_.fail_at = 7;
  MIG_ASSERT_OK(runner_.Start());
  AwaitEnd();
  EXPECT_EQ(runner_.status().message(), "as planned");
  runner_.Pause();
  EXPECT_EQ(workload_.count, 7U);
}

TEST_F(RunnerTest, EndsWithoutErrorWhenTheWorkIsDone) {
  workload_.done_at = 9;
  MIG_ASSERT_OK(runner_.Start());
  AwaitEnd();
  MIG_EXPECT_OK(runner_.status());
  EXPECT_EQ(runner_.steps(), 9U);
}

TEST_F(RunnerTest, PauseAndStopDoNotWaitForAnIdleGuest) {
  workload_.delay_ns = 10'000'000'000;
  MIG_ASSERT_OK(runner_.Start());
  Sleep(5);
  EXPECT_LT(runner_.Pause(), 1'000'000'000);
  runner_.Resume();
  const auto start = std::chrono::steady_clock::now();
  runner_.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(RunnerTest, ThrottleTakesItsShareOfTheTimeAndSaysSo) {
  workload_.step_us = 100;
  MIG_ASSERT_OK(runner_.Start());
  runner_.SetThrottle(80);
  Sleep(50);
  const double throttled = SkippedShareOf(500);
  EXPECT_GT(throttled, 0.6);
  EXPECT_LE(throttled, 1.0);
  runner_.SetThrottle(0);
  runner_.Resume();
  Sleep(5);
  EXPECT_LT(SkippedShareOf(100), 0.4);
}

// The whole of a migration, but for the wire: rounds while the guest runs,
// the last one while it stands.
TEST(Rounds, CopyTheGuestByteForByteUnderEachTracker) {
  const std::vector<std::string> blocks = {"ram:4M", "vga:1M"};
  for (const char* kind : {"uffd", "soft-dirty", "mprotect", "simulated"}) {
    Guest source = MakeGuest(blocks, "uniform:fill=50");
    WorkloadRunner runner(source.workload.get());
    absl::StatusOr<TrackerChoice> choice = MakeDirtyTracker(
        kind, source.memory.get(),
        [&](const std::function<void()>& call) { runner.RunPaused(call); });
    if (!choice.ok()) continue;
    DirtyTracker* tracker = choice->tracker.get();
    source.workload->set_observer(tracker->observer());
    const GuestMemory target = MakeMemory(blocks);
    MIG_ASSERT_OK(runner.Start());
    MIG_ASSERT_OK(tracker->Start());
    AwaitSteps(runner, 1);
    const auto round = [&](bool all) {
      for (const GuestBlock& block : source.memory->blocks()) {
        DirtyBitmap dirty(block.pages());
        ASSERT_TRUE(tracker->FetchAndClear(block, &dirty).ok());
        if (all) dirty.SetAll();
        dirty.ForEachRange([&](uint64_t first, uint64_t count) {
          KernelCopy(target.blocks()[block.id].base + first * kPageSize,
                     block.base + first * kPageSize, count * kPageSize);
        });
      }
    };
    round(true);
    for (int i = 0; i < 5; ++i) round(false);
    runner.Pause();
    round(false);
    EXPECT_TRUE(SameMemory(*source.memory, target)) << kind;
    MIG_EXPECT_OK(tracker->Stop());
  }
}

}  // namespace
}  // namespace mig::sim
