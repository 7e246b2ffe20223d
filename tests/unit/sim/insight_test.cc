// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/insight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "engine/control_rtt.h"
#include "report/compare_table.h"

namespace mig::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PercentileTest, IsTheNearestRank) {
  EXPECT_EQ(Percentile({}, 50), std::nullopt);
  EXPECT_EQ(Percentile({7}, 99), 7u);
  EXPECT_EQ(Percentile({40, 10, 30, 20}, 50), 20u);
  EXPECT_EQ(Percentile({40, 10, 30, 20}, 99), 40u);
  EXPECT_EQ(Percentile({40, 10, 30, 20}, 0), 10u);
}

TEST(AmountTextTest, HasFewDigitsOfTheUnitThatFits) {
  EXPECT_EQ(AmountText(4096, "B"), "4096 B");
  EXPECT_EQ(AmountText(32 << 10, "B"), "32 KiB");
  EXPECT_EQ(AmountText(64 << 20, "B"), "64 MiB");
  EXPECT_EQ(AmountText(1500, "ns"), "2 us");
  EXPECT_EQ(AmountText(20'000'000, "ns"), "20 ms");
  EXPECT_EQ(AmountText(17, "1"), "17");
}

// What a plugin of any name counts and was granted is shown, but no zeros, and
// no line is wider than a terminal.
TEST(InsightTextTest, ShowsWhatThePluginsTableNames) {
  std::vector<mig_counter> table(4);
  const char* const names[] = {"doorbells", "in-flight-peak", "stalls-queue",
                               "never"};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i].name = names[i];
    table[i].unit = "1";
    table[i].kind = i == 1 ? MIG_COUNTER_PEAK : MIG_COUNTER_TOTAL;
  }
  Json details = Json::array();
  for (int i = 0; i < 20; ++i) {
    details.push_back({{"name", "control-inline"},
                       {"unit", "B"},
                       {"asked", 56},
                       {"granted", 92},
                       {"negotiated", 92}});
  }
  const Json report = {{"side", "source"},
                       {"caps", {{"details", details}}},
                       {"counters",
                        {{"doorbells", 11},
                         {"in-flight-peak", 448},
                         {"stalls-queue", 3},
                         {"never", 0}}}};
  const std::string text = InsightText(table, report);
  EXPECT_THAT(text, HasSubstr("control-inline 92 B (asked 56 B)"));
  EXPECT_THAT(text, HasSubstr("doorbells 11"));
  EXPECT_THAT(text, HasSubstr("peaks    in-flight-peak 448"));
  EXPECT_THAT(text, HasSubstr("stalls   stalls-queue 3"));
  EXPECT_THAT(text, Not(HasSubstr("never")));
  for (const auto line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

// A file may hold anything.
TEST(CompareTableTest, WhatAReportLacksIsADash) {
  const Json good = {{"outcome", "migrated"}, {"plugin", "tcp"}};
  const Json odd = {
      {"outcome", 7}, {"rounds", "many"}, {"guest", Json::array()}};
  const std::string table = CompareTable({{"good", good}, {"odd", odd}});
  EXPECT_THAT(table, HasSubstr("migrated"));
  EXPECT_THAT(table, HasSubstr("-"));
}

}  // namespace
}  // namespace mig::sim
