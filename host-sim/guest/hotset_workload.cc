// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/random.h"
#include "guest/stamp_workload.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

// In guest memory.
struct HotsetState {
  Random random;
};

// Most writes go to the first pages, the others to the rest; each picks a page
// at random.
class HotsetWorkload final : public StampWorkload {
 public:
  HotsetWorkload(WorkloadSetup setup, const StampOptions& options,
                 uint64_t hot_pages, double share)
      : StampWorkload(std::move(setup), options),
        hot_pages_(hot_pages),
        share_(share) {}

 protected:
  absl::Status InitState() override {
    state<HotsetState>()->random.state = seed();
    return absl::OkStatus();
  }
  absl::Status CheckState() override { return absl::OkStatus(); }

  uint64_t NextPage() override {
    Random* random = &state<HotsetState>()->random;
    const uint64_t hot = std::clamp(hot_pages_, uint64_t{1}, stamped_pages());
    const uint64_t cold = stamped_pages() - hot;
    const double chance = static_cast<double>(random->Next() >> 11) * 0x1p-53;
    const uint64_t page = cold == 0 || chance < share_
                              ? random->Below(hot)
                              : hot + random->Below(cold);
    return reserved_pages() + page;
  }

 private:
  uint64_t hot_pages_;
  double share_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeHotset(SpecReader* reader,
                                                     WorkloadSetup setup) {
  StampOptions options;
  const uint64_t bytes = setup.memory->total_bytes();
  uint64_t size = std::max(kPageSize, bytes / 4 / kPageSize * kPageSize);
  double share = 0.9;
  absl::Status status = options.TakeFill(reader);
  if (status.ok()) status = options.TakeRate(reader);
  if (status.ok()) status = reader->TakeSize("size", &size);
  if (status.ok()) status = reader->TakeShare("share", &share);
  if (!status.ok()) return status;
  if (size == 0 || size > bytes || size % kPageSize != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "hotset:size: %u is not possible in %u bytes of guest memory: give a "
        "multiple of %u up to that",
        size, bytes, kPageSize));
  }
  return std::make_unique<HotsetWorkload>(std::move(setup), options,
                                          size / kPageSize, share);
}

}  // namespace mig::sim
