// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Whole sessions over the network inside the process: each fault by what it
// does to them, and the same run from the same seed.
#include <fcntl.h>

#include "absl/strings/substitute.h"
#include "common/random.h"
#include "sim_pair.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

// "sim:..." of the source and of the destination, with these keys each.
std::pair<std::string, std::string> Networks(const std::string& source,
                                             const std::string& destination) {
  return {"sim:pair,seed=1" + source, "sim:pair,seed=2" + destination};
}

class Migration : public SimPair {
 public:
  explicit Migration(const std::string& source_keys = "",
                     const std::string& destination_keys = "")
      : SimPair(Networks(source_keys, destination_keys).first,
                Networks(source_keys, destination_keys).second) {}
  void ExpectMigrated() {
    EXPECT_TRUE(Migrate()) << s().ErrorText() << d().ErrorText();
    EXPECT_TRUE(Same());
    CloseBoth();
    ExpectOneGuest();
  }
  // Both end with these codes; the destination's may come from the close.
  void ExpectFailed(int32_t source, int32_t destination) {
    EXPECT_FALSE(Migrate());
    RunUntil([this] { return s().FailureCode() && d().FailureCode(); },
             20 * kSecond);
    EXPECT_EQ(s().FailureCode(), source) << s().ErrorText();
    EXPECT_EQ(d().FailureCode(), destination) << d().ErrorText();
    CloseBoth();
    ExpectOneGuest();
  }
};

constexpr char kSlow[] = ",latency=50us,bandwidth=100M";
constexpr char kUnkind[] = ",latency=50us,bandwidth=100M,unkind=on";

TEST(SimNetworkTest, MigratesWithoutTimePassing) {
  Migration run;
  run.ExpectMigrated();
  EXPECT_EQ(run.elapsed_ns(), 0u);
}

TEST(SimNetworkTest, LatencyAndBandwidthTakeTheirTime) {
  Migration latency(",latency=1ms", ",latency=1ms");
  latency.ExpectMigrated();
  // Connect, handshake, exchange, three rounds, messages and the handover.
  EXPECT_GE(latency.elapsed_ns(), 18'000'000u);
  EXPECT_LE(latency.elapsed_ns(), 60'000'000u);
  Migration bandwidth(",bandwidth=1M");
  bandwidth.ExpectMigrated();
  const uint64_t sent =
      bandwidth.Counted(&bandwidth.s(), Counter::kWireBytesSent);
  EXPECT_GE(bandwidth.elapsed_ns(), sent * kSecond >> 20);
  EXPECT_LE(bandwidth.elapsed_ns(), (sent + 65536) * kSecond >> 20);
}

TEST(SimNetworkTest, MigratesHoweverUnkindItIs) {
  for (int seed = 0; seed < 20; ++seed) {
    SimPair run(absl::StrCat("sim:pair", kUnkind, ",seed=", seed),
                absl::StrCat("sim:pair,unkind=on,buffer=777,seed=", 99 - seed));
    EXPECT_TRUE(run.Migrate()) << run.s().ErrorText() << run.d().ErrorText();
    EXPECT_TRUE(run.Same());
    run.CloseBoth();
    run.ExpectOneGuest();
  }
}

TEST(SimNetworkTest, TheSameSeedsMakeTheSameRun) {
  const auto seen = [](uint64_t seed) {
    SimPair pair(absl::StrCat("sim:other", kUnkind, ",seed=", seed),
                 absl::StrCat("sim:other", kUnkind, ",seed=5"));
    EXPECT_TRUE(pair.Migrate());
    pair.CloseBoth();
    return std::make_pair(pair.seen,
                          pair.Counted(&pair.s(), Counter::kSendCalls));
  };
  const auto first = seen(3);
  EXPECT_GT(first.first.size(), 15u);
  EXPECT_EQ(first, seen(3));
  EXPECT_NE(first, seen(4));
}

TEST(SimNetworkTest, WhatOneWritesMakesTheOtherBusy) {
  Migration run;
  ASSERT_TRUE(run.Ready());
  ASSERT_FALSE(run.d().Busy());
  ASSERT_TRUE(run.s()->HostBusy(kSecond).ok());  // is sent at once
  EXPECT_TRUE(run.d().Busy());
  run.d().Step();
  EXPECT_FALSE(run.d().Busy());
  EXPECT_FALSE(run.s().Busy());
}

