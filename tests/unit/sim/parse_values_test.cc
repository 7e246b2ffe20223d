// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/parse_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/settings.h"

namespace mig::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(ParseValuesTest, Durations) {
  EXPECT_EQ(*ParseDurationNs("--x", "300ms"), 300'000'000U);
  EXPECT_EQ(*ParseDurationNs("--x", "1.5s"), 1'500'000'000U);
  EXPECT_EQ(*ParseDurationNs("--x", "0"), 0U);
  for (const char* bad : {"", "300", "-1s", "ms", "25h", "inf", "1s x"}) {
    const absl::Status status = ParseDurationNs("--x", bad).status();
    EXPECT_THAT(Message(status), AllOf(HasSubstr("--x"), HasSubstr("300ms")))
        << bad;
  }
}

TEST(ParseValuesTest, Counts) {
  EXPECT_EQ(*ParseCount("--x", "10", 1, 10), 10U);
  for (const char* bad : {"", "0", "11", "-1", "+1", "1.0", "0x1", " 1",
                          "99999999999999999999"}) {
    EXPECT_FALSE(ParseCount("--x", bad, 1, 10).ok()) << bad;
  }
}

TEST(ParseValuesTest, RunLengths) {
  EXPECT_FALSE(ParseRunLength("--after", "1000")->is_time);
  EXPECT_EQ(ParseRunLength("--after", "1000")->value, 1000U);
  EXPECT_TRUE(ParseRunLength("--after", "1s")->is_time);
  EXPECT_FALSE(ParseRunLength("--after", "soon").ok());
}

TEST(ParseValuesTest, Uuids) {
  const char* text = "01234567-89ab-cdef-0123-456789abcdef";
  const auto uuid = ParseUuid("--vm-uuid", text);
  ASSERT_TRUE(uuid.ok());
  EXPECT_EQ((*uuid)[1], 0x23);
  EXPECT_EQ(FormatUuid(*uuid), text);
  for (const char* bad : {"", "0123", "01234567-89ab-cdef-0123-456789abcdeg",
                          "0123456789ab-cdef-0123-456789abcdef0-"}) {
    EXPECT_FALSE(ParseUuid("--vm-uuid", bad).ok()) << bad;
  }
}

TEST(ParseValuesTest, KeyValues) {
  EXPECT_EQ(ParseKeyValue("-o", "a=b=c")->second, "b=c");
  EXPECT_EQ(ParseKeyValue("-o", "a=")->second, "");
  EXPECT_FALSE(ParseKeyValue("-o", "=b").ok());
  EXPECT_FALSE(ParseKeyValue("-o", "a").ok());
}

TEST(SettingsTest, DefaultsAreValid) {
  const RawOptions raw;
  EXPECT_TRUE(ReadCommon(raw).ok());
  EXPECT_TRUE(ReadMigration(raw).ok());
  EXPECT_TRUE(ReadDestination(raw).ok());
  const auto source = ReadSource(raw);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ(source->memory.size(), 1U);
  EXPECT_EQ(source->memory[0].name, "ram");
}

TEST(SettingsTest, ABareSizeIsABlockNamedRam) {
  RawOptions raw;
  raw.memory = {"64M,backing=memfd", "vga:16M"};
  const auto source = ReadSource(raw);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->memory[0].name, "ram");
  EXPECT_EQ(source->memory[0].backing, Backing::kMemfd);
  EXPECT_EQ(source->memory[1].name, "vga");
}

TEST(SettingsTest, BadValuesNameOptionAndRemedy) {
  struct Case {
    std::string RawOptions::*option;
    const char* value;
    const char* name;
  };
  const Case cases[] = {
      {&RawOptions::downtime_limit, "300", "--downtime-limit"},
      {&RawOptions::converge, "maybe", "--converge"},
      {&RawOptions::time_limit, "x", "--time-limit"},
      {&RawOptions::max_rounds, "-3", "--max-rounds"},
      {&RawOptions::max_bandwidth, "fast", "--max-bandwidth"},
      {&RawOptions::device_state, "2G", "--device-state"},
      {&RawOptions::zero_detect, "yes", "--zero-detect"},
      {&RawOptions::seed, "-1", "--seed"},
  };
  for (const Case& each : cases) {
    RawOptions raw;
    raw.*each.option = each.value;
    const absl::Status status = ReadSource(raw).status();
    EXPECT_FALSE(status.ok()) << each.name;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(each.name), HasSubstr("give"),
                                       Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace mig::sim
