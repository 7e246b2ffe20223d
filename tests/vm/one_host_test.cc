// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Both sides on one RDMA device of the kernel's: soft-RoCE, or iWARP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "machine.h"

namespace mig::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kHere[] = "rdma://10.7.0.1:0";
const Arguments kSmall = {"--memory", "16M", "--workload", "uniform:rate=4M"};

// `probe`, asking for `inline_bytes`.
std::string Probe(const std::string& inline_bytes) {
  const TempDir dir;
  Process probe(dir, {HostSim(), "probe", "--plugin", "rdma", "--plugin-option",
                      "control-inline=" + inline_bytes});
  EXPECT_EQ(probe.Wait(kLimit), 0) << probe.Stderr();
  return probe.Stdout();
}

// C01, C02: more than soft-RoCE has, 512, is refused with EINVAL, and less is
// tried at once.
TEST(OneHost, C01InlineStepsDownTheLadderInAProbe) {
  EXPECT_THAT(Probe("56"), HasSubstr("ex gave 32/3/56"));
  const std::string all = Probe("512");
  EXPECT_THAT(all, HasSubstr("ex gave 32/32/512"));
  EXPECT_THAT(all, Not(HasSubstr("EINVAL")));
  const std::string stepped = Probe("513");
  EXPECT_THAT(stepped, HasSubstr("ex EINVAL, plain EINVAL"));
  EXPECT_THAT(stepped, HasSubstr("32/2/256"));
}

TEST(OneHost, AProbeShowsPortsAndGids) {
  const std::string text = Probe("56");
  EXPECT_THAT(text, HasSubstr("rxe0 port 1"));
  EXPECT_THAT(text, HasSubstr("RoCE, MTU 4096, messages to 8388608 bytes"));
  EXPECT_THAT(text, HasSubstr("10.7.0.1, GID 1=::ffff:10.7.0.1, RoCE v2"));
  EXPECT_THAT(text, HasSubstr("fd07::1, GID 2=fd07::1, RoCE v2"));
}

TEST(OneHost, C01InlineStepsDownTheLadderInAMigration) {
  const Json json =
      Migrate(kHere, {"--plugin-option", "control-inline=513"},
              Join(kSmall, {"--plugin-option", "control-inline=4000"}));
  const std::string text = CapabilityText(json, "control-send-depth");
  EXPECT_THAT(text, HasSubstr("EINVAL"));
  EXPECT_THAT(text, HasSubstr("gave 32/"));
  EXPECT_GT(CounterOf(json, "control-inline"), 0U);
}

// C12: a message of soft-RoCE has 8 MiB at most, a chunk here 32 MiB.
TEST(OneHost, C12LongWritesAreSplit) {
  const Json json =
      Migrate(kHere, {"--plugin-option", "chunk-size=32M"},
              {"--memory", "48M", "--workload", "uniform:rate=1M",
               "--zero-detect", "off", "--plugin-option", "chunk-size=32M"});
  EXPECT_GT(CounterOf(json, "splits"), 0U);
}

class OneHostWorkloads : public ::testing::TestWithParam<Arguments> {};

TEST_P(OneHostWorkloads, ArriveVerified) {
  const TempDir dir;
  const Json json =
      Migrate(kHere, GetParam(),
              Join(GetParam(), {"--memory", "ram:16M", "--memory",
                                "disk,backing=file:" + MakeImage(dir, 3000001),
                                "--workload", "bank:accounts=2000"}));
  EXPECT_GT(CounterOf(json, "registrations"), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Registration, OneHostWorkloads,
    ::testing::Values(Arguments{},
                      Arguments{"--plugin-option", "registration=dynamic",
                                "--plugin-option", "chunk-size=1M",
                                "--plugin-option", "data-qps=4"}));

// C11: root may pin without a limit, but for this capability.
TEST(OneHost, C11AMemlockLimitIsToldBeforeAnythingIsPinned) {
  const TempDir dir;
  Process run(dir, Join({"/usr/bin/setpriv", "--bounding-set=-ipc_lock",
                         "/usr/bin/prlimit", "--memlock=8388608", HostSim(),
                         "run", "--plugin", "rdma", "--listen", kHere},
                        {"--memory", "64M", "--after", "100ms"}));
  EXPECT_EQ(run.Wait(kLimit), 1) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("8388608")) << "the limit";
  EXPECT_THAT(run.Stderr(), HasSubstr("ulimit -l")) << "the remedy";
  EXPECT_THAT(run.Stderr(), HasSubstr("while exchanging"));
}

