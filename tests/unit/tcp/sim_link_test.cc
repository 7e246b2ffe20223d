// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What one simulated connection does with bytes and time.
#include "tcp/sim_link.h"

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace mig::tcp {
namespace {

constexpr uint64_t kNever = SimLink::kNever;
constexpr auto kA = SimLink::kConnecting;
constexpr auto kB = SimLink::kListening;

class SimLinkTest : public ::testing::Test {
 protected:
  void Make(const std::string& a, const std::string& b = "") {
    link = std::make_unique<SimLink>(Side(a), Side(b), now, 0);
  }
  std::shared_ptr<SimSide> Side(const std::string& keys) const {
    const auto config = ParseSimConfig("n" + keys);
    EXPECT_TRUE(config.ok()) << config.status();
    return std::make_shared<SimSide>(*config, 1, now);
  }
  ssize_t Write(SimLink::End end, const std::string& text) {
    const struct iovec from = {const_cast<char*>(text.data()), text.size()};
    return link->Write(end, {&from, 1}, now);
  }
  // What comes, or the errno's number.
  std::string Read(SimLink::End end, size_t most = 1u << 20) {
    std::string text(most, '\0');
    const struct iovec to = {text.data(), text.size()};
    const ssize_t got = link->Read(end, {&to, 1}, now);
    if (got == -EAGAIN) return "again";
    if (got == -ECONNRESET) return "reset";
    if (got == 0) return "end";
    EXPECT_GT(got, 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  uint64_t ReadDue(SimLink::End end) { return link->Due(end, now).read_ns; }
  uint64_t WriteDue(SimLink::End end) { return link->Due(end, now).write_ns; }

  uint64_t now = 1000;
  std::unique_ptr<SimLink> link;
};

TEST_F(SimLinkTest, WithoutLatencyWhatIsWrittenIsThere) {
  Make("");
  EXPECT_EQ(link->ConnectedNs(now), now);
  EXPECT_EQ(link->AcceptableNs(now), now);
  EXPECT_EQ(ReadDue(kB), kNever);
  EXPECT_EQ(Read(kB), "again");
  EXPECT_EQ(Write(kA, "abc"), 3);
  EXPECT_EQ(ReadDue(kB), 0u);
  EXPECT_EQ(ReadDue(kA), kNever);
  EXPECT_EQ(Read(kB, 2), "ab");
  EXPECT_EQ(Read(kB), "c");
  EXPECT_EQ(Read(kB), "again");
}

TEST_F(SimLinkTest, LatencyAndBandwidthAreOfTheSender) {
  Make(",latency=100ns,bandwidth=1000", ",latency=7ns");
  EXPECT_EQ(link->ConnectedNs(now), now + 107);
  EXPECT_EQ(link->AcceptableNs(now), now + 207);
  EXPECT_EQ(Write(kA, "abcde"), 5);
  EXPECT_EQ(Write(kA, "f"), 1);
  const uint64_t first = now + 5'000'000 + 100;
  EXPECT_EQ(ReadDue(kB), first);
  EXPECT_EQ(Write(kB, "x"), 1);
  EXPECT_EQ(ReadDue(kA), now + 7);
  now = first - 1;
  EXPECT_EQ(Read(kB), "again");
  now = first;
  EXPECT_EQ(ReadDue(kB), 0u);
  EXPECT_EQ(Read(kB), "abcde");
  EXPECT_EQ(ReadDue(kB), first + 1'000'000);
}

TEST_F(SimLinkTest, TheBufferHoldsWhatIsNotRead) {
  Make(",buffer=4,latency=9ns");
  EXPECT_EQ(Write(kA, "abcdef"), 4);
  EXPECT_EQ(Write(kA, "ef"), -EAGAIN);
  EXPECT_EQ(WriteDue(kA), kNever);
  now += 9;
  EXPECT_EQ(Read(kB, 3), "abc");
  EXPECT_EQ(WriteDue(kA), 0u);
  EXPECT_EQ(Write(kA, "efgh"), 3);
}

TEST_F(SimLinkTest, AnOrderlyEndComesAfterTheLastByte) {
  Make(",latency=9ns");
  EXPECT_EQ(Write(kA, "abc"), 3);
  link->ShutdownWrite(kA, now);
  EXPECT_EQ(Write(kA, "d"), -EPIPE);
  now += 9;
  EXPECT_EQ(Read(kB), "abc");
  EXPECT_EQ(Read(kB), "end");
  EXPECT_EQ(Read(kB), "end");
  EXPECT_EQ(Write(kB, "x"), 1) << "the other direction is open";
}

TEST_F(SimLinkTest, ACloseWithUnreadBytesIsAReset) {
  Make(",latency=9ns", ",latency=5ns");
  EXPECT_EQ(Write(kA, "abc"), 3);
  EXPECT_EQ(Write(kB, "said"), 4);
  now += 9;
  link->Close(kB, now);
  now += 5;
  EXPECT_EQ(Read(kA), "said");
  EXPECT_EQ(Read(kA), "reset");
  EXPECT_EQ(Write(kA, "d"), -EPIPE);
}

TEST_F(SimLinkTest, AWriteToWhoHasClosedIsTakenOnce) {
  Make(",latency=9ns", ",latency=5ns");
  link->Close(kB, now);
  EXPECT_EQ(Write(kA, "abc"), 3);
  now += 5;
  EXPECT_EQ(Read(kA), "end");
  EXPECT_EQ(Write(kA, "abc"), 3) << "it does not know yet";
  now += 9;
  EXPECT_EQ(Write(kA, "abc"), -EPIPE);
}

TEST_F(SimLinkTest, CloseWakesAWriterThatWaitsForRoom) {
  Make(",buffer=2");
  EXPECT_EQ(Write(kA, "abc"), 2);
  EXPECT_EQ(WriteDue(kA), kNever);
  link->Close(kB, now);
  EXPECT_EQ(WriteDue(kA), 0u);
  EXPECT_EQ(Write(kA, "c"), -EPIPE);
}

TEST_F(SimLinkTest, UnkindMovesLittleAndGoesOnWhenItSays) {
  Make(",unkind=on");
  const std::string text(100'000, 'x');
  size_t sent = 0;
  size_t got = 0;
  int waits = 0;
  for (int i = 0; i < 100'000 && got < text.size(); ++i) {
    if (sent < text.size()) {
      const ssize_t moved = Write(kA, text.substr(sent));
      if (moved > 0) sent += static_cast<size_t>(moved);
    }
    const std::string some = Read(kB);
    if (some != "again") got += some.size();
    const uint64_t due = std::min(ReadDue(kB), WriteDue(kA));
    ASSERT_NE(due, kNever);
    if (due == 0) continue;
    ++waits;
    now = due;
  }
  EXPECT_EQ(got, text.size());
  EXPECT_GT(waits, 0);
}

TEST_F(SimLinkTest, TimedFaultsHitWhatHasNotArrivedThen) {
  Make(",latency=100ns,faults=stall @50 1000;cut @2000");
  EXPECT_EQ(Write(kA, "a"), 1);
  EXPECT_EQ(ReadDue(kB), now + 100);
  now += 60;
  EXPECT_EQ(ReadDue(kB), 1000u + 50 + 1000) << "stalled from 50 on";
  now = 2500;
  EXPECT_EQ(Read(kB), "a");
  EXPECT_EQ(Write(kA, "b"), 1);
  now = 2999;
  EXPECT_EQ(Read(kB), "b");
  EXPECT_EQ(Write(kA, "c"), 1);
  now = 4000;
  EXPECT_EQ(ReadDue(kB), kNever) << "cut at 3000";
  EXPECT_EQ(Write(kB, "d"), 1);
  EXPECT_EQ(ReadDue(kA), kNever);
}

TEST_F(SimLinkTest, ATimedResetIsADeadlineOfBothEnds) {
  Make(",faults=reset @500");
  EXPECT_EQ(ReadDue(kA), now + 500);
  EXPECT_EQ(ReadDue(kB), now + 500);
  EXPECT_EQ(Write(kA, "lost"), 4);
  now += 500;
  EXPECT_EQ(ReadDue(kB), 0u);
  EXPECT_EQ(Read(kB), "reset");
  EXPECT_EQ(Write(kA, "x"), -ECONNRESET);
  // One that is made later is not hurt.
  const auto later =
      std::make_unique<SimLink>(Side(",faults=reset @500"), Side(""), now, 0);
  EXPECT_EQ(link->Due(kA, now).read_ns, 0u);
  EXPECT_EQ(later->Due(kA, now).read_ns, now + 500);
}

TEST_F(SimLinkTest, FaultsOfWritesAreCounted) {
  Make(",latency=10ns,faults=short 1 2;write 2 ENOBUFS;stall 3 1000;eof 4");
  EXPECT_EQ(Write(kA, "abc"), 2);
  EXPECT_EQ(Write(kA, "c"), -ENOBUFS);
  EXPECT_EQ(Write(kA, "c"), 1);
  EXPECT_EQ(ReadDue(kB), now + 1000);
  EXPECT_EQ(Write(kA, "d"), -EPIPE);
  now += 1000;
  EXPECT_EQ(Read(kB), "abc");
  EXPECT_EQ(Read(kB), "end");
}

}  // namespace
}  // namespace mig::tcp
