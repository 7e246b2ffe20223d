// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/workload.h"

#include <chrono>
#include <cstring>

#include "absl/strings/str_format.h"
#include "guest/parse.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

constexpr uint64_t kMagic = 0x31545345554747ff;  // "\xffGGUEST1"

struct Kind {
  absl::string_view name;
  WorkloadMaker make;
};

constexpr Kind kKinds[] = {
    {"idle", MakeIdle},       {"uniform", MakeUniform},
    {"hotset", MakeHotset},   {"sequential", MakeSequential},
    {"trace", MakeTrace},     {"bank", MakeBank},
    {"machine", MakeMachine},
};

int64_t SteadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> Workload::ExpectedVersions() {
  return absl::UnimplementedError(absl::StrFormat(
      "workload '%s' keeps no page versions: use its Verify", spec()));
}

absl::Status Workload::CheckVersions(const std::vector<uint32_t>& table) {
  (void)table;
  return ExpectedVersions().status();
}

absl::Status Workload::CreateControl() {
  ControlPage* page = control();
  if (spec().size() > sizeof(page->spec)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "workload of %u characters: give at most %u, with a shorter path",
        spec().size(), sizeof(page->spec)));
  }
  memset(static_cast<void*>(page), 0, kPageSize);
  page->magic = kMagic;
  page->seed = seed();
  page->spec_length = spec().size();
  memcpy(page->spec, spec().data(), spec().size());
  NoteWrite(0, 0, kPageSize);
  return absl::OkStatus();
}

absl::Status Workload::OpenControl() {
  const ControlPage* page = control();
  if (page->magic != kMagic || page->spec_length > sizeof(page->spec)) {
    return absl::DataLossError(absl::StrFormat(
        "block '%s', page 0: no guest there (magic 0x%x, not 0x%x): migrate "
        "one first",
        memory().blocks()[0].name, page->magic, kMagic));
  }
  const absl::string_view found(page->spec, page->spec_length);
  if (found != spec()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "guest memory holds the workload '%s', not '%s': give the same", found,
        spec()));
  }
  setup_.seed = page->seed;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const std::string& spec,
                                                       GuestMemory* memory,
                                                       uint64_t seed,
                                                       GuestClock clock) {
  absl::StatusOr<SpecReader> reader = SpecReader::Parse(spec);
  if (!reader.ok()) return reader.status();
  if (memory->blocks().empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "workload '%s': guest memory has 0 blocks: give at least one", spec));
  }
  if (clock == nullptr) clock = SteadyNs;
  std::string names;
  for (const Kind& kind : kKinds) {
    if (reader->kind() != kind.name) {
      absl::StrAppendFormat(&names, "%s%s", names.empty() ? "" : ", ",
                            kind.name);
      continue;
    }
    absl::StatusOr<std::unique_ptr<Workload>> workload =
        kind.make(&*reader, {spec, memory, seed, std::move(clock)});
    if (!workload.ok()) return workload;
    absl::Status status = reader->Finish();
    if (!status.ok()) return status;
    return workload;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "workload '%s' is unknown: give one of %s", reader->kind(), names));
}

absl::StatusOr<std::unique_ptr<Workload>> AttachWorkload(GuestMemory* memory,
                                                         GuestClock clock) {
  if (memory->blocks().empty()) {
    return absl::DataLossError("no guest in memory of 0 blocks");
  }
  Workload::ControlPage page;
  memcpy(static_cast<void*>(&page), memory->blocks()[0].base, sizeof(page));
  if (page.magic != kMagic || page.spec_length > sizeof(page.spec)) {
    return absl::DataLossError(absl::StrFormat(
        "block '%s', page 0: no guest there (magic 0x%x, not 0x%x): migrate "
        "one first",
        memory->blocks()[0].name, page.magic, kMagic));
  }
  absl::StatusOr<std::unique_ptr<Workload>> workload =
      MakeWorkload(std::string(page.spec, page.spec_length), memory, page.seed,
                   std::move(clock));
  if (!workload.ok()) {
    return absl::DataLossError(absl::StrFormat("block '%s', page 0: %s",
                                               memory->blocks()[0].name,
                                               workload.status().message()));
  }
  absl::Status status = (*workload)->Attach();
  if (!status.ok()) return status;
  return workload;
}

}  // namespace mig::sim
