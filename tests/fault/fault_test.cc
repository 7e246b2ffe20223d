// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// C08, C33: either side is killed or stopped in each phase. Both sides end in
// a bounded time and say where and with whom, the guest runs on exactly one of
// them or the source is in doubt, and the next migration works at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "migration.h"

namespace mig::test {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int kOk = 0, kFailed = 1, kInDoubt = 3, kUnverified = 4;

// The peer's silence may last three seconds; the rest is for slow machines.
constexpr Millis kBound(20000);
constexpr Millis kReach(60000);

// On a busy machine a source may take seconds to come so far that it connects.
constexpr char kPeerWait[] = "12s";

// And a sanitizer's as long to make its device state.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr char kDeviceState[] = "16M";
#else
constexpr char kDeviceState[] = "64M";
#endif

// In an emulated machine everything takes long: see tests/vm.
bool Emulated() { return ListenHost() != "127.0.0.1"; }

Arguments Common() {
  if (Emulated()) {
    return {"--plugin-option", "peer-timeout=5s",
            "--plugin-option", "handshake-timeout=10s",
            "--plugin-option", "connect-timeout=10s",
            "--peer-wait",     "15s",
            "--after",         "100ms"};
  }
  return {"--plugin-option", "peer-timeout=3s",
          "--plugin-option", "handshake-timeout=3s",
          "--plugin-option", "connect-timeout=2s",
          "--peer-wait",     kPeerWait,
          "--after",         "100ms"};
}

Millis Bound() { return Emulated() ? 3 * kBound : kBound; }

// Device state of more than the peer gives credit for, so that a peer that does
// not take it holds it up. Several rounds, whatever the machine: nothing fits
// into no downtime.
Arguments SourceArguments() {
  return Join(Common(), {"--memory", "ram:16M", "--memory", "vga:4M",
                         "--workload", "uniform:rate=20M", "--downtime-limit",
                         "0", "--max-rounds", "3", "--converge", "stop",
                         "--device-state", Emulated() ? "16M" : kDeviceState});
}

struct Fault {
  const char* side;
  const char* phase;
  int signal;
};

// For the list of tests.
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << (fault.signal == SIGKILL ? "SIGKILL" : "SIGSTOP");
}

// Until when a failure is certainly before the handover.
bool BeforeHandover(const Fault& fault) {
  const std::string phase = fault.phase;
  return phase != "handover" && phase != "taken";
}

std::string NameOf(const ::testing::TestParamInfo<Fault>& info) {
  return std::string(info.param.side) + "_" + info.param.phase + "_" +
         (info.param.signal == SIGKILL ? "kill" : "stop");
}

class FaultTest : public ::testing::TestWithParam<Fault> {
 protected:
  void ExpectNoTwoGuests(uint64_t hit_ns) {
    const Fault& fault = GetParam();
    const std::string killed = fault.signal == SIGKILL ? fault.side : "";
    EXPECT_EQ(migration_.Overlap(killed, hit_ns), "")
        << migration_.Transcript();
  }

  // The survivor of a fault before the handover.
  void ExpectFailedSource(int code) {
    EXPECT_EQ(code, kFailed) << migration_.Transcript();
    EXPECT_THAT(migration_.source().Stderr(),
                HasSubstr("the guest runs on here"));
    EXPECT_THAT(migration_.source().Stderr(), HasSubstr("its memory is right"));
    ExpectNames(migration_.source());
  }
  void ExpectFailedDestination(int code) {
    EXPECT_EQ(code, kFailed) << migration_.Transcript();
    EXPECT_FALSE(migration_.Ran("destination")) << migration_.Transcript();
  }
  // Phase and peer.
  void ExpectNames(const Process& process) {
    EXPECT_THAT(process.Stderr(),
                AnyOf(HasSubstr("failed while"), HasSubstr("failed in"),
                      HasSubstr("failed with the guest stopped")));
    EXPECT_THAT(process.Stderr(), HasSubstr(ListenHost()));
  }

