// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/dirty_tracker.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/tracker_kinds.h"

namespace mig::sim {
namespace {

constexpr uint64_t kProbePages = 16;

std::unique_ptr<DirtyTracker> MakeKind(absl::string_view kind,
                                       const GuestMemory* memory,
                                       PausedCall run_paused) {
  if (kind == "uffd") return MakeUffdTracker(memory);
  if (kind == "soft-dirty") {
    return MakeSoftDirtyTracker(memory, std::move(run_paused));
  }
  if (kind == "mprotect") return MakeMprotectTracker(memory);
  if (kind == "simulated") return MakeSimulatedTracker(memory);
  return nullptr;
}

// Writes the pages `written`, and sees whether just those are reported.
absl::Status TryOnce(DirtyTracker* tracker, const GuestBlock& block,
                     const std::vector<uint64_t>& written) {
  DirtyBitmap expected(block.pages());
  for (const uint64_t page : written) {
    *reinterpret_cast<volatile unsigned char*>(block.base +
                                               page * block.page_size) = 1;
    expected.Set(page);
  }
  DirtyBitmap seen(block.pages());
  absl::StatusOr<uint64_t> count = tracker->FetchAndClear(block, &seen);
  if (!count.ok()) return count.status();
  if (seen == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%u of %u probe pages were written and %u reported",
                      expected.Count(), block.pages(), seen.Count()));
}

// Some kernels take every call and then report nothing: so write, and look.
absl::Status Probe(absl::string_view kind) {
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(
      {{.name = "probe", .size = kProbePages * kPageSize, .path = ""}});
  if (!memory.ok()) return memory.status();
  const GuestBlock& block = memory->blocks().front();
  *block.base = std::byte{1};  // one page is there beforehand
  std::unique_ptr<DirtyTracker> tracker = MakeKind(
      kind, &*memory, [](const std::function<void()>& call) { call(); });
  absl::Status status = tracker->Start();
  if (!status.ok()) return status;
  for (const std::vector<uint64_t>& written :
       std::vector<std::vector<uint64_t>>{{0, 5, 15}, {}, {5, 6}}) {
    status = TryOnce(tracker.get(), block, written);
    if (!status.ok()) break;
  }
  status.Update(tracker->Stop());
  return status;
}

absl::Status CheckMemory(absl::string_view kind, const GuestMemory& memory,
                         const PausedCall& run_paused) {
  if (kind != "soft-dirty") return absl::OkStatus();
  if (run_paused == nullptr) {
    return absl::FailedPreconditionError(
        "it needs a way to pause the guest while bits are read and cleared");
  }
  for (const GuestBlock& block : memory.blocks()) {
    if (block.backing == Backing::kMemfd ||
        block.backing == Backing::kHugetlb) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "block '%s' is %s, whose soft-dirty bits the kernel does not keep",
          block.name, block.backing == Backing::kMemfd ? "memfd" : "hugetlb"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFetch(const GuestMemory& memory, const GuestBlock& block,
                        bool started, const DirtyBitmap* out) {
  if (!started) {
    return absl::FailedPreconditionError(
        "dirty pages fetched while tracking is off: call Start first");
  }
  if (block.id >= memory.blocks().size() ||
      memory.blocks()[block.id].base != block.base ||
      out->size() != block.pages()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "dirty pages of block '%s' (%u pages) fetched into %u bits: give a "
        "block of this memory, and one bit a page",
        block.name, block.pages(), out->size()));
  }
  return absl::OkStatus();
}

AutoKinds AutoTrackerKinds(bool pinned) {
  if (pinned) return {"uffd", "mprotect", "soft-dirty"};
  return {"uffd", "soft-dirty", "mprotect"};
}

absl::StatusOr<TrackerChoice> MakeDirtyTracker(absl::string_view kind,
                                               const GuestMemory* memory,
                                               PausedCall run_paused,
                                               bool pinned) {
  if (kind == "simulated") {
    return TrackerChoice{MakeSimulatedTracker(memory),
                         "simulated: as the workload reports"};
  }
  std::string refused;
  bool known = kind == "auto";
  for (const absl::string_view candidate : AutoTrackerKinds(pinned)) {
    if (kind != "auto" && kind != candidate) continue;
    known = true;
    absl::Status status = CheckMemory(candidate, *memory, run_paused);
    if (status.ok()) status = Probe(candidate);
    if (status.ok()) {
      return TrackerChoice{
          MakeKind(candidate, memory, std::move(run_paused)),
          absl::StrCat(candidate,
                       kind != "auto" ? ": as asked"
                       : pinned
                           ? ": the best that works here with pinned memory"
                           : ": the best that works here",
                       refused.empty() ? "" : "; not ", refused)};
    }
    absl::StrAppend(&refused, refused.empty() ? "" : ", ", candidate, " (",
                    status.message(), ")");
  }
  if (!known) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "dirty tracking '%s' is unknown: give auto, uffd, soft-dirty, mprotect "
        "or simulated",
        kind));
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("dirty tracking '%s' does not work here: %s: use another",
                      kind, refused));
}

}  // namespace mig::sim
