// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a user writes for mig-host-sim: values, blocks, workloads and traces.
#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "check.h"
#include "cli/parse_values.h"
#include "guest/guest_memory.h"
#include "guest/parse.h"
#include "guest/trace_file.h"
#include "guest/workload.h"

namespace mig::sim {
namespace {

using Input = std::span<const uint8_t>;

constexpr uint64_t kBlockBytes = 64 * kPageSize;

std::string Text(Input input) { return {input.begin(), input.end()}; }

GuestMemory& Memory() {
  static GuestMemory memory =
      *GuestMemory::Create({{"ram", kBlockBytes, Backing::kAnon, ""},
                            {"rom", kBlockBytes, Backing::kAnon, ""}});
  return memory;
}

void FuzzValues(Input input) {
  const std::string text = Text(input);
  const auto size = ParseSize("--memory", text);
  if (size.ok()) {
    const auto again = ParseSize("--memory", FormatSize(*size));
    FUZZ_CHECK(again.ok() && *again == *size);
  }
  const auto count = ParseCount("--rounds", text, 3, 1000);
  FUZZ_CHECK(!count.ok() || (*count >= 3 && *count <= 1000));
  const auto duration = ParseDurationNs("--downtime", text);
  FUZZ_CHECK(!duration.ok() || *duration <= 86'400'000'000'000);
  const auto uuid = ParseUuid("--uuid", text);
  if (uuid.ok()) {
    const auto again = ParseUuid("--uuid", FormatUuid(*uuid));
    FUZZ_CHECK(again.ok() && *again == *uuid);
  }
  const auto pair = ParseKeyValue("--plugin-option", text);
  FUZZ_CHECK(!pair.ok() || pair->first + "=" + pair->second == text);
  ParseRunLength("--after", text).status().IgnoreError();
  ParseWord("--dirty", text, {"uffd", "mprotect"}).status().IgnoreError();
}

void FuzzBlock(Input input) {
  const auto block = ParseBlockSpec(Text(input));
  if (!block.ok()) return;
  FUZZ_CHECK(!block->name.empty() && block->name.size() <= 64);
  FUZZ_CHECK(block->size.has_value() || block->backing == Backing::kFile);
}

void FuzzWorkload(Input input) {
  const std::string text = Text(input);
  if (absl::StartsWith(text, "trace")) return;  // opens what it names
  const auto workload = MakeWorkload(text, &Memory(), 1);
  FUZZ_CHECK(!workload.ok() || *workload != nullptr);
}

// Strict: whatever is taken lies in the memory, and time never goes back.
void FuzzTrace(Input input) {
  const auto events = ParseTrace("trace", Text(input), Memory());
  if (!events.ok()) return;
  uint64_t before_ms = 0;
  for (const TraceEvent& event : *events) {
    FUZZ_CHECK(event.length > 0 && event.block < 2);
    FUZZ_CHECK(event.offset < kBlockBytes);
    FUZZ_CHECK(event.length <= kBlockBytes - event.offset);
    FUZZ_CHECK(event.time_ms >= before_ms);
    before_ms = event.time_ms;
  }
}

}  // namespace
}  // namespace mig::sim

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::sim::FuzzValues, mig::sim::FuzzBlock, mig::sim::FuzzWorkload,
      mig::sim::FuzzTrace};
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}
