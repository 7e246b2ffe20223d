// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The wire and the devices fail under a migration. Peers that are killed or
// stopped are the other fault_test's, which runs here too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "machine.h"

namespace mig::test {
namespace {

using ::testing::HasSubstr;

constexpr char kThere[] = "rdma://10.7.2.1:0";
constexpr int kFailed = 1;
// The peer's silence may last five seconds; the rest is for slow machines.
constexpr Millis kBound(60000);
const Arguments kShort = {"--plugin-option", "peer-timeout=5s", "--after",
                          "100ms"};

class TwoHostsFault : public ::testing::Test {
 protected:
  // In the middle of a slow first round.
  void StartSlowMigration() {
    migration_.StartDestination(kShort, kThere);
    ASSERT_FALSE(HasFatalFailure());
    migration_.StartSource(
        Join(kShort, {"--memory", "64M", "--workload", "uniform:rate=1M",
                      "--max-bandwidth", "2M"}));
    ASSERT_TRUE(migration_.source().WaitForText("dirty tracking", kLimit))
        << migration_.Transcript();
    const uint64_t before = WireBytes();
    for (int i = 0; i < 600 && WireBytes() < before + 2'000'000; ++i) {
      Shell("sleep 0.1");
    }
    ASSERT_GE(WireBytes(), before + 2'000'000) << migration_.Transcript();
  }

  void ExpectBothFailAndTheGuestStays() {
    EXPECT_EQ(migration_.source().Wait(kBound), kFailed)
        << migration_.Transcript();
    EXPECT_EQ(migration_.destination().Wait(kBound), kFailed)
        << migration_.Transcript();
    EXPECT_FALSE(migration_.Ran("destination")) << migration_.Transcript();
    EXPECT_THAT(migration_.source().Stderr(),
                HasSubstr("the guest runs on here"));
    EXPECT_THAT(migration_.source().Stderr(), HasSubstr("its memory is right"));
  }

  void ExpectNextMigrationWorks() {
    SCOPED_TRACE("the next migration");
    Migrate(kThere, {}, {"--memory", "8M", "--workload", "uniform:rate=1M"});
  }

  Migration migration_;
};

TEST_F(TwoHostsFault, C08ACutWireEndsBothInTheBound) {
  StartSlowMigration();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(Shell("tc qdisc add dev v0 root netem loss 100%"), 0);
  ASSERT_EQ(Shell("tc qdisc add dev v1 root netem loss 100%"), 0);
  ExpectBothFailAndTheGuestStays();
  EXPECT_THAT(migration_.source().Stderr(), HasSubstr("10.7.2.1"));
  EXPECT_THAT(migration_.destination().Stderr(), HasSubstr("10.7.1.1"));
  ASSERT_EQ(Shell("tc qdisc del dev v0 root; tc qdisc del dev v1 root"), 0);
  ExpectNextMigrationWorks();
}

TEST_F(TwoHostsFault, C08ALinkTakenDownEndsBothInTheBound) {
  StartSlowMigration();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(Shell("ip link set v1 down"), 0);
  ExpectBothFailAndTheGuestStays();
  // Its routes went with it. And soft-RoCE on Linux 6.1 has an error left on
  // the queue pair of its connection manager's, until the device is made anew.
  ASSERT_EQ(Shell("ip link set v1 up && "
                  "ip route add 10.7.1.1 dev v1 src 10.7.2.1 table 101 && "
                  "ip route add 10.7.1.1 dev v1 src 10.7.2.1 metric 1 && "
                  "rdma link delete rxe0 && rdma link delete rxe1 && "
                  "rdma link add rxe0 type rxe netdev v0 && "
                  "rdma link add rxe1 type rxe netdev v1"),
            0);
  ExpectNextMigrationWorks();
}

class TwoHostsLoss : public ::testing::TestWithParam<const char*> {};

TEST_P(TwoHostsLoss, PacketsThatAreLostAreSentAgain) {
  const std::string loss(GetParam());
  ASSERT_EQ(Shell("tc qdisc add dev v0 root netem loss " + loss), 0);
  ASSERT_EQ(Shell("tc qdisc add dev v1 root netem loss " + loss), 0);
  Migrate(kThere, {}, {"--memory", "8M", "--workload", "uniform:rate=100K"});
  EXPECT_EQ(Shell("tc qdisc del dev v0 root; tc qdisc del dev v1 root"), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, TwoHostsLoss, ::testing::Values("0.1%", "1%"),
                         [](const auto& info) {
                           return info.index == 0 ? "OneInAThousand"
                                                  : "OneInAHundred";
                         });

// C20: the kernel waits until nobody holds the device, so each side has to let
// go of it.
class TwoHostsRemoval : public TwoHostsFault,
                        public ::testing::WithParamInterface<const char*> {};

TEST_P(TwoHostsRemoval, C20EndsTheMigrationAndLetsTheDeviceGo) {
  const std::string device = GetParam();
  StartSlowMigration();
  ASSERT_FALSE(HasFatalFailure());
  const TempDir dir;
  Process removal(dir, {"/usr/bin/rdma", "link", "delete", "rxe" + device});
  ExpectBothFailAndTheGuestStays();
  Process& hit = device == "0" ? migration_.source() : migration_.destination();
  EXPECT_THAT(hit.Stderr(), HasSubstr("device was removed"));
  EXPECT_EQ(removal.Wait(kBound), 0) << "the device is still held";
  std::string restore = "rdma link add rxe";
  restore.append(device).append(" type rxe netdev v").append(device);
  ASSERT_EQ(Shell(restore), 0);
  ExpectNextMigrationWorks();
}

INSTANTIATE_TEST_SUITE_P(Of, TwoHostsRemoval, ::testing::Values("0", "1"),
                         [](const auto& info) {
                           return info.index == 0 ? "TheSources"
                                                  : "TheDestinations";
                         });

}  // namespace
}  // namespace mig::test
