// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_PARSE_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_PARSE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::sim {

// Bytes in `text`: a decimal number with an optional K, M, G or T (powers of
// 1024, either case). `what` names the thing in errors. InvalidArgument if it
// is no number or does not fit in 64 bits. Any thread.
absl::StatusOr<uint64_t> ParseSize(absl::string_view what,
                                   absl::string_view text);

// `bytes` as ParseSize reads it back, with the largest suffix that is exact.
std::string FormatSize(uint64_t bytes);

// The options of a text such as `hotset:size=64M,share=0.9`, taken one by one
// by the code that knows them; what nobody took is an error. One thread.
class SpecReader {
 public:
  // Splits at the first ':' and then at ','. An item without '=' is kept as a
  // positional value. InvalidArgument for an empty kind, an empty item or an
  // option given twice.
  static absl::StatusOr<SpecReader> Parse(absl::string_view spec);

  const std::string& kind() const { return kind_; }

  // Each Take reads option `key` into `*value` and leaves `*value` alone if
  // the option is absent. InvalidArgument names the value and what is allowed.
  absl::Status TakeSize(absl::string_view key, uint64_t* value);
  absl::Status TakeCount(absl::string_view key, uint64_t min, uint64_t max,
                         uint64_t* value);
  absl::Status TakeShare(absl::string_view key, double* value);
  // `all` is 100, `none` is 0, else a whole number of percent.
  absl::Status TakePercent(absl::string_view key, uint64_t* value);
  // The one item without '='; InvalidArgument if there is none.
  absl::Status TakePositional(absl::string_view what, std::string* value);

  // InvalidArgument naming the first option that nobody took, and those that
  // were asked for.
  absl::Status Finish() const;

 private:
  const std::string* Find(absl::string_view key);

  std::string spec_;
  std::string kind_;
  std::vector<std::pair<std::string, std::string>> options_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_PARSE_H_
