// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_STAMP_WORKLOAD_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_STAMP_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "guest/pacer.h"
#include "guest/parse.h"
#include "guest/stamp.h"
#include "guest/workload.h"

namespace mig::sim {

// The options that stamping workloads share.
struct StampOptions {
  uint64_t fill_percent = 100;
  uint64_t rate = 0;  // bytes a second; 0: no limit

  absl::Status TakeFill(SpecReader* reader) {
    return reader->TakePercent("fill", &fill_percent);
  }
  absl::Status TakeRate(SpecReader* reader) {
    return reader->TakeSize("rate", &rate);
  }
};

// A workload whose every write is a whole page with the next version's stamp.
// Pages are numbered over all blocks in order; the first reserved_pages() of
// them hold its state, the others are stamped.
class StampWorkload : public Workload {
 public:
  absl::Status Init() override;
  absl::Status Attach() override;
  absl::Status Step() override;
  absl::Status Verify() override;
  std::string Summary() const override;
  int64_t DelayNs() override { return pacer_.DelayNs(); }
  void SkipTime(int64_t ns) override { pacer_.Skip(ns); }
  absl::StatusOr<std::vector<uint32_t>> ExpectedVersions() override;
  absl::Status CheckVersions(const std::vector<uint32_t>& table) override;

 protected:
  StampWorkload(WorkloadSetup setup, const StampOptions& options);

  // Writes the first state; sees whether the state found is possible.
  virtual absl::Status InitState() = 0;
  virtual absl::Status CheckState() = 0;
  // The page to write next, in [reserved_pages(), total_pages()).
  virtual uint64_t NextPage() = 0;

  // Known after InitState or CheckState.
  virtual uint64_t reserved_pages() const { return 1; }
  uint64_t total_pages() const { return starts_.back(); }
  uint64_t stamped_pages() const { return total_pages() - reserved_pages(); }

  // OK if the state fits, with a page to write beside it.
  absl::Status CheckRoom() const;

  void WritePage(uint64_t number);
  // The number of page 0 of block `id`.
  uint64_t FirstPageOf(uint32_t id) const { return starts_[id]; }
  absl::Status StateLost(absl::string_view what, uint64_t value,
                         uint64_t limit) const;

 private:
  struct Place {
    const GuestBlock* block;
    StampId id;
    std::byte* data;
  };
  Place PlaceOf(uint64_t number) const;
  std::string NameOf(uint64_t number) const;
  void Fill();
  // Calls `visit(page number, present)` for each stamped page from several
  // threads.
  void VisitPages(const std::function<void(uint64_t, bool)>& visit) const;
  // What `explain(page number, present)` finds wrong, put into one error.
  absl::Status CheckPages(
      const std::function<std::string(uint64_t, bool)>& explain) const;
  std::vector<uint32_t> ReadVersions() const;

  StampOptions options_;
  Pacer pacer_;
  std::vector<uint64_t> starts_;  // by block, and the total last
  // By page number. Kept here and not in the guest, so that it is a witness.
  // Empty at a destination that was not told.
  std::vector<uint32_t> expected_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_STAMP_WORKLOAD_H_
