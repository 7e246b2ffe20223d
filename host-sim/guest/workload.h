// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "guest/guest_memory.h"
#include "guest/write_observer.h"

namespace mig::sim {

// Nanoseconds since some fixed moment; never goes back.
using GuestClock = std::function<int64_t()>;

// What every workload is made with.
struct WorkloadSetup {
  std::string spec;
  GuestMemory* memory = nullptr;  // outlives the workload
  uint64_t seed = 0;
  GuestClock clock;
};

// A guest. All that it needs to go on is in guest memory whenever no call is
// running, so that a destination which has the bytes has the guest. Page 0 of
// block 0 is the control page: what is running there, its seed and its state.
// Calls come from one thread at a time.
class Workload {
 public:
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // A fresh guest: writes the first contents. Memory must be all zero, or a
  // file's image. InvalidArgument if it is too small.
  virtual absl::Status Init() = 0;

  // A guest that was running elsewhere: takes everything from guest memory.
  // DataLoss or FailedPrecondition, saying what is wrong, if that is not one
  // of the same spec. Trusts nothing it finds.
  virtual absl::Status Attach() = 0;

  // A short piece of work, below about 200 us. An error ends the guest.
  virtual absl::Status Step() = 0;

  // Checks the contents; DataLoss names block, page and offset.
  virtual absl::Status Verify() = 0;

  // One line: what was done so far.
  virtual std::string Summary() const = 0;

  // True when it has come to its end; Step then does nothing.
  virtual bool Done() const { return false; }

  // False if it cannot tell its observer what it writes.
  virtual bool ReportsWrites() const { return true; }

  // How long from now until Step has something to do, in ns.
  virtual int64_t DelayNs() { return 0; }

  // The guest was not allowed to run for `ns`: do not catch up on it.
  virtual void SkipTime(int64_t ns) { (void)ns; }

  // The version that each page should have, over all blocks in order, kept
  // outside the guest; and the check of this guest's pages against such a
  // table, which finds pages that are whole but old. Unimplemented for
  // workloads without page versions.
  virtual absl::StatusOr<std::vector<uint32_t>> ExpectedVersions();
  virtual absl::Status CheckVersions(const std::vector<uint32_t>& table);

  // Steps since Init, here and before the migration.
  uint64_t steps() const { return control()->steps; }
  const std::string& spec() const { return setup_.spec; }

  // Told of every write from now on; null for none. Not while a call runs.
  void set_observer(WriteObserver* observer) { observer_ = observer; }

 protected:
  struct ControlPage {
    uint64_t magic;
    uint64_t seed;
    uint64_t steps;
    uint64_t spec_length;
    char spec[1024];
    uint64_t reserved[120];
    unsigned char state[2048];  // of the workload
  };
  static_assert(sizeof(ControlPage) <= kPageSize);

  explicit Workload(WorkloadSetup setup) : setup_(std::move(setup)) {}

  absl::Status CreateControl();
  absl::Status OpenControl();
  ControlPage* control() const {
    return reinterpret_cast<ControlPage*>(memory().blocks()[0].base);
  }

  // The workload's own part of the control page.
  template <typename State>
  State* state() const {
    static_assert(std::is_trivially_copyable_v<State> &&
                  sizeof(State) <= sizeof(ControlPage::state));
    return reinterpret_cast<State*>(control()->state);
  }

  // Counts a step and reports the control page. The last thing a Step does.
  void FinishStep() {
    ++control()->steps;
    NoteWrite(0, 0, kPageSize);
  }
  void NoteWrite(uint32_t block, uint64_t offset, uint64_t length) {
    if (observer_ != nullptr) observer_->OnWrite(block, offset, length);
  }

  const GuestMemory& memory() const { return *setup_.memory; }
  const WorkloadSetup& setup() const { return setup_; }
  uint64_t seed() const { return setup_.seed; }

 private:
  friend absl::StatusOr<std::unique_ptr<Workload>> AttachWorkload(
      GuestMemory* memory, GuestClock clock);

  WorkloadSetup setup_;
  WriteObserver* observer_ = nullptr;
};

// Makes the workload of `spec`, to be followed by Init or Attach:
//   idle                         writes nothing
//   uniform                      pages all over the memory
//   hotset:size=BYTES,share=X    a share X (0.9) of the writes in BYTES (a
//                                quarter of the memory)
//   sequential                   page after page, round and round
//   trace:FILE                   what FILE says, see TRACE.md; loop=N times
//   bank:accounts=N              an SQLite database; rate=N transfers a second
//   machine:instructions=N       a small computer; step=N instructions a Step,
//                                memory=BYTES of data
// The first five take fill=all|none|PERCENT (all): how many pages have contents
// at first; the first four but idle take rate=BYTES of pages a second (no
// limit), which for uniform and sequential are distinct pages as long as that
// is less than the memory. `memory` outlives the workload; `clock` (steady
// time if null) is what rates and traces go by. InvalidArgument names the bad
// option.
absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(
    const std::string& spec, GuestMemory* memory, uint64_t seed,
    GuestClock clock = nullptr);

// Makes and attaches the workload that guest memory says it holds: all that a
// destination needs. DataLoss if there is none.
absl::StatusOr<std::unique_ptr<Workload>> AttachWorkload(
    GuestMemory* memory, GuestClock clock = nullptr);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_WORKLOAD_H_
