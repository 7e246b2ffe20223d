// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The texts that a device and its faults are made from.
#include "soft-verbs/config.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::soft {
namespace {

using ::testing::HasSubstr;

std::string Refusal(absl::string_view text) {
  const auto config = ParseConfig(text);
  EXPECT_EQ(ErrorCode(config.status()), MIG_E_OPTION) << text;
  return std::string(config.status().message());
}

TEST(ConfigTest, ModelAloneHasItsLimits) {
  const auto config = ParseConfig("rxe");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->limits.max_cqe, 32767u);
  EXPECT_EQ(config->landing, Landing::kEarliest);
}

TEST(ConfigTest, OptionsChangeSingleThings) {
  const auto config = ParseConfig(
      "mlx5,seed=7,landing=random,max-msg-size=1M,wr-delay=50us,"
      "inline-errno=ENOSPC,inline-grant=half,memlock=64M,rkey-zero=on,"
      "addresses=10.0.0.1+fe80::1,faults=wc 5 RETRY_EXC_ERR;drop 7");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seed, 7u);
  EXPECT_EQ(config->landing, Landing::kRandom);
  EXPECT_EQ(config->limits.max_msg_size, 1u << 20);
  EXPECT_EQ(config->costs.wr_delay, 50'000u);
  EXPECT_EQ(config->inline_errno, ENOSPC);
  EXPECT_EQ(config->inline_grant, InlineGrant::kHalf);
  EXPECT_EQ(config->memlock, 64u << 20);
  EXPECT_TRUE(config->rkey_zero);
  EXPECT_EQ(config->addresses.size(), 2u);
  ASSERT_EQ(config->faults.size(), 2u);
  EXPECT_EQ(config->faults[0].error, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(config->faults[1].value, UINT64_MAX);
}

TEST(ConfigTest, RefusalsNameTheWordAndWhatIsAllowed) {
  EXPECT_THAT(Refusal("mlx9"), HasSubstr("use mlx5, mlx4, irdma, rxe or siw"));
  EXPECT_THAT(Refusal("mlx5,landing=soon"),
              HasSubstr("latest, random or none"));
  EXPECT_THAT(Refusal("mlx5,seed=-1"), HasSubstr("seed=-1"));
  EXPECT_THAT(Refusal("mlx5,wr-delay=5"
                      "days"),
              HasSubstr("ns, us, ms, s"));
  EXPECT_THAT(Refusal("mlx5,memlock=99999999999999999999"),
              HasSubstr("memlock"));
  EXPECT_THAT(Refusal("mlx5,devices=0"), HasSubstr("1 to 64"));
  EXPECT_THAT(Refusal("mlx5,colour=red"), HasSubstr("colour"));
  EXPECT_THAT(Refusal("mlx5,create-ex=maybe"), HasSubstr("on or off"));
  EXPECT_THAT(Refusal("mlx5,inline-errno=EWHAT"), HasSubstr("EWHAT"));
  EXPECT_THAT(Refusal("mlx5,faults=@/does/not/exist"), HasSubstr("readable"));
}

TEST(ConfigTest, FaultsComeFromAFileToo) {
  const std::string path = ::testing::TempDir() + "soft_faults.txt";
  std::ofstream(path) << "# the third registration\n"
                         "call RegMr 3 ENOMEM  # no more\n\n"
                         "stop @1000 0\n";
  const auto config = ParseConfig("rxe,faults=@" + path);
  std::remove(path.c_str());
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->faults.size(), 2u);
  EXPECT_EQ(config->faults[0].name, "RegMr");
  EXPECT_EQ(config->faults[0].number, 3u);
  EXPECT_EQ(config->faults[0].error, ENOMEM);
  EXPECT_TRUE(config->faults[1].timed);
}

TEST(ConfigTest, FaultsThatAreMisspelledAreNamed) {
  for (const char* line :
       {"call RegMr ENOMEM", "call RegMr 0 ENOMEM", "post 1", "post 1 EWHAT",
        "post 1 EIO perhaps", "wc 3 SUCCESS", "wc 3", "drop", "drop x",
        "delay 1", "fatal", "fatal @", "stop 5", "stop @5 -1", "reject 1 2",
        "explode 3"}) {
    const auto faults = ParseFaults(line);
    ASSERT_FALSE(faults.ok()) << line;
    EXPECT_THAT(std::string(faults.status().message()), HasSubstr(line));
  }
}

TEST(ConfigTest, CallsAreCountedByName) {
  Faults faults(*ParseFaults("call RegMr 2 ENOMEM minus-one; reject 2"));
  EXPECT_EQ(faults.OnCall("RegMr"), nullptr);
  EXPECT_EQ(faults.OnCall("AllocPd"), nullptr);
  const Fault* fault = faults.OnCall("RegMr");
  ASSERT_NE(fault, nullptr);
  EXPECT_TRUE(fault->minus_one);
  EXPECT_EQ(faults.OnCall("RegMr"), nullptr);
  EXPECT_FALSE(faults.Hits(Fault::Kind::kReject));
  EXPECT_TRUE(faults.Hits(Fault::Kind::kReject));
}

}  // namespace
}  // namespace mig::soft
