// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/sim_guest.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "engine/wire.h"

namespace mig::sim {

absl::StatusOr<std::unique_ptr<SimGuest>> SimGuest::Create(
    const std::string& spec, GuestMemory* memory, uint64_t seed, RunLog log) {
  auto guest = std::make_unique<SimGuest>(memory, std::move(log));
  absl::StatusOr<std::unique_ptr<Workload>> workload =
      MakeWorkload(spec, memory, seed);
  if (!workload.ok()) return workload.status();
  guest->workload_ = *std::move(workload);
  absl::Status status = guest->workload_->Init();
  if (!status.ok()) return status;
  guest->runner_ = std::make_unique<WorkloadRunner>(guest->workload_.get());
  return guest;
}

SimGuest::~SimGuest() {
  if (running_) log_.Note("stop");
}

absl::Status SimGuest::Run() {
  if (running_) return absl::OkStatus();
  if (runner_ == nullptr) {
    return absl::FailedPreconditionError("there is no guest to run");
  }
  log_.Note("run");
  running_ = true;
  if (started_) {
    runner_->Resume();
    return absl::OkStatus();
  }
  started_ = true;
  return runner_->Start();
}

absl::Status SimGuest::Stop() {
  if (!running_) return absl::OkStatus();
  runner_->Pause();
  running_ = false;
  log_.Note("stop");
  return status();
}

void SimGuest::SetThrottle(uint32_t percent) {
  if (runner_ != nullptr) runner_->SetThrottle(static_cast<int>(percent));
}

void SimGuest::RunPaused(const std::function<void()>& call) {
  runner_->RunPaused(call);
}

absl::Status SimGuest::Observe(WriteObserver* observer) {
  if (!workload_->ReportsWrites()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload '", workload_->spec(),
        "' can't report its writes: use another tracker than simulated"));
  }
  workload_->set_observer(observer);
  return absl::OkStatus();
}

absl::Status SimGuest::status() const {
  if (runner_ == nullptr) return absl::OkStatus();
  return WithContext(runner_->status(), "the guest failed");
}

absl::StatusOr<StateSections> SimGuest::SaveState() {
  WireWriter writer;
  writer.PutString(workload_->spec());
  writer.Put(workload_->steps());
  return StateSections{{kSectionGuest, writer.Take()}};
}

absl::Status SimGuest::LoadState(const StateSections& sections) {
  const auto found = sections.find(kSectionGuest);
  if (found == sections.end()) {
    return absl::InvalidArgumentError(
        "the device state has no part of the guest: run the same mig-host-sim "
        "on both sides");
  }
  WireReader reader(found->second);
  const std::string spec = reader.GetString();
  const auto steps = reader.Get<uint64_t>();
  if (!reader.complete()) {
    return absl::InvalidArgumentError(
        "the guest's part of the device state is malformed: run the same "
        "mig-host-sim on both sides");
  }
  absl::StatusOr<std::unique_ptr<Workload>> workload = AttachWorkload(memory_);
  if (!workload.ok()) return workload.status();
  if ((*workload)->spec() != spec || (*workload)->steps() != steps) {
    return absl::DataLossError(
        absl::StrCat("the memory is not what the state belongs to: it holds '",
                     (*workload)->spec(), "' after ", (*workload)->steps(),
                     " steps, and the state is of '", spec, "' after ", steps));
  }
  workload_ = *std::move(workload);
  runner_ = std::make_unique<WorkloadRunner>(workload_.get());
  return absl::OkStatus();
}

Bytes SimGuest::SaveExpected() {
  absl::StatusOr<std::vector<uint32_t>> versions =
      workload_->ExpectedVersions();
  if (!versions.ok()) return {};
  WireWriter writer;
  for (const uint32_t version : *versions) writer.Put(version);
  return writer.Take();
}

absl::Status SimGuest::Check(const Bytes& expected) {
  absl::Status status = workload_->Verify();
  if (!status.ok() || expected.empty()) return status;
  if (expected.size() != memory_->total_pages() * sizeof(uint32_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat("page versions of ", expected.size(), " bytes where ",
                     memory_->total_pages(),
                     " pages have 4 each: run the same "
                     "mig-host-sim on both sides"));
  }
  WireReader reader(expected);
  std::vector<uint32_t> versions(memory_->total_pages());
  for (uint32_t& version : versions) version = reader.Get<uint32_t>();
  return workload_->CheckVersions(versions);
}

std::string SimGuest::Work() const {
  return workload_ == nullptr ? "nothing yet" : workload_->Summary();
}

}  // namespace mig::sim
