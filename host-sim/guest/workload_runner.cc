// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/workload_runner.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "absl/strings/str_format.h"

namespace mig::sim {
namespace {

constexpr int64_t kSliceNs = 10'000'000;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status WorkloadRunner::Start() {
  const Lock lock(mutex_);
  if (started_) {
    return absl::FailedPreconditionError(
        "the guest was started already: make a new runner");
  }
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no thread for the guest: %s: raise the limit on processes (ulimit -u)",
        error.what()));
  }
  started_ = true;
  return absl::OkStatus();
}

int64_t WorkloadRunner::Pause() {
  const int64_t start = NowNs();
  Lock lock(mutex_);
  if (!user_paused_) ++pauses_;
  user_paused_ = true;
  wake_guest_.notify_all();
  guest_stands_.wait(lock, [this] { return !stepping_; });
  return NowNs() - start;
}

void WorkloadRunner::Resume() {
  const Lock lock(mutex_);
  if (!user_paused_) return;
  user_paused_ = false;
  --pauses_;
  wake_guest_.notify_all();
}

void WorkloadRunner::RunPaused(const std::function<void()>& call) {
  {
    Lock lock(mutex_);
    ++pauses_;
    wake_guest_.notify_all();
    guest_stands_.wait(lock, [this] { return !stepping_; });
  }
  call();
  const Lock lock(mutex_);
  --pauses_;
  wake_guest_.notify_all();
}

void WorkloadRunner::SetThrottle(int percent) {
  const Lock lock(mutex_);
  throttle_ = std::clamp(percent, 0, 99);
  wake_guest_.notify_all();
}

void WorkloadRunner::Stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    wake_guest_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status WorkloadRunner::status() const {
  const Lock lock(mutex_);
  return status_;
}

void WorkloadRunner::Run() {
  Lock lock(mutex_);
  slice_start_ns_ = NowNs();
  while (!stopping_ && !ended_) {
    if (WaitWhilePaused(&lock)) continue;
    Throttle(&lock);
    if (pauses_ > 0 || stopping_) continue;
    StepOnce(&lock);
  }
}

// The lock is not held during the step, so that Pause can ask for its end;
// `stepping_` is what Pause waits for.
void WorkloadRunner::StepOnce(Lock* lock) {
  stepping_ = true;
  lock->unlock();
  absl::Status status = workload_->Step();
  const bool done = workload_->Done();
  const int64_t delay = status.ok() && !done ? workload_->DelayNs() : 0;
  steps_.fetch_add(1, std::memory_order_relaxed);
  lock->lock();
  stepping_ = false;
  if (!status.ok() || done) {
    status_ = std::move(status);
    ended_ = true;
  }
  guest_stands_.notify_all();
  if (delay > 0 && !ended_) Wait(lock, delay);
}

bool WorkloadRunner::WaitWhilePaused(Lock* lock) {
  if (pauses_ == 0) return false;
  const int64_t start = NowNs();
  wake_guest_.wait(*lock, [this] { return pauses_ == 0 || stopping_; });
  if (pauses_ > 0) return true;  // stopping: whoever paused has the workload
  const int64_t paused = NowNs() - start;
  slice_start_ns_ += paused;
  workload_->SkipTime(paused);
  return true;
}

// Ends early when there is something else to do.
void WorkloadRunner::Wait(Lock* lock, int64_t ns) {
  wake_guest_.wait_for(*lock, std::chrono::nanoseconds(ns),
                       [this] { return pauses_ > 0 || stopping_; });
}

void WorkloadRunner::Throttle(Lock* lock) {
  const int64_t now = NowNs();
  int64_t used = now - slice_start_ns_;
  if (used >= kSliceNs || throttle_ == 0) {
    // A new slice. What a long step took too much of the last one is owed.
    const int64_t over = throttle_ == 0 ? 0 : used - kSliceNs;
    slice_start_ns_ = now - std::min(over, kSliceNs / 2);
    used = now - slice_start_ns_;
  }
  if (throttle_ == 0 || used < kSliceNs * (100 - throttle_) / 100) return;
  Wait(lock, kSliceNs - used);
  workload_->SkipTime(NowNs() - now);
}

}  // namespace mig::sim