TEST(SimNetworkTest, NobodyIsBusyUntilSomethingArrives) {
  Migration run(",latency=3ms", ",latency=3ms");
  ASSERT_TRUE(run.Ready());
  ASSERT_TRUE(run.RunUntil([&] { return !run.s().Busy() && !run.d().Busy(); }));
  ASSERT_TRUE(run.s()->HostBusy(kSecond).ok());
  EXPECT_FALSE(run.d().Busy());
  EXPECT_EQ(run.d().Deadline(), run.host.now_ns() + 3'000'000);
  run.d().Step();  // may be called at any time
  EXPECT_EQ(run.d().Deadline(), run.host.now_ns() + 3'000'000);
  run.host.Advance(3'000'000);
  EXPECT_TRUE(run.d().Busy());
}

TEST(SimNetworkTest, AFailedReadIsALostPeerWithItsErrno) {
  Migration run(kSlow, ",faults=read 9 ETIMEDOUT");
  run.ExpectFailed(MIG_E_PEER_TIMEOUT, MIG_E_PEER_LOST);
  EXPECT_EQ(ErrorErrno(run.d()->error()), ETIMEDOUT);
}

TEST(SimNetworkTest, AFailedWriteIsALostPeerWithItsErrno) {
  Migration run(",faults=write 6 ENETDOWN");
  EXPECT_FALSE(run.Migrate());
  EXPECT_EQ(run.s().FailureCode(), MIG_E_PEER_LOST);
  EXPECT_EQ(ErrorErrno(run.s()->error()), ENETDOWN);
  // The source's host closes, and the destination learns at once.
  run.s()->Close();
  EXPECT_TRUE(run.RunUntil([&] { return run.d().FailureCode() != 0; }, 0));
  EXPECT_EQ(run.d().FailureCode(), MIG_E_PEER_LOST);
  run.CloseBoth();
}

TEST(SimNetworkTest, InterruptedAndShortCallsDoNoHarm) {
  Migration run(
      ",faults=write 3 EINTR;write 4 EAGAIN;short 5 1;short 6 17;read 2 "
      "EINTR;read 4 EAGAIN",
      ",faults=short 1 3;read 7 EAGAIN;write 2 EAGAIN");
  run.ExpectMigrated();
  Migration plain;
  plain.ExpectMigrated();
  EXPECT_GT(run.Counted(&run.s(), Counter::kSendCalls),
            plain.Counted(&plain.s(), Counter::kSendCalls) + 3);
}

TEST(SimNetworkTest, AResetIsSeenByBoth) {
  for (const char* when : {"reset 5", "reset @2000000"}) {
    for (const bool source : {false, true}) {
      const std::string keys = absl::StrCat(kSlow, ",faults=", when);
      Migration run(source ? keys : kSlow, source ? kSlow : keys);
      run.ExpectFailed(MIG_E_PEER_LOST, MIG_E_PEER_LOST);
      EXPECT_EQ(ErrorErrno(run.s()->error()), ECONNRESET);
      EXPECT_EQ(ErrorErrno(run.d()->error()), ECONNRESET);
      EXPECT_LT(run.elapsed_ns(), kSecond);
    }
  }
}

TEST(SimNetworkTest, AnEndInTheMiddleIsALostPeer) {
  Migration run(absl::StrCat(kSlow, ",faults=eof 6"), kSlow);
  run.ExpectFailed(MIG_E_PEER_LOST, MIG_E_PEER_LOST);
  EXPECT_EQ(ErrorErrno(run.s()->error()), EPIPE);
  EXPECT_THAT(run.d().ErrorText(), HasSubstr("closed the connection"));
}

