// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <utility>

#include "guest/stamp_workload.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

// In guest memory.
struct SequentialState {
  uint64_t next;
};

// Page after page through all blocks, and again.
class SequentialWorkload final : public StampWorkload {
 public:
  SequentialWorkload(WorkloadSetup setup, const StampOptions& options)
      : StampWorkload(std::move(setup), options) {}

 protected:
  absl::Status InitState() override {
    state<SequentialState>()->next = 0;
    return absl::OkStatus();
  }

  absl::Status CheckState() override {
    const uint64_t next = state<SequentialState>()->next;
    if (next < stamped_pages()) return absl::OkStatus();
    return StateLost("the next page", next, stamped_pages());
  }

  uint64_t NextPage() override {
    uint64_t* next = &state<SequentialState>()->next;
    const uint64_t page = *next;
    *next = page + 1 == stamped_pages() ? 0 : page + 1;
    return reserved_pages() + page;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeSequential(SpecReader* reader,
                                                         WorkloadSetup setup) {
  StampOptions options;
  absl::Status status = options.TakeFill(reader);
  if (status.ok()) status = options.TakeRate(reader);
  if (!status.ok()) return status;
  return std::make_unique<SequentialWorkload>(std::move(setup), options);
}

}  // namespace mig::sim
