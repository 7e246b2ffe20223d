// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/stamp.h"

#include <cstring>

#include "test_util.h"

namespace mig::sim {
namespace {

using testing::HasSubstr;

constexpr StampId kId{.seed = 7, .block = 2, .page = 300};

class StampTest : public testing::Test {
 protected:
  StampTest() { WriteStamp(page_, kId, 5); }
  std::byte page_[kPageSize];
};

TEST_F(StampTest, AcceptsWholePagesAndZeroPages) {
  EXPECT_EQ(ExplainStamp(page_, kId), "");
  EXPECT_EQ(StampVersion(page_), 5U);
  memset(page_, 0, kPageSize);
  EXPECT_EQ(ExplainStamp(page_, kId), "");
  EXPECT_EQ(StampVersion(page_), 0U);
}

TEST_F(StampTest, SeesEveryFlippedBit) {
  for (size_t bit = 0; bit < kPageSize * 8; bit += 7) {
    page_[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_NE(ExplainStamp(page_, kId), "") << bit;
    page_[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST_F(StampTest, TellsTornPagesWithBothVersions) {
  std::byte newer[kPageSize];
  WriteStamp(newer, kId, 6);
  memcpy(page_ + 1024, newer + 1024, kPageSize - 1024);
  EXPECT_EQ(ExplainStamp(page_, kId),
            "torn: version 5 up to byte 1024, version 6 from there");
}

TEST_F(StampTest, TellsForeignPagesWithTheirOwner) {
  StampId other = kId;
  other.page = 301;
  EXPECT_EQ(ExplainStamp(page_, other),
            "foreign: it is page 300 of block number 2");
  StampId other_seed = kId;
  other_seed.seed = 8;
  EXPECT_THAT(ExplainStamp(page_, other_seed), HasSubstr("damaged"));
}

TEST_F(StampTest, TellsDamageWithTheByte) {
  page_[2048] ^= std::byte{1};
  EXPECT_EQ(ExplainStamp(page_, kId), "damaged: not version 5 at byte 2048");
  memset(page_ + 4088, 0, 8);
  page_[2048] ^= std::byte{1};
  EXPECT_EQ(ExplainStamp(page_, kId),
            "damaged: not version 5 at byte 4088, but zero");
  memset(page_, 0, 16);
  EXPECT_THAT(ExplainStamp(page_, kId), HasSubstr("not zero at byte 16"));
  page_[0] = std::byte{0xaa};
  EXPECT_THAT(ExplainStamp(page_, kId), HasSubstr("0xaa"));
}

}  // namespace
}  // namespace mig::sim
