// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "guest/atomic_bitmap.h"
#include "guest/errno_text.h"
#include "guest/tracker_kinds.h"
#include "guest/write_fault.h"

namespace mig::sim {
namespace {

// Memory is read-only until it is written. A fetch takes the bits first and
// protects the block after: a write between the two is before the page is
// handed over, and the page that a handler makes writable after it has its bit
// set after that. Protecting the whole block, in one call, also puts back
// together the mappings that single pages had split off.
class MprotectTracker final : public DirtyTracker {
 public:
  explicit MprotectTracker(const GuestMemory* memory) : memory_(memory) {}

  ~MprotectTracker() override {
    (void)Stop();
    for (const int slot : slots_) ForgetWatch(slot);
  }

  absl::string_view name() const override { return "mprotect"; }

  absl::Status Start() override {
    if (started_) {
      return absl::FailedPreconditionError("dirty tracking is on already");
    }
    for (const int slot : slots_) ForgetWatch(slot);
    slots_.clear();
    bits_.clear();
    started_ = true;
    for (const GuestBlock& block : memory_->blocks()) {
      absl::Status status = Watch(block);
      if (!status.ok()) {
        (void)Stop();
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& block,
                                         DirtyBitmap* out) override {
    absl::Status status = CheckFetch(*memory_, block, started_, out);
    if (!status.ok()) return status;
    const uint64_t pages = bits_[block.id]->DrainInto(out);
    status = Protect(block, PROT_READ);
    if (!status.ok()) return status;
    return pages;
  }

  absl::Status Stop() override {
    if (!started_) return absl::OkStatus();
    started_ = false;
    absl::Status status;
    for (const GuestBlock& block : memory_->blocks()) {
      status.Update(Protect(block, PROT_READ | PROT_WRITE));
    }
    for (const int slot : slots_) RetireWatch(slot);
    bits_.clear();
    return status;
  }

 private:
  absl::Status Watch(const GuestBlock& block) {
    bits_.push_back(std::make_unique<AtomicBitmap>(block.pages()));
    absl::StatusOr<int> slot = WatchWrites(
        block.base, block.length, block.host_page_size, bits_.back().get());
    if (!slot.ok()) return slot.status();
    slots_.push_back(*slot);
    return Protect(block, PROT_READ);
  }

  static absl::Status Protect(const GuestBlock& block, int protection) {
    if (mprotect(block.base, block.length, protection) == 0) {
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrFormat(
        "block '%s': mprotect of %u bytes: %s: raise vm.max_map_count, or use "
        "another kind of dirty tracking",
        block.name, block.length, ErrnoText(errno)));
  }

  const GuestMemory* memory_;
  bool started_ = false;
  std::vector<std::unique_ptr<AtomicBitmap>> bits_;  // by block
  // Kept after Stop for faults that were on their way; see RetireWatch.
  std::vector<int> slots_;
};

}  // namespace

std::unique_ptr<DirtyTracker> MakeMprotectTracker(const GuestMemory* memory) {
  return std::make_unique<MprotectTracker>(memory);
}

}  // namespace mig::sim
