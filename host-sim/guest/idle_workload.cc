// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <utility>

#include "guest/stamp_workload.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

constexpr int64_t kNapNs = 10'000'000;

class IdleWorkload final : public StampWorkload {
 public:
  IdleWorkload(WorkloadSetup setup, const StampOptions& options)
      : StampWorkload(std::move(setup), options) {}

  absl::Status Step() override { return absl::OkStatus(); }
  int64_t DelayNs() override { return kNapNs; }

 protected:
  absl::Status InitState() override { return absl::OkStatus(); }
  absl::Status CheckState() override { return absl::OkStatus(); }
  uint64_t NextPage() override { return reserved_pages(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeIdle(SpecReader* reader,
                                                   WorkloadSetup setup) {
  StampOptions options;
  absl::Status status = options.TakeFill(reader);
  if (!status.ok()) return status;
  return std::make_unique<IdleWorkload>(std::move(setup), options);
}

}  // namespace mig::sim
