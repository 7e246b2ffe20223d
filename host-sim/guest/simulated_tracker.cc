// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <vector>

#include "guest/atomic_bitmap.h"
#include "guest/tracker_kinds.h"

namespace mig::sim {
namespace {

// No kernel, no faults, the same on every machine: what a simulation under a
// virtual clock needs.
class SimulatedTracker final : public DirtyTracker, public WriteObserver {
 public:
  explicit SimulatedTracker(const GuestMemory* memory) : memory_(memory) {
    for (const GuestBlock& block : memory->blocks()) {
      bits_.push_back(std::make_unique<AtomicBitmap>(block.pages()));
    }
  }

  absl::string_view name() const override { return "simulated"; }

  absl::Status Start() override {
    if (started_) {
      return absl::FailedPreconditionError("dirty tracking is on already");
    }
    for (const auto& bits : bits_) bits->ClearAll();
    started_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& block,
                                         DirtyBitmap* out) override {
    absl::Status status = CheckFetch(*memory_, block, started_, out);
    if (!status.ok()) return status;
    return bits_[block.id]->DrainInto(out);
  }

  absl::Status Stop() override {
    started_ = false;
    return absl::OkStatus();
  }

  WriteObserver* observer() override { return this; }

  void OnWrite(uint32_t block_id, uint64_t offset, uint64_t length) override {
    if (length == 0) return;
    const uint64_t last = (offset + length - 1) / kPageSize;
    for (uint64_t page = offset / kPageSize; page <= last; ++page) {
      bits_[block_id]->Set(page);
    }
  }

 private:
  const GuestMemory* memory_;
  bool started_ = false;
  std::vector<std::unique_ptr<AtomicBitmap>> bits_;  // by block
};

}  // namespace

std::unique_ptr<DirtyTracker> MakeSimulatedTracker(const GuestMemory* memory) {
  return std::make_unique<SimulatedTracker>(memory);
}

}  // namespace mig::sim
