// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "guest/errno_text.h"
#include "guest/kernel_uapi.h"
#include "guest/tracker_kinds.h"

namespace mig::sim {
namespace {

constexpr size_t kEntries = 16384;

// Clearing is for the whole process, so two of these would take each other's
// bits.
std::atomic<bool> g_in_use{false};

absl::Status Failed(absl::string_view call, int error) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s: needs /proc and CONFIG_MEM_SOFT_DIRTY", call, ErrnoText(error)));
}

// Reading the bits and clearing them are two steps, and whichever comes first,
// a write between them is lost. No order makes that safe for a guest that
// runs, so both are done while it is paused: a few hundred microseconds a GiB.
// Clearing forgets the bits of all blocks, so each pass reads them all and
// keeps those of the blocks not asked for.
class SoftDirtyTracker final : public DirtyTracker {
 public:
  SoftDirtyTracker(const GuestMemory* memory, PausedCall run_paused)
      : memory_(memory), run_paused_(std::move(run_paused)) {}
  ~SoftDirtyTracker() override { Close(); }

  absl::string_view name() const override { return "soft-dirty"; }
  absl::Status Start() override;
  absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& block,
                                         DirtyBitmap* out) override;
  absl::Status Stop() override {
    Close();
    return absl::OkStatus();
  }

 private:
  absl::Status Open();
  absl::Status CollectAndClear();
  absl::Status Collect(const GuestBlock& block, DirtyBitmap* pending);
  absl::Status ClearAll();
  void Close();

  const GuestMemory* memory_;
  PausedCall run_paused_;
  bool started_ = false;
  int pagemap_ = -1;
  int clear_refs_ = -1;
  std::vector<DirtyBitmap> pending_;  // by block
  std::array<uint64_t, kEntries> entries_{};
};

absl::Status SoftDirtyTracker::Start() {
  if (started_) {
    return absl::FailedPreconditionError("dirty tracking is on already");
  }
  if (g_in_use.exchange(true)) {
    return absl::FailedPreconditionError(
        "soft-dirty tracking is on elsewhere in this process, and there can "
        "be only one: stop that, or use another kind");
  }
  started_ = true;
  absl::Status status = Open();
  if (status.ok()) {
    // What was written before does not count.
    status = ClearAll();
  }
  if (!status.ok()) Close();
  return status;
}

absl::Status SoftDirtyTracker::Open() {
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap_ < 0) return Failed("/proc/self/pagemap", errno);
  clear_refs_ = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (clear_refs_ < 0) return Failed("/proc/self/clear_refs", errno);
  pending_.clear();
  for (const GuestBlock& block : memory_->blocks()) {
    pending_.emplace_back(block.pages());
  }
  return absl::OkStatus();
}

void SoftDirtyTracker::Close() {
  if (!started_) return;
  if (pagemap_ >= 0) close(pagemap_);
  if (clear_refs_ >= 0) close(clear_refs_);
  pagemap_ = clear_refs_ = -1;
  started_ = false;
  g_in_use = false;
}

absl::Status SoftDirtyTracker::ClearAll() {
  return write(clear_refs_, "4", 1) == 1
             ? absl::OkStatus()
             : Failed("writing to /proc/self/clear_refs", errno);
}

absl::Status SoftDirtyTracker::Collect(const GuestBlock& block,
                                       DirtyBitmap* pending) {
  const uint64_t first_entry =
      reinterpret_cast<uint64_t>(block.base) / kPageSize;
  for (uint64_t page = 0; page < block.pages();) {
    const size_t want = std::min<uint64_t>(kEntries, block.pages() - page);
    const ssize_t got = pread(pagemap_, entries_.data(), want * 8,
                              static_cast<off_t>((first_entry + page) * 8));
    if (got < 8)
      return Failed("reading /proc/self/pagemap", got < 0 ? errno : EIO);
    for (ssize_t i = 0; i < got / 8; ++i, ++page) {
      if ((entries_[i] & kPagemapSoftDirty) != 0) pending->Set(page);
    }
  }
  return absl::OkStatus();
}

absl::Status SoftDirtyTracker::CollectAndClear() {
  for (const GuestBlock& block : memory_->blocks()) {
    absl::Status status = Collect(block, &pending_[block.id]);
    if (!status.ok()) return status;
  }
  return ClearAll();
}

absl::StatusOr<uint64_t> SoftDirtyTracker::FetchAndClear(
    const GuestBlock& block, DirtyBitmap* out) {
  absl::Status status = CheckFetch(*memory_, block, started_, out);
  if (!status.ok()) return status;
  status = absl::InternalError("the guest could not be paused");
  run_paused_([&] { status = CollectAndClear(); });
  if (!status.ok()) return status;
  DirtyBitmap& pending = pending_[block.id];
  const uint64_t pages = pending.Count();
  out->Merge(pending);
  pending.ClearAll();
  return pages;
}

}  // namespace

std::unique_ptr<DirtyTracker> MakeSoftDirtyTracker(const GuestMemory* memory,
                                                   PausedCall run_paused) {
  return std::make_unique<SoftDirtyTracker>(memory, std::move(run_paused));
}

}  // namespace mig::sim
