// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_CLI_PARSE_VALUES_H_
#define MIGTRANSPORT_HOST_SIM_CLI_PARSE_VALUES_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::sim {

// Values of command line options. Each is InvalidArgument, in one line that
// says what was given, what is wrong and what to give, if it can't be read;
// `option` is the option's name for that line. Any thread.

// A whole number from `min` to `max`.
absl::StatusOr<uint64_t> ParseCount(absl::string_view option,
                                    absl::string_view text, uint64_t min,
                                    uint64_t max);

// A time with its unit, `300ms`, `1.5s` or `2m`, or `0`; in nanoseconds, at
// most a day.
absl::StatusOr<uint64_t> ParseDurationNs(absl::string_view option,
                                         absl::string_view text);

// 32 hexadecimal digits in the usual five groups.
absl::StatusOr<std::array<uint8_t, 16>> ParseUuid(absl::string_view option,
                                                  absl::string_view text);
std::string FormatUuid(const std::array<uint8_t, 16>& uuid);

// `name=value`, with a name; the value may be empty.
absl::StatusOr<std::pair<std::string, std::string>> ParseKeyValue(
    absl::string_view option, absl::string_view text);

// How long the guest goes on: a time, or a number of workload steps.
struct RunLength {
  bool is_time = true;
  uint64_t value = 0;  // nanoseconds or steps
};
// `500ms` is a time, `1000` is steps.
absl::StatusOr<RunLength> ParseRunLength(absl::string_view option,
                                         absl::string_view text);

// One of `words`; answers its index.
absl::StatusOr<size_t> ParseWord(absl::string_view option,
                                 absl::string_view text,
                                 const std::vector<std::string>& words);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_CLI_PARSE_VALUES_H_
