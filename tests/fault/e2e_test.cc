// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Whole migrations by mig-host-sim, in two processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "migration.h"

namespace mig::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int kOk = 0, kFailed = 1, kCancelled = 5;
constexpr Millis kLimit(120000);

struct Ran {
  int code = -1;
  Json json;
  std::string err;
};

// `run --json` with `more`: one object on stdout, and nothing else.
Ran RunBoth(const Arguments& more, const TempDir& dir) {
  Process process(dir,
                  Join(Join({HostSim(), "run", "--json", "--after", "100ms"},
                            PluginArguments()),
                       more));
  Ran ran;
  ran.code = process.Wait(kLimit).value_or(-1);
  ran.err = process.Stderr();
  ran.json = Json::parse(process.Stdout(), nullptr, false);
  EXPECT_TRUE(ran.json.is_object()) << process.Stdout() << ran.err;
  if (!ran.json.is_object()) ran.json = Json::object();
  return ran;
}

void ExpectVerified(const Ran& ran) {
  EXPECT_EQ(ran.code, kOk) << ran.err;
  EXPECT_EQ(ran.json.value("verified", false), true) << ran.json.dump(2);
  EXPECT_EQ(ran.json.value("outcome", ""), "migrated");
}

class WorkloadTest : public ::testing::TestWithParam<const char*> {};

TEST_P(WorkloadTest, ArrivesVerifiedAndGoesOn) {
  const TempDir dir;
  const Ran ran = RunBoth({"--memory", "ram:48M", "--memory", "vga:4M",
                           "--workload", GetParam(), "--strict"},
                          dir);
  ExpectVerified(ran);
  for (const char* key :
       {"plugin", "verified", "total_ms", "downtime_ms", "rounds", "bytes",
        "throughput_mib_s", "downtime", "caps", "counters", "guest"}) {
    EXPECT_TRUE(ran.json.contains(key)) << key;
  }
  EXPECT_TRUE(ran.json["rounds"].is_array());
  EXPECT_GE(ran.json["rounds"].size(), 2U);
  EXPECT_EQ(ran.json["guest"]["side"], "destination");
  EXPECT_EQ(ran.json["guest"]["good"], true);
  EXPECT_EQ(ran.json["downtime"]["measured"], "both-sides");
}

INSTANTIATE_TEST_SUITE_P(C25, WorkloadTest,
                         ::testing::Values("idle", "uniform",
                                           "hotset:size=4M,share=0.9",
                                           "sequential:rate=40M",
                                           "bank:accounts=2000",
                                           "machine:instructions=20000000"),
                         [](const auto& info) {
                           const std::string spec = info.param;
                           return spec.substr(0, spec.find(':'));
                         });

class TrackerTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TrackerTest, C25FindsEveryWrite) {
  const TempDir dir;
  Process process(dir,
                  Join(Join({HostSim(), "run"}, PluginArguments()),
                       {"--json", "--memory", "32M", "--tracker", GetParam(),
                        "--workload", "uniform:rate=100M", "--after", "50ms"}));
  const int code = process.Wait(kLimit).value_or(-1);
  if (code == 2) GTEST_SKIP() << process.Stderr();
  const Json json = Json::parse(process.Stdout(), nullptr, false);
  ExpectVerified({code, json, process.Stderr()});
}

INSTANTIATE_TEST_SUITE_P(All, TrackerTest,
                         ::testing::Values("auto", "uffd", "soft-dirty",
                                           "mprotect", "simulated"));

TEST(MemoryTest, AFilesImage) {
  const TempDir dir;
  const std::string path = dir.Path("image");
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 3'000'001; ++i) file.put(static_cast<char>(i * 7 >> 3));
  file.close();
  // A workload that leaves other blocks alone: their contents arrive as well.
  ExpectVerified(
      RunBoth({"--memory", "ram:8M", "--memory", "disk,backing=file:" + path,
               "--workload", "bank:accounts=2000"},
              dir));
}

TEST(MemoryTest, Prefaulted) {
  const TempDir dir;
  ExpectVerified(RunBoth({"--memory", "32M", "--prefault"}, dir));
}

TEST(MemoryTest, Memfd) {
  const TempDir dir;
  ExpectVerified(RunBoth({"--memory", "32M,backing=memfd"}, dir));
}

