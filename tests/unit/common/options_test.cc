// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/options.h"

#include <array>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using ::testing::HasSubstr;

constexpr std::array kTable = {
    mig_option{"flag", "on", "on|off", "a flag", MIG_OPTION_BOOL, 0},
    mig_option{"count", "4", "1..64", "a count", MIG_OPTION_INTEGER, 0},
    mig_option{"bytes", "1M", "4K..2G", "a size", MIG_OPTION_SIZE, 0},
    mig_option{"wait", "10s", "100ms..600s", "a time", MIG_OPTION_DURATION, 0},
    mig_option{"mode", "a", "a|bc", "a mode", MIG_OPTION_ENUM, 0},
    mig_option{"name", "", "text", "a name", MIG_OPTION_STRING, 0},
    mig_option{"key", "", "text", "a key", MIG_OPTION_STRING,
               MIG_OPTION_SECRET},
};

TEST(OptionsTest, DefaultsAreParsed) {
  const Options options(kTable);
  EXPECT_TRUE(options.Bool("flag"));
  EXPECT_EQ(options.Number("count"), 4u);
  EXPECT_EQ(options.Number("bytes"), 1u << 20);
  EXPECT_EQ(options.Number("wait"), 10'000'000'000u);
  EXPECT_EQ(options.Text("mode"), "a");
}

TEST(OptionsTest, EveryUnitIsTakenAtTheEndsOfItsRange) {
  Options options(kTable);
  for (const auto& [name, value, number] :
       {std::tuple{"flag", "off", uint64_t{0}},
        {"count", "1", 1},
        {"count", "64", 64},
        {"bytes", "4096", 4096},
        {"bytes", "2G", uint64_t{2} << 30},
        {"wait", "100ms", 100'000'000},
        {"wait", "600s", 600'000'000'000}}) {
    EXPECT_TRUE(options.Set(name, value).ok()) << name << "=" << value;
    EXPECT_EQ(options.Number(name), number) << name << "=" << value;
  }
}

TEST(OptionsTest, WhatIsOutsideOrNoNumberIsRefusedAndKeepsTheOldValue) {
  Options options(kTable);
  const std::pair<const char*, const char*> kBad[] = {
      {"flag", "yes"},  {"flag", ""},
      {"count", "0"},   {"count", "65"},
      {"count", "+4"},  {"count", "-4"},
      {"count", " 4"},  {"count", "4 "},
      {"count", "0x4"}, {"count", "99999999999999999999"},
      {"count", "4K"},  {"count", ""},
      {"bytes", "K"},   {"bytes", "4k"},
      {"bytes", "3G"},  {"bytes", "17179869185G"},
      {"wait", "10"},   {"wait", "99ms"},
      {"wait", "1m"},   {"wait", "601s"},
      {"wait", " 1s"},  {"wait", "18446744074s"},
      {"mode", "b"},    {"mode", ""},
      {"nothing", "1"}};
  for (const auto& [name, value] : kBad) {
    const absl::Status status = options.Set(name, value);
    EXPECT_EQ(ErrorCode(status), MIG_E_OPTION) << name << "=" << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  EXPECT_EQ(options.Number("count"), 4u);
  EXPECT_EQ(options.Number("wait"), 10'000'000'000u);
  EXPECT_THAT(std::string(options.Set("count", "65").message()),
              HasSubstr("1..64"));
}

// Rule 5.9.
TEST(OptionsTest, ASecretIsNeverShown) {
  Options options(kTable);
  EXPECT_EQ(*options.Get("key"), "(unset)");
  ASSERT_TRUE(options.Set("key", "hush").ok());
  EXPECT_EQ(*options.Get("key"), "(set)");
  EXPECT_EQ(options.Text("key"), "hush");
  EXPECT_EQ(ErrorCode(options.Get("kex").status()), MIG_E_OPTION);
}

}  // namespace
}  // namespace mig
