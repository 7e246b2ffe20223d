// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_RUNNER_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_RUNNER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "guest/workload.h"

namespace mig::sim {

// The guest's one CPU: a thread that runs a workload's steps. All calls from
// any thread. While the guest is paused, ended or not started, the workload
// and its memory may be used directly by whoever paused it.
class WorkloadRunner {
 public:
  // `workload` outlives the runner, and is ready to step.
  explicit WorkloadRunner(Workload* workload) : workload_(workload) {}
  WorkloadRunner(const WorkloadRunner&) = delete;
  WorkloadRunner& operator=(const WorkloadRunner&) = delete;
  ~WorkloadRunner() { Stop(); }

  // Starts the guest, paused if it was paused before. FailedPrecondition if it
  // was started already; ResourceExhausted if there can be no thread.
  absl::Status Start();

  // Returns when the guest stands between two steps, and runs none until
  // Resume. Returns how long that took, in ns. Pausing twice is pausing once.
  int64_t Pause();
  void Resume();

  // Runs `call` while the guest stands, and lets it go on only if it was
  // running. What MakeDirtyTracker takes as `run_paused`.
  void RunPaused(const std::function<void()>& call);

  // Takes `percent` (0 to 99; more counts as 99) of the time away from the
  // guest, in slices of 10 ms, so that it dirties less.
  void SetThrottle(int percent);

  // Ends the guest after the step that runs. It cannot be started again. From
  // the thread that owns the runner.
  void Stop();

  // True when the workload came to its end or failed; steps run no more.
  bool ended() const { return ended_.load(); }
  // The error that ended the guest, or OK.
  absl::Status status() const;
  // Steps that this runner ran.
  uint64_t steps() const { return steps_.load(); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void Run();
  void StepOnce(Lock* lock);
  bool WaitWhilePaused(Lock* lock);
  void Wait(Lock* lock, int64_t ns);
  void Throttle(Lock* lock);

  Workload* const workload_;
  mutable std::mutex mutex_;
  std::condition_variable wake_guest_;
  std::condition_variable guest_stands_;
  std::thread thread_;
  // Under mutex_:
  int pauses_ = 0;  // Pause counts one, each RunPaused one
  bool user_paused_ = false;
  bool stopping_ = false;
  bool started_ = false;
  bool stepping_ = false;  // a step runs, outside the lock
  int throttle_ = 0;
  int64_t slice_start_ns_ = 0;
  absl::Status status_;

  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> steps_{0};
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_RUNNER_H_
