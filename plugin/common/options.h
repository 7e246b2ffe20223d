// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Option values of a context, checked against the plugin's own table.
#ifndef PLUGIN_COMMON_OPTIONS_H_
#define PLUGIN_COMMON_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mig_transport.h"

namespace mig {

// Not thread-safe: sessions take a copy. `table` must outlive every copy, and
// its defaults must be valid (a unit test of each plugin checks its own).
class Options {
 public:
  explicit Options(std::span<const struct mig_option> table);

  // Sets by name. Errors: OPTION, naming the value and what is allowed.
  absl::Status Set(absl::string_view name, absl::string_view value);
  // The text; for secret ones "(set)" or "(unset)". Errors: OPTION.
  absl::StatusOr<std::string> Get(absl::string_view name) const;

  // Typed values of options that the table has; 0, false or "" for a name that
  // it has not (a programming error that a test of the table finds).
  bool Bool(absl::string_view name) const;
  uint64_t Number(absl::string_view name) const;  // bytes and ns too
  const std::string& Text(absl::string_view name) const;

 private:
  struct Value {
    std::string text;
    uint64_t number = 0;
  };
  int Find(absl::string_view name) const;  // -1 if there is none

  std::span<const struct mig_option> table_;
  std::vector<Value> values_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_OPTIONS_H_
