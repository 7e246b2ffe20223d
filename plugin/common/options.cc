// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/options.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/error.h"

namespace mig {
namespace {

std::optional<uint64_t> ParseScaled(absl::string_view digits, uint64_t scale) {
  uint64_t number = 0;
  // SimpleAtoi also takes signs and surrounding blanks.
  if (digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &number) ||
      number > std::numeric_limits<uint64_t>::max() / scale) {
    return std::nullopt;
  }
  return number * scale;
}

std::optional<uint64_t> ParseSize(absl::string_view text) {
  uint64_t scale = 1;
  if (absl::ConsumeSuffix(&text, "K")) {
    scale = uint64_t{1} << 10;
  } else if (absl::ConsumeSuffix(&text, "M")) {
    scale = uint64_t{1} << 20;
  } else if (absl::ConsumeSuffix(&text, "G")) {
    scale = uint64_t{1} << 30;
  }
  return ParseScaled(text, scale);
}

std::optional<uint64_t> ParseDuration(absl::string_view text) {
  if (absl::ConsumeSuffix(&text, "ms")) return ParseScaled(text, 1'000'000);
  if (absl::ConsumeSuffix(&text, "s")) return ParseScaled(text, 1'000'000'000);
  return std::nullopt;
}

std::optional<uint64_t> ParseNumber(uint32_t type, absl::string_view text) {
  switch (type) {
    case MIG_OPTION_INTEGER:
      return ParseScaled(text, 1);
    case MIG_OPTION_SIZE:
      return ParseSize(text);
    case MIG_OPTION_DURATION:
      return ParseDuration(text);
    case MIG_OPTION_BOOL:
      if (text == "on") return 1;
      if (text == "off") return 0;
      return std::nullopt;
    default:
      return 0;
  }
}

bool InRange(const struct mig_option& option, absl::string_view text,
             uint64_t number) {
  switch (option.type) {
    case MIG_OPTION_ENUM: {
      const std::vector<std::string> words = absl::StrSplit(option.range, '|');
      return std::find(words.begin(), words.end(), std::string(text)) !=
             words.end();
    }
    case MIG_OPTION_INTEGER:
    case MIG_OPTION_SIZE:
    case MIG_OPTION_DURATION: {
      const std::vector<std::string> ends = absl::StrSplit(option.range, "..");
      if (ends.size() != 2) return true;
      const auto low = ParseNumber(option.type, ends[0]);
      const auto high = ParseNumber(option.type, ends[1]);
      return low && high && number >= *low && number <= *high;
    }
    default:
      return true;
  }
}

}  // namespace

Options::Options(std::span<const struct mig_option> table)
    : table_(table), values_(table.size()) {
  for (size_t i = 0; i < table.size(); ++i) {
    values_[i].text = table[i].default_value;
    values_[i].number =
        ParseNumber(table[i].type, table[i].default_value).value_or(0);
  }
}

int Options::Find(absl::string_view name) const {
  for (size_t i = 0; i < table_.size(); ++i) {
    if (name == table_[i].name) return static_cast<int>(i);
  }
  return -1;
}

absl::Status Options::Set(absl::string_view name, absl::string_view value) {
  const int i = Find(name);
  if (i < 0) {
    std::string known;
    for (const auto& option : table_) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", option.name);
    }
    return MakeError(MIG_E_OPTION, absl::StrCat("there is no option '", name,
                                                "': use one of ", known));
  }
  const struct mig_option& option = table_[static_cast<size_t>(i)];
  const auto number = ParseNumber(option.type, value);
  if (!number || !InRange(option, value, *number)) {
    return MakeError(MIG_E_OPTION, absl::StrCat("option ", name, " can't be '",
                                                value, "': give ", option.range,
                                                " (", option.help, ")"));
  }
  values_[static_cast<size_t>(i)] = Value{std::string(value), *number};
  return absl::OkStatus();
}

absl::StatusOr<std::string> Options::Get(absl::string_view name) const {
  const int i = Find(name);
  if (i < 0) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("there is no option '", name, "'"));
  }
  const auto index = static_cast<size_t>(i);
  if ((table_[index].flags & MIG_OPTION_SECRET) != 0) {
    return std::string(values_[index].text.empty() ? "(unset)" : "(set)");
  }
  return values_[index].text;
}

bool Options::Bool(absl::string_view name) const { return Number(name) != 0; }

uint64_t Options::Number(absl::string_view name) const {
  const int i = Find(name);
  return i < 0 ? 0 : values_[static_cast<size_t>(i)].number;
}

const std::string& Options::Text(absl::string_view name) const {
  static const std::string* const kNone = new std::string;
  const int i = Find(name);
  return i < 0 ? *kNone : values_[static_cast<size_t>(i)].text;
}

}  // namespace mig
