// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/parse_values.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace mig::sim {
namespace {

bool IsDigits(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return !text.empty();
}

absl::Status Bad(absl::string_view option, absl::string_view text,
                 absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s '%s': %s", option, text, why));
}

}  // namespace

absl::StatusOr<uint64_t> ParseCount(absl::string_view option,
                                    absl::string_view text, uint64_t min,
                                    uint64_t max) {
  uint64_t value = 0;
  if (!IsDigits(text) || !absl::SimpleAtoi(text, &value) || value < min ||
      value > max) {
    return Bad(option, text,
               absl::StrCat("not a whole number from ", min, " to ", max,
                            ": give one"));
  }
  return value;
}

absl::StatusOr<uint64_t> ParseDurationNs(absl::string_view option,
                                         absl::string_view text) {
  absl::Duration duration;
  if (text.empty() || !absl::ParseDuration(std::string(text), &duration) ||
      duration < absl::ZeroDuration() || duration > absl::Hours(24)) {
    return Bad(option, text,
               "not a time from 0 to 24h: give a number and its unit, as in "
               "300ms or 2s");
  }
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

absl::StatusOr<std::array<uint8_t, 16>> ParseUuid(absl::string_view option,
                                                  absl::string_view text) {
  constexpr absl::string_view kShape = "00000000-0000-0000-0000-000000000000";
  bool good = text.size() == kShape.size();
  std::string digits;
  for (size_t i = 0; good && i < kShape.size(); ++i) {
    if (kShape[i] == '-') {
      good = text[i] == '-';
    } else {
      good = absl::ascii_isxdigit(static_cast<unsigned char>(text[i]));
      digits.push_back(text[i]);
    }
  }
  if (!good) {
    return Bad(option, text,
               absl::StrCat("not a UUID: give one of the form ", kShape));
  }
  const std::string bytes = absl::HexStringToBytes(digits);
  std::array<uint8_t, 16> uuid = {};
  std::copy(bytes.begin(), bytes.end(), uuid.begin());
  return uuid;
}

std::string FormatUuid(const std::array<uint8_t, 16>& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    absl::StrAppendFormat(&text, "%s%02x", dash ? "-" : "", uuid[i]);
  }
  return text;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseKeyValue(
    absl::string_view option, absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return Bad(option, text,
               "no name and value: give NAME=VALUE, as 'mig-host-sim options' "
               "lists them");
  }
  return std::make_pair(std::string(text.substr(0, equals)),
                        std::string(text.substr(equals + 1)));
}

absl::StatusOr<RunLength> ParseRunLength(absl::string_view option,
                                         absl::string_view text) {
  RunLength length;
  if (IsDigits(text)) {
    absl::StatusOr<uint64_t> steps = ParseCount(option, text, 0, UINT64_MAX);
    if (!steps.ok()) return steps.status();
    length.is_time = false;
    length.value = *steps;
    return length;
  }
  absl::StatusOr<uint64_t> time = ParseDurationNs(option, text);
  if (!time.ok()) {
    return Bad(option, text,
               "neither a number of steps nor a time: give 1000 or 500ms");
  }
  length.value = *time;
  return length;
}

absl::StatusOr<size_t> ParseWord(absl::string_view option,
                                 absl::string_view text,
                                 const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return i;
  }
  return Bad(option, text,
             absl::StrCat("unknown: give one of ", absl::StrJoin(words, ", ")));
}

}  // namespace mig::sim