// C13: 5 GiB of which little was ever written, and that either side of 4 GiB.
TEST(MemoryTest, C13FiveGiBSparse) {
  const TempDir dir;
  const Ran ran = RunBoth(
      {"--memory", "5G", "--workload", "uniform:fill=none,rate=4M"}, dir);
  ExpectVerified(ran);
  EXPECT_GT(ran.json["rounds"][0].value("zero_pages", 0), 1'300'000);
  EXPECT_LT(ran.json.value("bytes", uint64_t{0}), uint64_t{1} << 30);
}

// H1: pages that become zero again after they were sent with contents.
TEST(MemoryTest, ZeroPagesInEveryRound) {
  const TempDir dir;
  ExpectVerified(RunBoth({"--memory", "32M", "--zero-detect", "every"}, dir));
  ExpectVerified(RunBoth({"--memory", "32M", "--zero-detect", "off"}, dir));
}

TEST(TransportTest, UnixSocket) {
  if (PluginName() != "tcp") GTEST_SKIP() << "only tcp has unix: URIs";
  const TempDir dir;
  ExpectVerified(
      RunBoth({"--memory", "32M", "--listen", "unix:" + dir.Path("s")}, dir));
}

// The plugin itself moves every queue pair, on both sides.
TEST(TransportTest, ServiceLevelOnEveryQueuePair) {
  if (PluginName() != "rdma") GTEST_SKIP() << "only rdma has service levels";
  const TempDir dir;
  ExpectVerified(RunBoth({"--memory", "32M", "--plugin-option",
                          "service-level=3", "--plugin-option", "data-qps=2"},
                         dir));
}

TEST(TransportTest, ExamplePluginInOneProcess) {
  const TempDir dir;
  Process process(dir, {HostSim(), "run", "--one-process", "--plugin",
                        "example", "--memory", "32M", "--json", "--workload",
                        "uniform:rate=50M", "--after", "50ms"});
  const int code = process.Wait(kLimit).value_or(-1);
  ExpectVerified(
      {code, Json::parse(process.Stdout(), nullptr, false), process.Stderr()});
}

TEST(TransportTest, DeviceStateOfManyMessages) {
  const TempDir dir;
  const Ran ran =
      RunBoth({"--memory", "16M", "--device-state", "40M", "--workload",
               "uniform:rate=2M", "--downtime-limit", "5s"},
              dir);
  ExpectVerified(ran);
  EXPECT_GT(ran.json.value("state_bytes", 0), 40 << 20);
}

// C26: 50 MiB/s of dirt on a link of 10 MiB/s: still too much for it where the
// machine is so busy that the guest gets a quarter of that done.
Arguments CannotConverge(const std::string& mode) {
  return {"--memory",         "8M",
          "--max-bandwidth",  "10M",
          "--workload",       "uniform:rate=50M",
          "--downtime-limit", "100ms",
          "--converge",       mode};
}

TEST(ConvergeTest, C26GiveUpComesEarlyAndTheGuestRunsOn) {
  const TempDir dir;
  const Ran ran = RunBoth(CannotConverge("give-up"), dir);
  EXPECT_EQ(ran.code, kCancelled) << ran.err;
  EXPECT_EQ(ran.json.value("outcome", ""), "gave-up");
  EXPECT_LE(ran.json["rounds"].size(), 4U) << "early";
  EXPECT_THAT(ran.err, HasSubstr("does not converge: it dirties"));
  EXPECT_EQ(ran.json["guest"]["side"], "source");
  EXPECT_EQ(ran.json["guest"]["good"], true);
}

TEST(ConvergeTest, C26ThrottleSlowsTheGuestUntilItFits) {
  const TempDir dir;
  const Ran ran = RunBoth(CannotConverge("throttle"), dir);
  ExpectVerified(ran);
  EXPECT_GE(ran.json.value("throttle_percent", 0), 20);
  EXPECT_THAT(ran.err, HasSubstr("throttling it by 20%"));
}

TEST(ConvergeTest, C26StopStopsTheGuestAtTheLimit) {
  const TempDir dir;
  const Ran ran =
      RunBoth(Join(CannotConverge("stop"), {"--max-rounds", "3"}), dir);
  ExpectVerified(ran);
  EXPECT_EQ(ran.json.value("forced_stop", false), true);
  EXPECT_EQ(ran.json["rounds"].size(), 4U);
}

TEST(ConvergeTest, TheTimeLimitEndsALongRound) {
  const TempDir dir;
  const Ran ran =
      RunBoth(Join(CannotConverge("throttle"), {"--time-limit", "300ms"}), dir);
  EXPECT_EQ(ran.code, kCancelled) << ran.err;
  EXPECT_LT(ran.json.value("total_ms", 1e9), 3000.0);
}