TEST(SimNetworkTest, ACutLinkIsFoundByTheTimeout) {
  for (const char* when : {"cut 5", "cut @2000000"}) {
    for (const bool source : {false, true}) {
      const std::string keys = absl::StrCat(kSlow, ",faults=", when);
      Migration run(source ? keys : kSlow, source ? kSlow : keys);
      run.ExpectFailed(MIG_E_PEER_TIMEOUT, MIG_E_PEER_TIMEOUT);
      EXPECT_GE(run.elapsed_ns(), 10 * kSecond);
      EXPECT_LE(run.elapsed_ns(), 14 * kSecond);
    }
  }
}

TEST(SimNetworkTest, AStallIsWaitedForOrATimeout) {
  for (const char* when : {"stall 5", "stall @2000000"}) {
    Migration run(absl::StrCat(kSlow, ",faults=", when, " 3000000000"), kSlow);
    run.ExpectMigrated();
    EXPECT_GE(run.elapsed_ns(), 3 * kSecond);
    EXPECT_LE(run.elapsed_ns(), 4 * kSecond);
    Migration longer(absl::StrCat(kSlow, ",faults=", when, " 30000000000"),
                     kSlow);
    EXPECT_FALSE(longer.Migrate());
    EXPECT_EQ(longer.d().FailureCode(), MIG_E_PEER_TIMEOUT);
    longer.CloseBoth();
    longer.ExpectOneGuest();
  }
}

TEST(SimNetworkTest, ConnectFailsAsTheSystemsWould) {
  Migration refused(",latency=2ms,faults=connect 1 EHOSTUNREACH");
  EXPECT_FALSE(refused.Connect());
  EXPECT_EQ(refused.elapsed_ns(), 4'000'000u);
  EXPECT_EQ(refused.s().FailureCode(), MIG_E_PEER_UNREACHABLE);
  EXPECT_THAT(refused.s().ErrorText(), HasSubstr("No route to host"));
  refused.CloseBoth();
  Migration limit(",faults=connect 1 EMFILE");
  EXPECT_FALSE(limit.Connect());
  EXPECT_EQ(limit.s().FailureCode(), MIG_E_LIMIT);
  Migration late(",latency=1ms,faults=delay 1 700000000");
  EXPECT_TRUE(late.Connect());
  EXPECT_GE(late.elapsed_ns(), 702'000'000u);
  Migration never(",faults=delay 1 70000000000");
  EXPECT_FALSE(never.Connect());
  EXPECT_EQ(never.elapsed_ns(), 10 * kSecond);
  EXPECT_THAT(never.s().ErrorText(), HasSubstr("timed out"));
  never.CloseBoth();
}

TEST(SimNetworkTest, AcceptAndListenFailAsTheSystemsWould) {
  Migration limit("", ",faults=accept 1 EMFILE");
  limit.ExpectMigrated();
  EXPECT_EQ(limit.elapsed_ns(), kSecond / 10) << "looked again";
  Migration gone("", ",faults=accept 1 ECONNABORTED");
  EXPECT_FALSE(gone.Connect());
  EXPECT_EQ(gone.s().FailureCode(), MIG_E_PEER_LOST);
  EXPECT_FALSE(gone.d().Has(MIG_EVENT_ERROR)) << "others may come";
  gone.CloseBoth();
  Migration listen(
      "", ",faults=listen 1 EADDRINUSE;listen 2 EACCES;listen 3 ENFILE");
  for (const int32_t code : {MIG_E_ADDRESS, MIG_E_PERMISSION, MIG_E_LIMIT}) {
    EXPECT_EQ(ErrorCode(listen.d()->Listen("tcp://127.0.0.1:5")), code);
  }
  EXPECT_TRUE(listen.Connect("tcp://127.0.0.1:5"));
}

