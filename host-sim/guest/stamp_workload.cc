// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/stamp_workload.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/parallel.h"
#include "guest/presence_map.h"
#include "guest/random.h"

namespace mig::sim {
namespace {

// Under write-protect a first write costs 15-18 us: eight stay below 200 us.
constexpr uint64_t kPagesPerStep = 8;
constexpr uint64_t kPagesPerSlice = 8192;
constexpr size_t kShownPages = 4;

}  // namespace

StampWorkload::StampWorkload(WorkloadSetup setup, const StampOptions& options)
    : Workload(std::move(setup)),
      options_(options),
      pacer_(static_cast<double>(options.rate) / kPageSize,
             this->setup().clock) {
  uint64_t start = 0;
  for (const GuestBlock& block : memory().blocks()) {
    starts_.push_back(start);
    start += block.pages();
  }
  starts_.push_back(start);
}

absl::Status StampWorkload::CheckRoom() const {
  const uint64_t first_block = memory().blocks()[0].pages();
  if (total_pages() > reserved_pages() && first_block >= reserved_pages()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "workload '%s': block '%s' of %u pages has no room for %u pages of state "
      "and a page to write: give it at least %u bytes",
      spec(), memory().blocks()[0].name, first_block, reserved_pages(),
      (reserved_pages() + 1) * kPageSize));
}

absl::Status StampWorkload::Init() {
  absl::Status status = CreateControl();
  if (status.ok()) status = InitState();
  if (status.ok()) status = CheckRoom();
  if (!status.ok()) return status;
  Fill();
  return absl::OkStatus();
}

absl::Status StampWorkload::Attach() {
  absl::Status status = OpenControl();
  if (status.ok()) status = CheckState();
  if (status.ok()) status = CheckRoom();
  expected_.clear();
  return status;
}

absl::Status StampWorkload::Step() {
  const uint64_t pages = pacer_.Take(kPagesPerStep);
  if (pages == 0) return absl::OkStatus();
  for (uint64_t i = 0; i < pages; ++i) WritePage(NextPage());
  FinishStep();
  return absl::OkStatus();
}

void StampWorkload::Fill() {
  expected_.assign(total_pages(), 0);
  const uint64_t slices = (total_pages() + kPagesPerSlice - 1) / kPagesPerSlice;
  std::mutex observed;  // the observer expects one writer
  ParallelFor(slices, 0, [&](uint64_t slice) {
    const uint64_t end = std::min((slice + 1) * kPagesPerSlice, total_pages());
    uint64_t page = std::max(slice * kPagesPerSlice, reserved_pages());
    for (; page < end; ++page) {
      if (Mix(seed() ^ Mix(page)) % 100 >= options_.fill_percent) continue;
      const Place place = PlaceOf(page);
      WriteStamp(place.data, place.id, 1);
      expected_[page] = 1;
      const std::lock_guard<std::mutex> lock(observed);
      NoteWrite(place.id.block, place.id.page * kPageSize, kPageSize);
    }
  });
}

void StampWorkload::WritePage(uint64_t number) {
  const Place place = PlaceOf(number);
  uint32_t version = StampVersion(place.data) + 1;
  if (version == 0) version = 1;  // after 2^32 - 1 writes
  WriteStamp(place.data, place.id, version);
  if (!expected_.empty()) expected_[number] = version;
  NoteWrite(place.id.block, place.id.page * kPageSize, kPageSize);
}

StampWorkload::Place StampWorkload::PlaceOf(uint64_t number) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), number);
  const auto id = static_cast<uint32_t>(next - starts_.begin() - 1);
  const GuestBlock& block = memory().blocks()[id];
  const uint64_t page = number - starts_[id];
  return {&block, {seed(), id, page}, block.base + page * kPageSize};
}

std::string StampWorkload::NameOf(uint64_t number) const {
  const Place place = PlaceOf(number);
  return absl::StrFormat("block '%s', page %u (offset 0x%x)", place.block->name,
                         place.id.page, place.id.page * kPageSize);
}

void StampWorkload::VisitPages(
    const std::function<void(uint64_t, bool)>& visit) const {
  for (const GuestBlock& block : memory().blocks()) {
    const uint64_t slices =
        (block.pages() + kPagesPerSlice - 1) / kPagesPerSlice;
    ParallelFor(slices, 0, [&](uint64_t slice) {
      PresenceMap presence;
      const uint64_t first = slice * kPagesPerSlice;
      const uint64_t count = std::min(kPagesPerSlice, block.pages() - first);
      for (const PresenceMap::Run& run : presence.Runs(block, first, count)) {
        for (uint64_t i = 0; i < run.count; ++i) {
          const uint64_t number = starts_[block.id] + run.first + i;
          if (number >= reserved_pages()) visit(number, run.present);
        }
      }
    });
  }
}

absl::Status StampWorkload::CheckPages(
    const std::function<std::string(uint64_t, bool)>& explain) const {
  std::mutex mutex;
  uint64_t count = 0;
  std::map<uint64_t, std::string> first;  // the lowest few
  VisitPages([&](uint64_t number, bool present) {
    std::string problem = explain(number, present);
    if (problem.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    ++count;
    first.emplace(number, std::move(problem));
    if (first.size() > kShownPages) first.erase(std::prev(first.end()));
  });
  if (count == 0) return absl::OkStatus();
  std::string text;
  for (const auto& [number, problem] : first) {
    absl::StrAppendFormat(&text, "%s%s: %s", text.empty() ? "" : "; ",
                          NameOf(number), problem);
  }
  return absl::DataLossError(
      absl::StrFormat("%u of %u pages are wrong: %s%s", count, stamped_pages(),
                      text, count > first.size() ? "; ..." : ""));
}

absl::Status StampWorkload::Verify() {
  return CheckPages([this](uint64_t number, bool present) -> std::string {
    if (!present) return "";
    const Place place = PlaceOf(number);
    return ExplainStamp(place.data, place.id);
  });
}

std::vector<uint32_t> StampWorkload::ReadVersions() const {
  std::vector<uint32_t> versions(total_pages(), 0);
  VisitPages([&](uint64_t number, bool present) {
    if (present) versions[number] = StampVersion(PlaceOf(number).data);
  });
  return versions;
}

absl::StatusOr<std::vector<uint32_t>> StampWorkload::ExpectedVersions() {
  if (expected_.empty()) expected_ = ReadVersions();
  return expected_;
}

absl::Status StampWorkload::CheckVersions(const std::vector<uint32_t>& table) {
  if (table.size() != total_pages()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a table of %u page versions for a guest of %u pages: give the "
        "source's, of the same memory",
        table.size(), total_pages()));
  }
  absl::Status status =
      CheckPages([&](uint64_t number, bool present) -> std::string {
        const uint32_t found = present ? StampVersion(PlaceOf(number).data) : 0;
        if (found == table[number]) return "";
        return absl::StrFormat("%s: version %u where %u was written last",
                               found < table[number] ? "stale" : "too new",
                               found, table[number]);
      });
  if (status.ok()) expected_ = table;
  return status;
}

absl::Status StampWorkload::StateLost(absl::string_view what, uint64_t value,
                                      uint64_t limit) const {
  return absl::DataLossError(absl::StrFormat(
      "workload '%s': block '%s', page 0: %s is %u, not below %u: the state "
      "did not come over whole",
      spec(), memory().blocks()[0].name, what, value, limit));
}

std::string StampWorkload::Summary() const {
  return absl::StrFormat("%s: %u steps over %u pages", spec(), steps(),
                         stamped_pages());
}

}  // namespace mig::sim
