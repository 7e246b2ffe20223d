// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/parse.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace mig::sim {
namespace {

constexpr absl::string_view kSuffixes = "KMGT";

// SimpleAtoi takes signs and spaces; a size does not.
bool ParseDecimal(absl::string_view text, uint64_t* value) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return absl::SimpleAtoi(text, value);
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view what,
                                   absl::string_view text) {
  absl::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    const char last =
        absl::ascii_toupper(static_cast<unsigned char>(digits.back()));
    const size_t at = kSuffixes.find(last);
    if (at != absl::string_view::npos) {
      shift = 10 * (static_cast<int>(at) + 1);
      digits.remove_suffix(1);
    }
  }
  uint64_t value = 0;
  if (!ParseDecimal(digits, &value)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: '%s' is not a size: give a whole number of bytes below 2^64, "
        "with K, M, G or T for powers of 1024, such as 256M",
        what, text));
  }
  if (value > (std::numeric_limits<uint64_t>::max() >> shift)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: '%s' does not fit in 64 bits: give less than 16777216T", what,
        text));
  }
  return value << shift;
}

std::string FormatSize(uint64_t bytes) {
  size_t suffix = 0;
  while (suffix < kSuffixes.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++suffix;
  }
  return suffix == 0 ? absl::StrCat(bytes)
                     : absl::StrFormat("%u%c", bytes, kSuffixes[suffix - 1]);
}

absl::StatusOr<SpecReader> SpecReader::Parse(absl::string_view spec) {
  SpecReader reader;
  reader.spec_ = std::string(spec);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(spec, absl::MaxSplits(':', 1));
  reader.kind_ = std::string(parts.first);
  if (reader.kind_.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s': nothing before the ':': give NAME or NAME:OPTION=VALUE,...",
        spec));
  }
  if (parts.first.size() == spec.size()) return reader;
  for (const absl::string_view item : absl::StrSplit(parts.second, ',')) {
    if (item.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "'%s': an empty option: give OPTION=VALUE between commas", spec));
    }
    const size_t equals = item.find('=');
    std::string key;
    if (equals != absl::string_view::npos)
      key = std::string(item.substr(0, equals));
    const absl::string_view value =
        equals == absl::string_view::npos ? item : item.substr(equals + 1);
    for (const auto& [name, unused] : reader.options_) {
      if (name == key) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "'%s': %s is given twice: give it once", spec,
            key.empty() ? absl::string_view("a value without a name")
                        : absl::string_view(key)));
      }
    }
    reader.options_.emplace_back(std::move(key), std::string(value));
  }
  reader.taken_.assign(reader.options_.size(), false);
  return reader;
}

const std::string* SpecReader::Find(absl::string_view key) {
  if (!key.empty()) known_.emplace_back(key);
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].first == key) {
      taken_[i] = true;
      return &options_[i].second;
    }
  }
  return nullptr;
}

absl::Status SpecReader::TakeSize(absl::string_view key, uint64_t* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return absl::OkStatus();
  absl::StatusOr<uint64_t> size =
      ParseSize(absl::StrCat(kind_, ":", key), *text);
  if (!size.ok()) return size.status();
  *value = *size;
  return absl::OkStatus();
}

absl::Status SpecReader::TakeCount(absl::string_view key, uint64_t min,
                                   uint64_t max, uint64_t* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return absl::OkStatus();
  uint64_t count = 0;
  if (!ParseDecimal(*text, &count) || count < min || count > max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s:%s: '%s' is out of range: give a whole number "
                        "from %u to %u",
                        kind_, key, *text, min, max));
  }
  *value = count;
  return absl::OkStatus();
}

absl::Status SpecReader::TakeShare(absl::string_view key, double* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return absl::OkStatus();
  double share = 0;
  // The negated comparison refuses NaN too.
  if (!absl::SimpleAtod(*text, &share) || !(share >= 0 && share <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s:%s: '%s' is not a share: give a number from 0 to 1",
                        kind_, key, *text));
  }
  *value = share;
  return absl::OkStatus();
}

absl::Status SpecReader::TakePercent(absl::string_view key, uint64_t* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return absl::OkStatus();
  uint64_t percent = 0;
  if (*text == "all") {
    percent = 100;
  } else if (*text != "none" &&
             (!ParseDecimal(*text, &percent) || percent > 100)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s:%s: '%s' is not a percentage: give all, none or a whole number "
        "from 0 to 100",
        kind_, key, *text));
  }
  *value = percent;
  return absl::OkStatus();
}

absl::Status SpecReader::TakePositional(absl::string_view what,
                                        std::string* value) {
  const std::string* text = Find("");
  if (text == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s': %s is missing: give %s:%s", spec_, what, kind_, what));
  }
  *value = *text;
  return absl::OkStatus();
}

absl::Status SpecReader::Finish() const {
  for (size_t i = 0; i < options_.size(); ++i) {
    if (taken_[i]) continue;
    const std::string& name =
        options_[i].first.empty() ? options_[i].second : options_[i].first;
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s': '%s' is not an option of %s: it takes %s", spec_, name, kind_,
        known_.empty() ? "no options" : absl::StrJoin(known_, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace mig::sim