TEST(SimNetworkTest, AddressesAreNames) {
  for (const char* at :
       {"tcp://127.0.0.1:7", "tcp://:0", "tcp://[::1]:0", "unix:no/file"}) {
    Migration first;
    ASSERT_TRUE(first.d()->Listen(at).ok());
    const std::string taken = *first.d()->LocalAddress();
    // Nobody else may have it while that one listens, and nobody is elsewhere.
    Migration other;
    EXPECT_EQ(ErrorCode(other.d()->Listen(taken)), MIG_E_ADDRESS) << at;
    first.d()->Close();
    EXPECT_TRUE(other.Connect(taken)) << at << other.s().ErrorText();
    Migration lost;
    ASSERT_TRUE(lost.s()->Connect("tcp://127.0.0.1:8").ok());
    EXPECT_TRUE(lost.RunUntil([&] { return lost.Over(); }));
    EXPECT_EQ(lost.s().FailureCode(), MIG_E_PEER_UNREACHABLE);
  }
  EXPECT_EQ(open("no/file", O_RDONLY | O_CLOEXEC), -1);
  Migration run;
  EXPECT_EQ(ErrorCode(run.s()->Connect("fd:0")), MIG_E_URI);
  EXPECT_EQ(ErrorCode(run.d()->Listen("fd:0")), MIG_E_URI);
  // Of another name is another network.
  Migration listening;
  ASSERT_TRUE(listening.d()->Listen("tcp://127.0.0.1:9").ok());
  SimPair elsewhere("sim:elsewhere", "sim:elsewhere");
  ASSERT_TRUE(elsewhere.s()->Connect("tcp://127.0.0.1:9").ok());
  EXPECT_TRUE(elsewhere.RunUntil([&] { return elsewhere.Over(); }));
  EXPECT_EQ(elsewhere.s().FailureCode(), MIG_E_PEER_UNREACHABLE);
}

// Every fault at every call of a migration, on each side: nobody hangs, no two
// guests run, and a guest that runs has its memory.
TEST(SimNetworkTest, C33NoFaultAnywhereHangsOrRunsTwoGuests) {
  constexpr const char* kFaults[] = {"read $0 ECONNRESET",
                                     "write $0 EPIPE",
                                     "short $0 1",
                                     "reset $0",
                                     "eof $0",
                                     "cut $0",
                                     "stall $0 5000000000",
                                     "stall $0 15000000000"};
  int migrated = 0;
  int failed = 0;
  for (const char* fault : kFaults) {
    for (int k = 1; k <= 24; ++k) {
      for (const bool source : {false, true}) {
        const std::string keys =
            absl::StrCat(k % 2 == 0 ? kUnkind : kSlow,
                         ",faults=", absl::Substitute(fault, k));
        SCOPED_TRACE(absl::StrCat(source, keys));
        Migration run(source ? keys : kSlow, source ? kSlow : keys);
        run.Migrate() ? ++migrated : ++failed;
        run.RunUntil([&] { return run.s().FailureCode() != 0; }, 20 * kSecond);
        run.CloseBoth();
        run.ExpectOneGuest();
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(migrated, 80);
  EXPECT_GT(failed, 80);
}

// The same of several faults at once, by chance.
TEST(SimNetworkTest, C33NorDoManyRandomSchedules) {
  constexpr const char* kFaults[] = {"read $0 ECONNRESET",
                                     "read $0 EAGAIN",
                                     "write $0 EPIPE",
                                     "write $0 EAGAIN",
                                     "short $0 1",
                                     "reset $0",
                                     "reset @$1",
                                     "eof $0",
                                     "cut $0",
                                     "cut @$1",
                                     "stall $0 $1",
                                     "stall @$1 $1",
                                     "stall $0 8000000000"};
  constexpr uint64_t kRuns = 500;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    mig::Random random(seed);
    const auto keys = [&] {
      std::string text = random.Below(2) == 0 ? kUnkind : kSlow;
      absl::StrAppend(&text, ",buffer=", 50 + random.Below(100'000),
                      ",faults=");
      for (uint64_t left = random.Below(4); left > 0; --left) {
        absl::StrAppend(
            &text,
            absl::Substitute(kFaults[random.Below(std::size(kFaults))],
                             1 + random.Below(40), 1 + random.Below(8'000'000)),
            ";");
      }
      return text;
    };
    const std::string source = keys();
    const std::string destination = keys();
    SCOPED_TRACE(absl::StrCat(seed, ": ", source, " and ", destination));
    Migration run(source, destination);
    run.Migrate();
    run.RunUntil([&] { return run.s().FailureCode() != 0; }, 20 * kSecond);
    run.CloseBoth();
    run.ExpectOneGuest();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mig::tcp
