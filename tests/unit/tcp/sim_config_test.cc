// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the option network takes, and what it says of what it does not.
#include "tcp/sim_config.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

TEST(SimConfigTest, TakesEveryKey) {
  const auto config = ParseSimConfig(
      "a b,seed=7,latency=50us,bandwidth=10M,buffer=4K,unkind=on,"
      "faults=read 1 EIO; stall @5 6 ;");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "a b");
  EXPECT_EQ(config->seed, 7u);
  EXPECT_EQ(config->latency_ns, 50'000u);
  EXPECT_EQ(config->bandwidth, 10u << 20);
  EXPECT_EQ(config->buffer, 4096u);
  EXPECT_TRUE(config->unkind);
  EXPECT_EQ(config->faults.size(), 2u);
  const auto plain = ParseSimConfig("n");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->seed.has_value());
  EXPECT_EQ(plain->latency_ns, 0u);
  EXPECT_EQ(plain->buffer, 64u << 10);
  EXPECT_FALSE(plain->unkind);
  EXPECT_EQ(ParseSimConfig("n,latency=0")->latency_ns, 0u);
  EXPECT_EQ(ParseSimConfig("n,latency=3ns")->latency_ns, 3u);
  EXPECT_EQ(ParseSimConfig("n,latency=2s")->latency_ns, 2'000'000'000u);
}

struct Bad {
  const char* text;
  const char* says;
};

TEST(SimConfigTest, RefusesEverythingElseAndSaysWhatIsAllowed) {
  constexpr Bad kBad[] = {
      {"", "sim:NAME"},
      {"latency=1ms", "is no name"},
      {"n,", "use seed, latency, bandwidth, buffer, unkind or faults"},
      {"n,loss=1", "there is no 'loss'"},
      {"n,seed=-1", "a number"},
      {"n,seed=", "a number"},
      {"n,latency=5", "a time"},
      {"n,latency=ms", "a time"},
      {"n,latency=3601s", "3600s"},
      {"n,bandwidth=1.5M", "bytes a second"},
      {"n,buffer=0", "1 byte to 1G"},
      {"n,buffer=2G", "1 byte to 1G"},
      {"n,unkind=1", "on or off"},
      {"n,unkind=on,unkind=off", "given twice"},
      {"n,faults=explode 1", "known are read, write, short"},
      {"n,faults=read 0 EIO", "'read K ERRNO'"},
      {"n,faults=read 1 5", "errnos by name"},
      {"n,faults=read 1 EWHAT", "'read K ERRNO'"},
      {"n,faults=write 1", "'write K ERRNO'"},
      {"n,faults=short 1 0", "'short K N'"},
      {"n,faults=reset", "'reset K|@NS'"},
      {"n,faults=reset @", "'reset K|@NS'"},
      {"n,faults=reset @1 2", "'reset K|@NS'"},
      {"n,faults=eof @1", "'eof K'"},
      {"n,faults=cut -1", "'cut K|@NS'"},
      {"n,faults=stall 1", "'stall K|@NS NS'"},
      {"n,faults=stall 1 9999999999999999999", "'stall K|@NS NS'"},
      {"n,faults=delay 1 x", "'delay K NS'"},
      {"n,faults=listen 1 EIO 2", "'listen K ERRNO'"},
  };
  for (const Bad& bad : kBad) {
    const auto config = ParseSimConfig(bad.text);
    EXPECT_EQ(ErrorCode(config.status()), MIG_E_OPTION) << bad.text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(bad.says))
        << bad.text;
  }
}

TEST(SimConfigTest, FaultsAreCountedByCall) {
  auto parsed = ParseSimFaults("write 2 EPIPE\nshort 2 1 # few\n;cut @9");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  SimFaults faults(*std::move(parsed));
  using Kind = SimFault::Kind;
  EXPECT_EQ(faults.Count(SimFaults::Call::kWrite), 1u);
  EXPECT_EQ(faults.Count(SimFaults::Call::kRead), 1u);
  EXPECT_EQ(faults.Count(SimFaults::Call::kWrite), 2u);
  EXPECT_EQ(faults.Find(Kind::kWrite, 1), nullptr);
  ASSERT_NE(faults.Find(Kind::kWrite, 2), nullptr);
  EXPECT_EQ(faults.Find(Kind::kWrite, 2)->error, EPIPE);
  EXPECT_NE(faults.Find(Kind::kShort, 2), nullptr);
  EXPECT_EQ(faults.Find(Kind::kCut, 0), nullptr) << "it has a time";
}

}  // namespace
}  // namespace mig::tcp
