// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/trace_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "guest/errno_text.h"

namespace mig::sim {
namespace {

// Times are turned into nanoseconds: a century is enough.
constexpr uint64_t kMaxTimeMs = uint64_t{100} * 366 * 86400 * 1000;

absl::Status AtLine(absl::string_view name, uint64_t line,
                    absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s:%u: %s", name, line, problem));
}

// Decimal, or hexadecimal with 0x.
bool ParseNumber(absl::string_view text, uint64_t* value) {
  const bool hex = absl::StartsWithIgnoreCase(text, "0x");
  if (hex) text.remove_prefix(2);
  if (text.empty()) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (hex ? !absl::ascii_isxdigit(byte) : !absl::ascii_isdigit(byte)) {
      return false;
    }
  }
  return hex ? absl::SimpleHexAtoi(text, value) : absl::SimpleAtoi(text, value);
}

absl::StatusOr<TraceEvent> ParseLine(absl::string_view text, uint64_t before_ms,
                                     const GuestMemory& memory) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 4) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%u fields: give 4, TIME_MS BLOCK OFFSET LENGTH", fields.size()));
  }
  TraceEvent event = {};
  uint64_t* const numbers[] = {&event.time_ms, nullptr, &event.offset,
                               &event.length};
  for (size_t i = 0; i < fields.size(); ++i) {
    if (numbers[i] == nullptr || ParseNumber(fields[i], numbers[i])) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s' is not a number: give decimal, or hexadecimal with 0x, below "
        "2^64",
        fields[i]));
  }
  const GuestBlock* block = memory.FindBlock(fields[1]);
  if (block == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("there is no block '%s': give one of the guest's, such "
                        "as '%s'",
                        fields[1], memory.blocks()[0].name));
  }
  event.block = block->id;
  absl::Status status = CheckTraceEvent(event, before_ms, memory);
  if (!status.ok()) return status;
  return event;
}

}  // namespace

absl::Status CheckTraceEvent(const TraceEvent& event, uint64_t before_ms,
                             const GuestMemory& memory) {
  if (event.time_ms < before_ms || event.time_ms > kMaxTimeMs) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "time %u ms is out of order: give %u, the time before, to %u",
        event.time_ms, before_ms, kMaxTimeMs));
  }
  if (event.block >= memory.blocks().size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "block number %u: there are %u", event.block, memory.blocks().size()));
  }
  const GuestBlock& block = memory.blocks()[event.block];
  if (event.length == 0 || event.offset >= block.length ||
      event.length > block.length - event.offset) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%u bytes at %u are not inside block '%s' of %u bytes: give at least "
        "1, and end by that",
        event.length, event.offset, block.name, block.length));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TraceEvent>> ParseTrace(absl::string_view name,
                                                   absl::string_view text,
                                                   const GuestMemory& memory) {
  std::vector<TraceEvent> events;
  uint64_t number = 0;
  uint64_t before_ms = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<TraceEvent> event = ParseLine(line, before_ms, memory);
    if (!event.ok()) return AtLine(name, number, event.status().message());
    before_ms = event->time_ms;
    events.push_back(*event);
  }
  if (events.empty()) {
    return AtLine(name, number, "no writes: give at least one line of them");
  }
  return events;
}

absl::StatusOr<std::vector<TraceEvent>> LoadTrace(const std::string& path,
                                                  const GuestMemory& memory) {
  std::error_code unused;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  int error = file.is_open() ? 0 : errno;
  // A directory opens, and then reads as if it were empty.
  if (std::filesystem::is_directory(path, unused)) error = EISDIR;
  std::ostringstream text;
  if (error == 0) text << file.rdbuf();
  if (file.bad()) error = EIO;
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("trace '%s' cannot be read: %s: give a file that can",
                        path, ErrnoText(error)));
  }
  return ParseTrace(path, text.str(), memory);
}

}  // namespace mig::sim