  void CheckSource(int code) {
    if (BeforeHandover(GetParam())) return ExpectFailedSource(code);
    // In the handover it may have gone any way but two.
    if (code == kFailed) {
      EXPECT_FALSE(migration_.Ran("destination")) << migration_.Transcript();
    } else if (code == kInDoubt) {
      EXPECT_THAT(migration_.source().Stderr(), HasSubstr("IN DOUBT"));
    } else {
      EXPECT_THAT(code, AnyOf(Eq(kOk), Eq(kUnverified)))
          << migration_.Transcript();
    }
  }
  void CheckDestination(int code) {
    if (BeforeHandover(GetParam())) return ExpectFailedDestination(code);
    EXPECT_THAT(code, AnyOf(Eq(kOk), Eq(kFailed), Eq(kUnverified)))
        << migration_.Transcript();
    EXPECT_EQ(migration_.Ran("destination"), code != kFailed)
        << migration_.Transcript();
  }

  // "At once": nothing of the first one holds the port.
  void ExpectNextMigrationWorks() {
    Migration next;
    next.StartDestination(Common(), migration_.address());
    next.StartSource(SourceArguments());
    EXPECT_THAT(next.source().Wait(kReach), Eq(kOk)) << next.Transcript();
    EXPECT_THAT(next.destination().Wait(kReach), Eq(kOk)) << next.Transcript();
  }

  Migration migration_;
};

TEST_P(FaultTest, C08C33BothEndAndOneGuestRuns) {
  const Fault& fault = GetParam();
  const bool source_is_hit = std::string(fault.side) == "source";
  const Arguments pause = {"--pause-at", fault.phase};
  migration_.StartDestination(source_is_hit ? Common() : Join(Common(), pause));
  ASSERT_FALSE(HasFatalFailure());
  migration_.StartSource(source_is_hit ? Join(SourceArguments(), pause)
                                       : SourceArguments());
  Process& hit = source_is_hit ? migration_.source() : migration_.destination();
  Process& other =
      source_is_hit ? migration_.destination() : migration_.source();
  ASSERT_TRUE(hit.WaitForText(std::string("paused at ") + fault.phase, kReach))
      << migration_.Transcript();
  const uint64_t hit_ns = NowNs();
  if (fault.signal == SIGKILL) hit.Signal(SIGKILL);

  const std::optional<int> other_code = other.Wait(Bound());
  ASSERT_TRUE(other_code.has_value()) << "the other side did not end\n"
                                      << migration_.Transcript();
  if (fault.signal == SIGSTOP) {
    hit.Signal(SIGCONT);
    const std::optional<int> hit_code = hit.Wait(Bound());
    ASSERT_TRUE(hit_code.has_value()) << "the stopped side did not end\n"
                                      << migration_.Transcript();
    source_is_hit ? CheckSource(*hit_code) : CheckDestination(*hit_code);
  } else {
    ASSERT_EQ(hit.Wait(Bound()), 128 + SIGKILL);
  }
  source_is_hit ? CheckDestination(*other_code) : CheckSource(*other_code);
  ExpectNoTwoGuests(hit_ns);
  ExpectNextMigrationWorks();
}

struct Faults {
  const char* side;
  std::vector<const char*> phases;
};

// All, or with MIG_TEST_SEED=N one phase for each side and signal.
std::vector<Fault> FaultsToTest() {
  const char* seed = getenv("MIG_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  std::mt19937 random(seed == nullptr ? 0 : std::stoul(seed));
  std::vector<Fault> faults;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const auto& [side, phases] :
         {Faults{"source",
                 {"connect", "exchange", "round1", "rounds", "stopped", "state",
                  "handover"}},
          Faults{"destination",
                 {"connect", "exchange", "round1", "rounds", "state",
                  "handover", "taken"}}}) {
      const size_t chosen = random() % phases.size();
      for (size_t i = 0; i < phases.size(); ++i) {
        if (seed != nullptr && i != chosen) continue;
        faults.push_back({side, phases[i], signal});
      }
    }
  }
  return faults;
}

INSTANTIATE_TEST_SUITE_P(Everywhere, FaultTest,
                         ::testing::ValuesIn(FaultsToTest()), NameOf);

}  // namespace
}  // namespace mig::test