// A sanitizer's process on a busy machine may be silent for a second.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr char kPeerTimeout[] = "peer-timeout=3s";
constexpr char kThreePeerTimeouts[] = "9s";
#else
constexpr char kPeerTimeout[] = "peer-timeout=1s";
constexpr char kThreePeerTimeouts[] = "3s";
#endif

const Arguments kShort = {"--plugin-option", kPeerTimeout, "--after", "50ms",
                          "--peer-wait",     "15s"};

TEST(InterruptTest, SigintCancelsAndTheGuestStays) {
  Migration migration;
  migration.StartDestination(kShort);
  migration.StartSource(
      Join(kShort, {"--memory", "64M", "--max-bandwidth", "10M"}));
  ASSERT_TRUE(migration.source().WaitForText("dirty tracking", kLimit));
  migration.source().Signal(SIGINT);
  EXPECT_EQ(migration.source().Wait(kLimit), kCancelled)
      << migration.Transcript();
  EXPECT_EQ(migration.destination().Wait(kLimit), kFailed);
  EXPECT_FALSE(migration.Ran("destination"));
}

TEST(InterruptTest, SigtermEndsAWaitingDestination) {
  Migration migration;
  migration.StartDestination({"--peer-wait", "0"});
  migration.destination().Signal(SIGTERM);
  EXPECT_EQ(migration.destination().Wait(kLimit), kFailed);
}

TEST(HostBusyTest, C36LoadingTakesThreePeerTimeouts) {
  Migration migration;
  migration.StartDestination(
      Join(kShort, {"--load-delay", kThreePeerTimeouts}));
  migration.StartSource(Join(kShort, {"--memory", "8M"}));
  EXPECT_EQ(migration.source().Wait(kLimit), kOk) << migration.Transcript();
  EXPECT_EQ(migration.destination().Wait(kLimit), kOk);
}

TEST(HostBusyTest, C36WithoutHostBusyTheSourceEndsInTheBound) {
  Migration migration;
  migration.StartDestination(
      Join(kShort, {"--load-delay", kThreePeerTimeouts, "--no-host-busy"}));
  migration.StartSource(Join(kShort, {"--memory", "8M"}));
  const std::optional<int> code = migration.source().Wait(Millis(30000));
  ASSERT_TRUE(code.has_value());
  EXPECT_NE(*code, kOk) << migration.Transcript();
  ASSERT_TRUE(migration.destination().Wait(kLimit).has_value());
  EXPECT_EQ(migration.Overlap("", 0), "") << migration.Transcript();
}

// C27: both values, on both sides.
TEST(MismatchTest, C27BlockLengths) {
  Migration migration;
  migration.StartDestination(Join(kShort, {"--memory", "ram:8M"}));
  migration.StartSource(Join(kShort, {"--memory", "ram:16M"}));
  EXPECT_EQ(migration.source().Wait(kLimit), kFailed);
  EXPECT_EQ(migration.destination().Wait(kLimit), kFailed);
  for (const std::string& text :
       {migration.source().Stderr(), migration.destination().Stderr()}) {
    EXPECT_THAT(text, HasSubstr("8388608")) << migration.Transcript();
    EXPECT_THAT(text, HasSubstr("16777216")) << migration.Transcript();
  }
}

TEST(MismatchTest, Rule14AnotherVmIsRefusedAndTheRightOneServed) {
  Migration migration;
  migration.StartDestination(Join(kShort, {"--attempt", "2"}));
  migration.StartSource(Join(kShort, {"--memory", "8M", "--attempt", "1"}));
  EXPECT_EQ(migration.source().Wait(kLimit), kFailed) << migration.Transcript();
  migration.StartSource(Join(kShort, {"--memory", "8M", "--attempt", "2"}));
  EXPECT_EQ(migration.source().Wait(kLimit), kOk) << migration.Transcript();
  EXPECT_EQ(migration.destination().Wait(kLimit), kOk);
}

TEST(MismatchTest, TheSourceIsToldWhyTheDestinationEnds) {
  Migration migration;
  migration.StartDestination(Join(kShort, {"--max-memory", "1M"}));
  migration.StartSource(Join(kShort, {"--memory", "8M"}));
  EXPECT_EQ(migration.source().Wait(kLimit), kFailed);
  EXPECT_THAT(migration.source().Stderr(), HasSubstr("raise --max-memory"))
      << migration.Transcript();
}

}  // namespace
}  // namespace mig::test
