// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/parse.h"

#include "test_util.h"

namespace mig::sim {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseSize, KnowsSuffixesAndNothingElse) {
  EXPECT_EQ(ParseSize("x", "4096").value(), 4096U);
  EXPECT_EQ(ParseSize("x", "3k").value(), 3072U);
  EXPECT_EQ(ParseSize("x", "256M").value(), uint64_t{256} << 20);
  EXPECT_EQ(ParseSize("x", "5G").value(), uint64_t{5} << 30);
  EXPECT_EQ(ParseSize("x", "16777215T").value(), uint64_t{16777215} << 40);
  for (const char* bad : {"", "M", "-1", "+1", " 1", "1 ", "1.5G", "1MB",
                          "0x10", "99999999999999999999"}) {
    ExpectError(ParseSize("memory", bad).status(), kInvalid,
                {"memory", std::string("'") + bad + "'", "256M"});
  }
  ExpectError(ParseSize("memory", "16777216T").status(), kInvalid,
              {"64 bits", "16777216T"});
}

TEST(ParseSize, ReadsBackWhatFormatSizeWrites) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{1536},
                              uint64_t{5} << 30, ~uint64_t{0}}) {
    EXPECT_EQ(ParseSize("x", FormatSize(size)).value(), size);
  }
  EXPECT_EQ(FormatSize(uint64_t{256} << 20), "256M");
}

TEST(SpecReader, TakesEachOptionByName) {
  absl::StatusOr<SpecReader> reader =
      SpecReader::Parse("hotset:size=64M,share=0.9,fill=none");
  ASSERT_TRUE(reader.ok());
  uint64_t size = 0;
  uint64_t fill = 100;
  uint64_t absent = 17;
  double share = 0;
  MIG_EXPECT_OK(reader->TakeSize("size", &size));
  MIG_EXPECT_OK(reader->TakeShare("share", &share));
  MIG_EXPECT_OK(reader->TakePercent("fill", &fill));
  MIG_EXPECT_OK(reader->TakeCount("absent", 0, 100, &absent));
  MIG_EXPECT_OK(reader->Finish());
  EXPECT_EQ(reader->kind(), "hotset");
  EXPECT_EQ(size, uint64_t{64} << 20);
  EXPECT_EQ(share, 0.9);
  EXPECT_EQ(fill, 0U);
  EXPECT_EQ(absent, 17U);
}

TEST(SpecReader, NamesTheOptionThatNobodyKnows) {
  SpecReader reader = SpecReader::Parse("uniform:rte=5").value();
  uint64_t rate = 0;
  MIG_EXPECT_OK(reader.TakeSize("rate", &rate));
  ExpectError(reader.Finish(), kInvalid, {"'rte'", "uniform", "rate"});
}

TEST(SpecReader, RefusesTextThatIsNotAList) {
  ExpectError(SpecReader::Parse("").status(), kInvalid, {"nothing before"});
  ExpectError(SpecReader::Parse(":a=1").status(), kInvalid, {"':a=1'"});
  ExpectError(SpecReader::Parse("x:a=1,,b=2").status(), kInvalid, {"empty"});
  ExpectError(SpecReader::Parse("x:").status(), kInvalid, {"empty"});
  ExpectError(SpecReader::Parse("x:a=1,a=2").status(), kInvalid, {"twice"});
}

TEST(SpecReader, RefusesValuesOutOfRangeNamingTheRange) {
  SpecReader reader = SpecReader::Parse("x:n=5000,s=nan,p=101").value();
  uint64_t number = 1;
  double share = 0.5;
  ExpectError(reader.TakeCount("n", 2, 4999, &number), kInvalid,
              {"'5000'", "2 to 4999"});
  ExpectError(reader.TakeShare("s", &share), kInvalid, {"'nan'", "0 to 1"});
  ExpectError(reader.TakePercent("p", &number), kInvalid, {"'101'", "all"});
  EXPECT_EQ(number, 1U);
  EXPECT_EQ(share, 0.5);
}

}  // namespace
}  // namespace mig::sim
