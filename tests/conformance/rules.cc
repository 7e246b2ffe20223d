// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rules.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mig::conformance {
namespace {

const char* const kRules[] = {
    "structs start with their size, arrays are stepped, the unknown is refused",
    "calls come from any thread; cancel, wake and get_stats beside them",
    "nothing blocks but progress; destroy is bounded in every state",
    "time, log and randomness are the host's",
    "errors are a code and one line; no SIGPIPE, CLOEXEC, no secret leaks",
    "write says how far it took; on an error nothing was taken",
    "each page once a round, strict reports a second; flush only kicks",
    "ROUND_DONE: all of it is visible; no old data after new",
    "zero ranges read zero, and cost nothing where nothing was written",
    "a DISCARDABLE block is refused where the plugin pins",
    "messages: ordered, credited, any size to the limit, held until released",
    "two guests never run: handover, COMMITTED, IN_DOUBT",
    "host_busy, arm's deadline and FDS_CHANGED",
    "VM UUID, attempt and extensions agree before anything else",
    "every failure ends both sides, in time, once, and without a leak",
};

// The references in a test's name: "Rule06", "C13" or "H01" between '_'.
std::vector<std::string> References(const std::string& test) {
  std::vector<std::string> references;
  std::istringstream words(test);
  for (std::string word; std::getline(words, word, '_');) {
    const size_t digits = word.find_first_of("0123456789");
    if (digits == std::string::npos || digits == 0) continue;
    const std::string kind = word.substr(0, digits);
    const std::string number = word.substr(digits);
    if (number.size() == 2 && isdigit(number[1]) != 0 &&
        (kind == "Rule" || kind == "C" || kind == "H")) {
      references.push_back(word);
    }
  }
  return references;
}

void PrintTests(const std::vector<std::string>& tests) {
  for (const std::string& test : tests) printf("    %s\n", test.c_str());
}

}  // namespace

int ListRules() {
  std::map<std::string, std::vector<std::string>> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = suite.GetTestInfo(j)->name();
      for (const std::string& reference : References(name)) {
        tests[reference].push_back(std::string(suite.name()) + "." + name);
      }
    }
  }
  int uncovered = 0;
  for (size_t rule = 1; rule <= std::size(kRules); ++rule) {
    char reference[16];
    snprintf(reference, sizeof(reference), "Rule%02zu", rule);
    printf("%s: %s\n", reference, kRules[rule - 1]);
    PrintTests(tests[reference]);
    if (tests[reference].empty()) {
      printf("    NO TEST\n");
      uncovered = 1;
    }
    tests.erase(reference);
  }
  for (const auto& [reference, names] : tests) {
    printf("%s\n", reference.c_str());
    PrintTests(names);
  }
  return uncovered;
}

}  // namespace mig::conformance
