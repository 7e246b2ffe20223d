// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/error.h"
#include "soft-verbs/faults.h"
#include "soft-verbs/text.h"

namespace mig::soft {
namespace {

using Kind = Fault::Kind;

// How the words after the keyword are read.
enum class Form {
  kCall,
  kPost,
  kStatus,
  kNumberAndValue,
  kDrop,
  kNumber,
  kWhen,
  kWhenAndValue
};

struct Keyword {
  const char* word;
  Kind kind;
  Form form;
  const char* usage;
};

constexpr Keyword kKeywords[] = {
    {"call", Kind::kCall, Form::kCall, "call NAME K ERRNO [minus-one]"},
    {"post", Kind::kPost, Form::kPost, "post K ERRNO [minus-one]"},
    {"wc", Kind::kStatus, Form::kStatus, "wc K STATUS"},
    {"delay", Kind::kDelay, Form::kNumberAndValue, "delay K NS"},
    {"hold", Kind::kHold, Form::kNumberAndValue, "hold K NS"},
    {"drop", Kind::kDrop, Form::kDrop, "drop K [N]"},
    {"disconnect", Kind::kDisconnect, Form::kNumber, "disconnect K"},
    {"fatal", Kind::kFatal, Form::kWhen, "fatal K|@NS"},
    {"removal", Kind::kRemoval, Form::kWhen, "removal K|@NS"},
    {"qp-fatal", Kind::kQpFatal, Form::kNumber, "qp-fatal K"},
    {"port-down", Kind::kPortDown, Form::kWhen, "port-down K|@NS"},
    {"port-up", Kind::kPortUp, Form::kWhen, "port-up K|@NS"},
    {"stop", Kind::kStop, Form::kWhenAndValue, "stop K|@NS NS"},
    {"no-device", Kind::kNoDevice, Form::kNumber, "no-device K"},
    {"addr-error", Kind::kAddrError, Form::kNumber, "addr-error K"},
    {"route-error", Kind::kRouteError, Form::kNumber, "route-error K"},
    {"reject", Kind::kReject, Form::kNumber, "reject K"},
    {"connect-error", Kind::kConnectError, Form::kNumber, "connect-error K"},
};

using Words = std::vector<absl::string_view>;

bool ParseCount(absl::string_view word, uint64_t* number) {
  return word.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(word, number);
}

bool ParseNumber(absl::string_view word, Fault* fault) {
  return ParseCount(word, &fault->number) && fault->number > 0;
}

bool ParseWhen(absl::string_view word, Fault* fault) {
  if (!absl::ConsumePrefix(&word, "@")) return ParseNumber(word, fault);
  fault->timed = true;
  return ParseCount(word, &fault->at_ns);
}

// words[0] is the K before the errno.
bool ParseErrno(const Words& words, size_t at, Fault* fault) {
  if (words.size() < at + 2 || words.size() > at + 3) return false;
  const std::optional<int> error = ErrnoOfName(words[at + 1]);
  if (!error.has_value() || !ParseNumber(words[at], fault)) return false;
  fault->error = *error;
  fault->minus_one = words.size() == at + 3;
  return !fault->minus_one || words[at + 2] == "minus-one";
}

// words[0] is the keyword.
bool ParseForm(Form form, const Words& words, Fault* fault) {
  switch (form) {
    case Form::kCall:
      if (words.size() < 2) return false;
      fault->name = std::string(words[1]);
      return ParseErrno(words, 2, fault);
    case Form::kPost:
      return ParseErrno(words, 1, fault);
    case Form::kStatus: {
      if (words.size() != 3 || !ParseNumber(words[1], fault)) return false;
      const std::optional<ibv_wc_status> status = WcStatusOfName(words[2]);
      if (!status.has_value() || *status == IBV_WC_SUCCESS) return false;
      fault->error = *status;
      return true;
    }
    case Form::kNumberAndValue:
      return words.size() == 3 && ParseNumber(words[1], fault) &&
             ParseCount(words[2], &fault->value);
    case Form::kDrop:
      fault->value = UINT64_MAX;
      return (words.size() == 2 || words.size() == 3) &&
             ParseNumber(words[1], fault) &&
             (words.size() == 2 || ParseCount(words[2], &fault->value));
    case Form::kNumber:
      return words.size() == 2 && ParseNumber(words[1], fault);
    case Form::kWhen:
      return words.size() == 2 && ParseWhen(words[1], fault);
    case Form::kWhenAndValue:
      return words.size() == 3 && ParseWhen(words[1], fault) &&
             ParseCount(words[2], &fault->value);
  }
  return false;
}

absl::StatusOr<Fault> ParseLine(absl::string_view line) {
  const Words words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::string known;
  for (const Keyword& keyword : kKeywords) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", keyword.word);
    if (words[0] != keyword.word) continue;
    Fault fault;
    fault.kind = keyword.kind;
    if (ParseForm(keyword.form, words, &fault)) return fault;
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("fault '", line, "' is not of the form '",
                                  keyword.usage, "'"));
  }
  return MakeError(
      MIG_E_OPTION,
      absl::StrCat("fault '", line, "' is unknown; known are ", known));
}

}  // namespace

absl::StatusOr<std::vector<Fault>> ParseFaults(absl::string_view text) {
  std::vector<Fault> faults;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar(";\n"))) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<Fault> fault = ParseLine(line);
    if (!fault.ok()) return fault.status();
    faults.push_back(*std::move(fault));
  }
  return faults;
}

}  // namespace mig::soft