// What it pins by chunk fits.
TEST(OneHost, C11DynamicRegistrationSaysSoToo) {
  const TempDir dir;
  Process run(
      dir,
      {"/usr/bin/setpriv", "--bounding-set=-ipc_lock", "/usr/bin/prlimit",
       "--memlock=8388608", HostSim(), "run", "--plugin", "rdma", "--listen",
       kHere, "--memory", "64M", "--after", "100ms", "--plugin-option",
       "registration=dynamic", "--plugin-option", "chunk-size=1M"});
  EXPECT_EQ(run.Wait(kLimit), 1) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("ulimit -l")) << "the remedy";
  EXPECT_THAT(run.Stderr(), HasSubstr("the guest runs on here"));
}

TEST(OneHost, C19WithoutADeviceTheErrorSaysSo) {
  ASSERT_EQ(Shell("rdma link delete rxe0"), 0);
  const TempDir dir;
  Process source(dir, {HostSim(), "source", "rdma://10.7.0.1:4444", "--plugin",
                       "rdma", "--memory", "4M", "--after", "10ms"});
  EXPECT_EQ(source.Wait(kLimit), 1) << source.Stderr();
  EXPECT_THAT(source.Stderr(),
              HasSubstr("see that a device is there (rdma link)"));
  Process destination(dir,
                      {HostSim(), "destination", kHere, "--plugin", "rdma"});
  EXPECT_EQ(destination.Wait(kLimit), 1) << destination.Stderr();
  EXPECT_THAT(destination.Stderr(),
              HasSubstr("see that a device is there (rdma link)"));
  Process probe(dir, {HostSim(), "probe", "--plugin", "rdma"});
  EXPECT_EQ(probe.Wait(kLimit), 0) << probe.Stderr();
  EXPECT_THAT(probe.Stdout(), HasSubstr("none"));
  EXPECT_EQ(Shell("rdma link add rxe0 type rxe netdev d0"), 0);
}

TEST(Siw, C01InlineStepsDownTheLadder) {
  EXPECT_THAT(Probe("80"), HasSubstr("ex EOPNOTSUPP, plain gave 32/2/80"));
  const std::string stepped = Probe("81");
  EXPECT_THAT(stepped, HasSubstr("plain EINVAL at"));
  EXPECT_THAT(stepped, HasSubstr("plain gave 32/2/"));
}

TEST(Siw, Migrates) {
  Migrate(kHere, {}, kSmall);
  const Arguments options = {"--plugin-option", "registration=dynamic",
                             "--plugin-option", "chunk-size=1M",
                             "--plugin-option", "data-qps=4"};
  Migrate(kHere, options, Join(kSmall, options));
}

TEST(Siw, C11HoldsRootToTheMemlockLimitToo) {
  const TempDir dir;
  Process run(dir, {"/usr/bin/prlimit", "--memlock=8388608", HostSim(), "run",
                    "--plugin", "rdma", "--listen", kHere, "--memory", "64M",
                    "--after", "100ms"});
  EXPECT_EQ(run.Wait(kLimit), 1) << run.Stderr();
  EXPECT_THAT(run.Stderr(), HasSubstr("8388608")) << "the limit";
  EXPECT_THAT(run.Stderr(), HasSubstr("ulimit -l")) << "the remedy";
}

}  // namespace
}  // namespace mig::test
