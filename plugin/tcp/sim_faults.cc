// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/sim_faults.h"

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/error.h"

namespace mig::tcp {
namespace {

using Kind = SimFault::Kind;

// Far beyond any run, and small enough to be added to a clock.
constexpr uint64_t kMostNumber = 1'000'000'000'000'000'000;

// How the words after the keyword are read.
enum class Form { kErrno, kValue, kNumber, kWhen, kWhenAndValue };

struct Keyword {
  const char* word;
  Kind kind;
  Form form;
  const char* usage;
};

constexpr Keyword kKeywords[] = {
    {"read", Kind::kRead, Form::kErrno, "read K ERRNO"},
    {"write", Kind::kWrite, Form::kErrno, "write K ERRNO"},
    {"short", Kind::kShort, Form::kValue, "short K N"},
    {"reset", Kind::kReset, Form::kWhen, "reset K|@NS"},
    {"eof", Kind::kEof, Form::kNumber, "eof K"},
    {"cut", Kind::kCut, Form::kWhen, "cut K|@NS"},
    {"stall", Kind::kStall, Form::kWhenAndValue, "stall K|@NS NS"},
    {"connect", Kind::kConnect, Form::kErrno, "connect K ERRNO"},
    {"delay", Kind::kDelay, Form::kValue, "delay K NS"},
    {"accept", Kind::kAccept, Form::kErrno, "accept K ERRNO"},
    {"listen", Kind::kListen, Form::kErrno, "listen K ERRNO"},
};

using Words = std::vector<absl::string_view>;

bool ParseCount(absl::string_view word, uint64_t* number) {
  return word.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(word, number) && *number <= kMostNumber;
}

bool ParseNumber(absl::string_view word, uint64_t* number) {
  return ParseCount(word, number) && *number > 0;
}

bool ParseWhen(absl::string_view word, SimFault* fault) {
  fault->timed = absl::ConsumePrefix(&word, "@");
  return fault->timed ? ParseCount(word, &fault->at_ns)
                      : ParseNumber(word, &fault->number);
}

// "ECONNRESET"
std::optional<int> ErrnoOfName(absl::string_view name) {
  constexpr int kMostErrno = 4095;  // what a system call can answer
  for (int error = 1; error <= kMostErrno; ++error) {
    const char* const known = strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  return std::nullopt;
}

// words[0] is the keyword.
bool ParseForm(Form form, const Words& words, SimFault* fault) {
  const bool two =
      form != Form::kNumber && form != Form::kWhen;  // after the keyword
  if (words.size() != (two ? 3u : 2u)) return false;
  switch (form) {
    case Form::kErrno: {
      const std::optional<int> error = ErrnoOfName(words[2]);
      fault->error = error.value_or(0);
      return error.has_value() && ParseNumber(words[1], &fault->number);
    }
    case Form::kValue:
      return ParseNumber(words[1], &fault->number) &&
             ParseNumber(words[2], &fault->value);
    case Form::kNumber:
      return ParseNumber(words[1], &fault->number);
    case Form::kWhen:
      return ParseWhen(words[1], fault);
    case Form::kWhenAndValue:
      return ParseWhen(words[1], fault) && ParseNumber(words[2], &fault->value);
  }
  return false;
}

absl::StatusOr<SimFault> ParseLine(absl::string_view line) {
  const Words words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::string known;
  for (const Keyword& keyword : kKeywords) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", keyword.word);
    if (words[0] != keyword.word) continue;
    SimFault fault;
    fault.kind = keyword.kind;
    if (ParseForm(keyword.form, words, &fault)) return fault;
    return MakeError(
        MIG_E_OPTION,
        absl::StrCat("fault '", line, "' is not of the form '", keyword.usage,
                     "', with numbers from 1 and errnos by name"));
  }
  return MakeError(
      MIG_E_OPTION,
      absl::StrCat("fault '", line, "' is unknown; known are ", known));
}

}  // namespace

absl::StatusOr<std::vector<SimFault>> ParseSimFaults(absl::string_view text) {
  std::vector<SimFault> faults;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar(";\n"))) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const absl::StatusOr<SimFault> fault = ParseLine(line);
    if (!fault.ok()) return fault.status();
    faults.push_back(*fault);
  }
  return faults;
}

const SimFault* SimFaults::Find(Kind kind, uint64_t number) const {
  for (const SimFault& fault : faults_) {
    if (fault.kind == kind && !fault.timed && fault.number == number) {
      return &fault;
    }
  }
  return nullptr;
}

}  // namespace mig::tcp
