// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_SIM_GUEST_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_SIM_GUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/guest_port.h"
#include "engine/run_log.h"
#include "guest/guest_memory.h"
#include "guest/workload.h"
#include "guest/workload_runner.h"
#include "guest/write_observer.h"

namespace mig::sim {

// The simulated guest behind the engines' port: a workload and the thread that
// runs it. Called from one thread, but for RunPaused.
class SimGuest final : public GuestPort {
 public:
  // A guest at the source: makes the workload of `spec` and its first contents
  // in `memory`, which outlives the guest.
  static absl::StatusOr<std::unique_ptr<SimGuest>> Create(
      const std::string& spec, GuestMemory* memory, uint64_t seed, RunLog log);
  // A guest that is to arrive in `memory`.
  SimGuest(GuestMemory* memory, RunLog log)
      : memory_(memory), log_(std::move(log)) {}
  ~SimGuest() override;

  absl::Status Run() override;
  absl::Status Stop() override;
  bool running() const override { return running_; }
  void SetThrottle(uint32_t percent) override;
  absl::StatusOr<StateSections> SaveState() override;
  absl::Status LoadState(const StateSections& sections) override;
  Bytes SaveExpected() override;
  absl::Status Check(const Bytes& expected) override;
  std::string Work() const override;

  // For trackers that need the guest to stand for a moment.
  void RunPaused(const std::function<void()>& call);
  // Tells `observer` of every write. Before the first Run. Unimplemented if
  // the workload can't.
  absl::Status Observe(WriteObserver* observer);

  // Steps that ran here.
  uint64_t steps() const { return runner_ ? runner_->steps() : 0; }
  // It came to its end, or failed.
  bool ended() const { return runner_ != nullptr && runner_->ended(); }
  // Why it failed; OK if it did not.
  absl::Status status() const;

 private:
  GuestMemory* const memory_;
  const RunLog log_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<WorkloadRunner> runner_;  // uses workload_
  bool started_ = false;
  bool running_ = false;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_SIM_GUEST_H_
