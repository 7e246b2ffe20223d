// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// C08, C20, C33: the wire is cut, the link taken down or a device removed, in
// each phase of a migration. Both sides end in a bounded time, never with two
// guests, and once it is mended the next migration works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "machine.h"

namespace mig::test {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr char kThere[] = "rdma://10.7.2.1:0";
constexpr int kOk = 0, kFailed = 1, kInDoubt = 3, kUnverified = 4;
// The peer's silence may last five seconds; the rest is for slow machines.
constexpr Millis kBound(60000);

struct Break {
  const char* name;
  const char* cut;
  const char* mend;
};

// A route goes with its link. And soft-RoCE on Linux 6.1 has an error left on
// the queue pair of its connection manager's, until the device is made anew.
constexpr Break kBreaks[] = {
    {"wire",
     "tc qdisc add dev v0 root netem loss 100% && "
     "tc qdisc add dev v1 root netem loss 100%",
     "tc qdisc del dev v0 root && tc qdisc del dev v1 root"},
    {"link", "ip link set v1 down",
     "ip link set v1 up && "
     "ip route add 10.7.1.1 dev v1 src 10.7.2.1 table 101 && "
     "ip route add 10.7.1.1 dev v1 src 10.7.2.1 metric 1 && "
     "rdma link delete rxe0 && rdma link delete rxe1 && "
     "rdma link add rxe0 type rxe netdev v0 && "
     "rdma link add rxe1 type rxe netdev v1"},
    // Waits until the plugin has let go of the device.
    {"device0", "rdma link delete rxe0",
     "rdma link add rxe0 type rxe netdev v0"},
    {"device1", "rdma link delete rxe1",
     "rdma link add rxe1 type rxe netdev v1"},
};

struct Case {
  const Break* what;
  std::string phase;
};

// For the list of tests.
void PrintTo(const Case& each, std::ostream* out) { *out << each.what->name; }

Arguments Common() {
  return {"--plugin-option", "peer-timeout=5s",
          "--plugin-option", "handshake-timeout=10s",
          "--plugin-option", "connect-timeout=10s",
          "--peer-wait",     "15s",
          "--after",         "100ms"};
}

// Several rounds, whatever the machine: nothing fits into no downtime.
Arguments SourceArguments() {
  return Join(Common(), {"--memory", "16M", "--workload", "uniform:rate=20M",
                         "--downtime-limit", "0", "--max-rounds", "3",
                         "--converge", "stop", "--device-state", "4M"});
}

class TwoHostsPhases : public ::testing::TestWithParam<Case> {
 protected:
  // Until here a failure is certainly before the handover.
  static bool BeforeHandover() {
    const std::string& phase = GetParam().phase;
    return phase != "handover" && phase != "taken";
  }

  void ExpectNoGuestIsLostOrTwice(int source, int destination) {
    EXPECT_EQ(migration_.Overlap("", 0), "");
    if (BeforeHandover()) {
      EXPECT_EQ(source, kFailed);
      EXPECT_EQ(destination, kFailed);
      EXPECT_FALSE(migration_.Ran("destination"));
      EXPECT_THAT(migration_.source().Stderr(),
                  HasSubstr("the guest runs on here"));
      return;
    }
    EXPECT_THAT(source,
                AnyOf(Eq(kOk), Eq(kFailed), Eq(kInDoubt), Eq(kUnverified)));
    EXPECT_EQ(migration_.Ran("destination"), destination != kFailed);
    if (source == kFailed) {
      EXPECT_FALSE(migration_.Ran("destination"));
    } else if (source != kInDoubt) {
      EXPECT_TRUE(migration_.Ran("destination"));
    }
  }

  Migration migration_;
};

TEST_P(TwoHostsPhases, C08C20C33BothEndAndOneGuestRuns) {
  const Case& each = GetParam();
  const bool source_waits = each.phase != "taken";
  const Arguments pause = {"--pause-at", each.phase};
  migration_.StartDestination(source_waits ? Common() : Join(Common(), pause),
                              kThere);
  ASSERT_FALSE(HasFatalFailure());
  migration_.StartSource(source_waits ? Join(SourceArguments(), pause)
                                      : SourceArguments());
  Process& paused =
      source_waits ? migration_.source() : migration_.destination();
  ASSERT_TRUE(paused.WaitForText("paused at " + each.phase, kLimit))
      << migration_.Transcript();

  const TempDir dir;
  Process cut(dir, {"/bin/sh", "-c", each.what->cut});
  cut.Wait(Millis(500));  // one that waits for the plugin has begun by then
  paused.Signal(SIGCONT);
  const auto source = migration_.source().Wait(kBound);
  const auto destination = migration_.destination().Wait(kBound);
  ASSERT_TRUE(source && destination) << migration_.Transcript();
  ExpectNoGuestIsLostOrTwice(*source, *destination);
  EXPECT_EQ(cut.Wait(kBound), 0) << "the device is still held";
  if (HasFailure()) ADD_FAILURE() << migration_.Transcript();

  ASSERT_EQ(Shell(each.what->mend), 0);
  Migrate(kThere, {}, {"--memory", "8M", "--workload", "uniform:rate=1M"});
}

// All, or with MIG_TEST_SEED=N one phase for each break.
std::vector<Case> Cases() {
  const char* seed = getenv("MIG_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  std::mt19937 random(seed == nullptr ? 0 : std::stoul(seed));
  const std::vector<std::string> phases = {"connect",  "exchange", "round1",
                                           "rounds",   "stopped",  "state",
                                           "handover", "taken"};
  std::vector<Case> cases;
  for (const Break& what : kBreaks) {
    const size_t chosen = random() % phases.size();
    for (size_t i = 0; i < phases.size(); ++i) {
      if (seed != nullptr && i != chosen) continue;
      cases.push_back({&what, phases[i]});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Everywhere, TwoHostsPhases,
                         ::testing::ValuesIn(Cases()), [](const auto& info) {
                           return std::string(info.param.what->name) + "_" +
                                  info.param.phase;
                         });

}  // namespace
}  // namespace mig::test
