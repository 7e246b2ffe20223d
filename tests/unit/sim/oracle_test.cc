// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/oracle.h"

#include <cstring>
#include <memory>

#include "gtest/gtest.h"

namespace mig::model {
namespace {

class OracleTest : public ::testing::Test {
 protected:
  static GuestShape Shape() {
    GuestShape shape;
    shape.page_size = 1024;
    shape.blocks = {{.pages = 4, .zeroed = false},
                    {.pages = 4, .zeroed = true}};
    return shape;
  }
  // What a right transport does.
  void Copy(uint64_t page) {
    std::memcpy(destination->Page(page).data(), source->Page(page).data(),
                1024);
  }
  void SendAll(uint64_t round) {
    for (uint64_t page = 0; page < 8; ++page) {
      oracle.HandedOver(page, round);
      Copy(page);
    }
  }

  std::unique_ptr<GuestMemory> source = *GuestMemory::Create(Shape());
  std::unique_ptr<GuestMemory> destination = *GuestMemory::Create(Shape());
  Oracle oracle{source.get(), destination.get()};
};

TEST_F(OracleTest, TakesARoundThatIsThereWhole) {
  SendAll(1);
  EXPECT_TRUE(oracle.RoundDone(1).ok());
  EXPECT_TRUE(oracle.CheckWhole().ok());
}

TEST_F(OracleTest, SeesAPageThatDidNotCome) {
  for (uint64_t page = 0; page < 8; ++page) oracle.HandedOver(page, 1);
  for (uint64_t page = 0; page < 7; ++page) Copy(page);
  oracle.Write(7, Part::kWhole, false);
  oracle.HandedOver(7, 1);
  EXPECT_FALSE(oracle.RoundDone(1).ok());
}

TEST_F(OracleTest, TakesAPageThatIsNewerThanItsRound) {
  SendAll(1);
  oracle.Write(2, Part::kWhole, false);
  Copy(2);
  EXPECT_TRUE(oracle.RoundDone(1).ok());
}

TEST_F(OracleTest, SeesOldDataThatLandsAfterNew) {
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  uint64_t old[128];
  std::memcpy(old, source->Page(2).data(), sizeof old);
  oracle.Write(2, Part::kWhole, false);
  oracle.HandedOver(2, 2);
  Copy(2);
  ASSERT_TRUE(oracle.RoundDone(2).ok());
  std::memcpy(destination->Page(2).data(), old, sizeof old);
  EXPECT_FALSE(oracle.CheckDestination().ok());
}

TEST_F(OracleTest, SeesAZeroThatLandsOnNewData) {
  oracle.Write(5, Part::kWhole, true);
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  oracle.Write(5, Part::kWhole, false);
  oracle.HandedOver(5, 2);
  Copy(5);
  ASSERT_TRUE(oracle.RoundDone(2).ok());
  std::memset(destination->Page(5).data(), 0, 1024);
  EXPECT_FALSE(oracle.CheckDestination().ok());
}

TEST_F(OracleTest, TakesATornPageOnlyWhileItIsDirtyAgain) {
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  oracle.Write(3, Part::kWhole, false);
  // Half a half.
  std::memcpy(destination->Page(3).data(), source->Page(3).data(), 256);
  EXPECT_TRUE(oracle.CheckDestination().ok());
  oracle.HandedOver(3, 2);
  EXPECT_FALSE(oracle.RoundDone(2).ok());
}

TEST_F(OracleTest, SeesAWordThatNobodyWrote) {
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  destination->Page(1)[100] ^= 1;
  EXPECT_FALSE(oracle.CheckDestination().ok());
  EXPECT_FALSE(oracle.CheckWhole().ok());
}

TEST_F(OracleTest, SeesAPageInTheWrongPlace) {
  SendAll(1);
  std::memcpy(destination->Page(1).data(), source->Page(2).data(), 1024);
  EXPECT_FALSE(oracle.RoundDone(1).ok());
}

TEST_F(OracleTest, HoldsWhatWasTakenBackToNothing) {
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  oracle.Write(3, Part::kWhole, false);
  oracle.HandedOver(3, 2);
  oracle.TakenBack(3, 2);
  EXPECT_TRUE(oracle.RoundDone(2).ok());
}

TEST_F(OracleTest, SeesAWriteAfterTheGuestWasTaken) {
  SendAll(1);
  ASSERT_TRUE(oracle.RoundDone(1).ok());
  ASSERT_TRUE(oracle.CheckWhole().ok());
  oracle.Taken();
  oracle.Write(0, Part::kFirst, false);
  EXPECT_TRUE(oracle.CheckOwner().ok());
  Copy(0);
  EXPECT_FALSE(oracle.CheckOwner().ok());
}

}  // namespace
}  // namespace mig::model
