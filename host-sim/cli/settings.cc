// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/settings.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/control_format.h"
#include "guest/parse.h"

namespace mig::sim {
namespace {

constexpr char kDefaultMemory[] = "256M";
constexpr char kDefaultBlock[] = "ram:";

// `256M` is short for a block `ram` of that size.
std::string CompleteBlock(const std::string& text) {
  const absl::string_view head =
      absl::string_view(text).substr(0, text.find(','));
  const bool bare = !head.empty() && head.find(':') == head.npos &&
                    absl::ascii_isdigit(static_cast<unsigned char>(head[0]));
  return bare ? absl::StrCat(kDefaultBlock, text) : text;
}

absl::StatusOr<std::vector<BlockSpec>> ReadMemory(
    const std::vector<std::string>& texts) {
  std::vector<BlockSpec> blocks;
  for (const std::string& text : texts) {
    absl::StatusOr<BlockSpec> block = ParseBlockSpec(CompleteBlock(text));
    if (!block.ok()) return block.status();
    blocks.push_back(*block);
  }
  if (blocks.size() > kMaxBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory is given ", blocks.size(),
                     " times: give at most ", kMaxBlocks, " blocks"));
  }
  return blocks;
}

uint64_t PhysicalMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Puts the value of a StatusOr away, or gives its error back.
template <typename T, typename U>
absl::Status Keep(absl::StatusOr<T> result, U* value) {
  if (!result.ok()) return result.status();
  *value = *std::move(result);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommonSettings> ReadCommon(const RawOptions& raw) {
  CommonSettings settings;
  settings.plugin = raw.plugin;
  settings.json = raw.json;
  settings.quiet = raw.quiet;
  for (const std::string& text : raw.plugin_options) {
    std::pair<std::string, std::string> option;
    absl::Status status = Keep(ParseKeyValue("--plugin-option", text), &option);
    if (!status.ok()) return status;
    settings.plugin_options.push_back(option);
  }
  size_t level = 0;
  absl::Status status =
      Keep(ParseWord("--log-level", raw.log_level,
                     {"none", "error", "warning", "info", "debug"}),
           &level);
  if (!status.ok()) return status;
  settings.log_level = static_cast<int32_t>(level);
  return settings;
}

absl::StatusOr<MigrationSettings> ReadMigration(const RawOptions& raw) {
  MigrationSettings settings;
  settings.uri = raw.uri;
  settings.verify = raw.verify;
  settings.run_log = raw.run_log;
  absl::Status status =
      Keep(ParseUuid("--vm-uuid", raw.vm_uuid), &settings.id.vm_uuid);
  status.Update(Keep(ParseCount("--attempt", raw.attempt, 1, UINT64_MAX),
                     &settings.id.attempt));
  status.Update(Keep(ParseDurationNs("--peer-wait", raw.peer_wait),
                     &settings.peer_wait_ns));
  status.Update(Keep(ParseRunLength("--after", raw.after), &settings.after));
  if (!raw.pause_at.empty()) {
    size_t phase = 0;
    status.Update(
        Keep(ParseWord("--pause-at", raw.pause_at, PhaseNames()), &phase));
    settings.pause_at = static_cast<Phase>(phase);
  }
  if (!status.ok()) return status;
  return settings;
}

absl::StatusOr<SourceSettings> ReadSource(const RawOptions& raw) {
  SourceSettings settings;
  settings.workload = raw.workload;
  settings.tracker = raw.tracker;
  settings.strict = raw.strict;
  std::vector<std::string> memory = raw.memory;
  if (memory.empty()) memory.emplace_back(kDefaultMemory);
  size_t detect = 0;
  absl::Status status = Keep(ReadMemory(memory), &settings.memory);
  status.Update(
      Keep(ParseCount("--seed", raw.seed, 0, UINT64_MAX), &settings.seed));
  status.Update(Keep(ParseDurationNs("--downtime-limit", raw.downtime_limit),
                     &settings.limits.downtime_ns));
  status.Update(Keep(ParseConvergeMode(raw.converge), &settings.limits.mode));
  status.Update(Keep(ParseDurationNs("--time-limit", raw.time_limit),
                     &settings.limits.time_ns));
  status.Update(Keep(ParseCount("--max-rounds", raw.max_rounds, 0, 1'000'000),
                     &settings.limits.max_rounds));
  status.Update(Keep(ParseSize("--max-bandwidth", raw.max_bandwidth),
                     &settings.max_bandwidth));
  status.Update(Keep(ParseSize("--device-state", raw.device_state),
                     &settings.device_state_bytes));
  status.Update(Keep(
      ParseWord("--zero-detect", raw.zero_detect, {"off", "first", "every"}),
      &detect));
  settings.zero_detect = static_cast<ZeroDetect>(detect);
  if (status.ok() && settings.device_state_bytes > kMaxStateBytes / 2) {
    status = absl::InvalidArgumentError(
        absl::StrCat("--device-state '", raw.device_state, "': more than ",
                     FormatSize(kMaxStateBytes / 2), ": give less"));
  }
  if (!status.ok()) return status;
  return settings;
}

absl::StatusOr<DestinationSettings> ReadDestination(const RawOptions& raw) {
  DestinationSettings settings;
  settings.say_busy = raw.say_busy;
  settings.prefault = raw.prefault;
  settings.max_memory = PhysicalMemory();
  absl::Status status = Keep(ReadMemory(raw.memory), &settings.memory);
  status.Update(Keep(ParseDurationNs("--load-delay", raw.load_delay),
                     &settings.load_delay_ns));
  if (!raw.max_memory.empty()) {
    status.Update(
        Keep(ParseSize("--max-memory", raw.max_memory), &settings.max_memory));
  }
  if (!status.ok()) return status;
  return settings;
}

}  // namespace mig::sim
