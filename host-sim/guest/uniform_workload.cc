// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <utility>

#include "guest/random.h"
#include "guest/stamp_workload.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

// In guest memory.
struct UniformState {
  Random random;
  uint64_t key;
  uint64_t done;  // pages of this lap
};

// Laps over all pages, each in a random order of its own. So a page is not
// written twice before all others were, and a rate is one of distinct pages.
class UniformWorkload final : public StampWorkload {
 public:
  UniformWorkload(WorkloadSetup setup, const StampOptions& options)
      : StampWorkload(std::move(setup), options) {}

 protected:
  absl::Status InitState() override {
    auto* lap = state<UniformState>();
    lap->random.state = seed();
    lap->key = lap->random.Next();
    lap->done = 0;
    return absl::OkStatus();
  }

  absl::Status CheckState() override {
    const uint64_t done = state<UniformState>()->done;
    if (done < stamped_pages()) return absl::OkStatus();
    return StateLost("the place in the lap", done, stamped_pages());
  }

  uint64_t NextPage() override {
    auto* lap = state<UniformState>();
    const uint64_t page = Permute(lap->done, stamped_pages(), lap->key);
    if (++lap->done == stamped_pages()) {
      lap->done = 0;
      lap->key = lap->random.Next();
    }
    return reserved_pages() + page;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeUniform(SpecReader* reader,
                                                      WorkloadSetup setup) {
  StampOptions options;
  absl::Status status = options.TakeFill(reader);
  if (status.ok()) status = options.TakeRate(reader);
  if (!status.ok()) return status;
  return std::make_unique<UniformWorkload>(std::move(setup), options);
}

}  // namespace mig::sim
