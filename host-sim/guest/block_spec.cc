// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "guest/guest_memory.h"
#include "guest/parse.h"

namespace mig::sim {
namespace {

constexpr size_t kMaxName = 64;

absl::Status CheckName(absl::string_view text, absl::string_view name) {
  const bool clean = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
           c == '_' || c == '-';
  });
  if (name.empty() || name.size() > kMaxName || !clean) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "memory '%s': '%s' is no block name: give 1 to %u letters, digits, "
        "'.', '_' or '-', as in ram:256M",
        text, name, kMaxName));
  }
  return absl::OkStatus();
}

absl::Status ParseBacking(absl::string_view text, absl::string_view value,
                          BlockSpec* spec) {
  if (value == "anon") {
    spec->backing = Backing::kAnon;
  } else if (value == "memfd") {
    spec->backing = Backing::kMemfd;
  } else if (value == "hugetlb") {
    spec->backing = Backing::kHugetlb;
  } else if (absl::ConsumePrefix(&value, "file:") && !value.empty()) {
    spec->backing = Backing::kFile;
    spec->path = std::string(value);
  } else {
    return absl::InvalidArgumentError(absl::StrFormat(
        "memory '%s': backing '%s' is unknown: give anon, memfd, hugetlb or "
        "file:PATH",
        text, value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BlockSpec> ParseBlockSpec(absl::string_view text) {
  BlockSpec spec;
  const size_t comma = text.find(',');
  const absl::string_view head = text.substr(0, comma);
  const size_t colon = head.find(':');
  const absl::string_view name = head.substr(0, colon);
  if (absl::Status status = CheckName(text, name); !status.ok()) return status;
  spec.name = std::string(name);
  if (colon != absl::string_view::npos) {
    absl::StatusOr<uint64_t> size =
        ParseSize(absl::StrFormat("memory '%s'", text), head.substr(colon + 1));
    if (!size.ok()) return size.status();
    spec.size = *size;
  }
  if (comma != absl::string_view::npos) {
    absl::string_view option = text.substr(comma + 1);
    if (!absl::ConsumePrefix(&option, "backing=")) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "memory '%s': '%s' is not an option: only backing= may follow the "
          "size",
          text, option));
    }
    absl::Status status = ParseBacking(text, option, &spec);
    if (!status.ok()) return status;
  }
  if (!spec.size.has_value() && spec.backing != Backing::kFile) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "memory '%s': no size: give NAME:SIZE, as in ram:256M", text));
  }
  return spec;
}

}  // namespace mig::sim
