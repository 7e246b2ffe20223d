// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The freedom of a device: when bytes are read, and when they land.
#include <set>

#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

using ::testing::SizeIs;

class LandingTest : public SoftPair {
 protected:
  void Start(const std::string& config, unsigned int extra_access = 0) {
    Connect(config, "mlx5,seed=1");
    if (HasFatalFailure()) return;
    source_mr = source.Register(from, sizeof(from), IBV_ACCESS_LOCAL_WRITE);
    target_mr = target.Register(
        to, sizeof(to),
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | extra_access);
  }
  int Write(size_t at, unsigned int flags = IBV_SEND_SIGNALED) {
    return Wr(IBV_WR_RDMA_WRITE)
        .From(from + at, 1, source_mr->lkey)
        .To(to + at, target_mr->rkey)
        .Flags(flags)
        .Post(source.qp());
  }
  void Fence() {
    ASSERT_EQ(PostReceive(target.qp(), nullptr, 0, 0, 1), 0);
    ASSERT_EQ(Wr(IBV_WR_SEND).Post(source.qp()), 0);
    Drive();
    source.Poll();
    ASSERT_THAT(target.Poll(), SizeIs(1));
  }

  uint8_t from[64] = {};
  uint8_t to[64] = {};
  ibv_mr* source_mr = nullptr;
  ibv_mr* target_mr = nullptr;
};

TEST_F(LandingTest, H2LatestLandsOnlyAtTheFence) {
  Start("mlx5,landing=latest");
  from[0] = 5;
  ASSERT_EQ(Write(0), 0);
  Drive();
  ASSERT_THAT(source.Poll(), SizeIs(1));
  EXPECT_EQ(to[0], 0);  // completed, and not there
  from[0] = 6;          // the source was free to be changed
  Fence();
  EXPECT_EQ(to[0], 5);
}

TEST_F(LandingTest, LatestReadsTheSourceUntilTheWriteIsRetired) {
  Start("mlx5,landing=latest");
  from[0] = 5;
  ASSERT_EQ(Write(0, 0), 0);  // unsignalled: retired by the next one
  Drive();
  from[0] = 6;
  ASSERT_EQ(Write(1), 0);
  Drive();
  from[0] = 7;
  Fence();
  EXPECT_EQ(to[0], 6);
}

TEST_F(LandingTest, WriteWithImmediateDataIsAFenceToo) {
  Start("mlx5,landing=latest");
  from[0] = 5;
  from[1] = 6;
  ASSERT_EQ(Write(0), 0);
  ASSERT_EQ(PostReceive(target.qp(), nullptr, 0, 0, 1), 0);
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE_WITH_IMM)
                .From(from + 1, 1, source_mr->lkey)
                .To(to + 1, target_mr->rkey)
                .Post(source.qp()),
            0);
  Drive();
  ASSERT_THAT(target.Poll(), SizeIs(1));
  EXPECT_EQ(to[0], 5);
  EXPECT_EQ(to[1], 6);
}

TEST_F(LandingTest, NothingLandsInMemoryThatIsNoLongerRegistered) {
  Start("mlx5,landing=latest");
  from[0] = 5;
  ASSERT_EQ(Write(0), 0);
  Drive();
  ASSERT_EQ(target.verbs->DeregMr(target_mr), 0);
  target.mrs.clear();
  Fence();
  EXPECT_EQ(to[0], 0);
}

TEST_F(LandingTest, InlineDataIsHeldThoughItsSlotIsReused) {
  cap.max_inline_data = 16;
  Start("mlx5,landing=latest");
  for (uint8_t i = 0; i < 40; ++i) {
    from[i] = static_cast<uint8_t>(i + 1);
    ASSERT_EQ(Write(i, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
    Drive();
    source.Poll();
    from[i] = 0;
  }
  Fence();
  EXPECT_EQ(to[0], 1);
  EXPECT_EQ(to[39], 40);
}

TEST_F(LandingTest, RandomIsOldOrNewBeforeTheFenceAndRightAfterIt) {
  bool early = false;
  bool late = false;
  Start("mlx5,landing=random,seed=9");
  for (int round = 1; round <= 50; ++round) {
    from[0] = static_cast<uint8_t>(round);
    ASSERT_EQ(Write(0), 0);
    Drive();
    ASSERT_THAT(source.Poll(), SizeIs(1));
    (to[0] == round ? early : late) = true;
    Fence();
    ASSERT_EQ(to[0], round);
  }
  EXPECT_TRUE(early);
  EXPECT_TRUE(late);
}

TEST_F(LandingTest, RandomKeepsTheOrderOfOneQueuePair) {
  Start("mlx5,landing=random,seed=3");
  for (int round = 0; round < 100; ++round) {
    for (uint8_t version = 1; version <= 4; ++version) {
      from[version] = version;
      ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                    .From(from + version, 1, source_mr->lkey)
                    .To(to, target_mr->rkey)
                    .Post(source.qp()),
                0);
    }
    Fence();
    ASSERT_EQ(to[0], 4);
  }
}

TEST_F(LandingTest, H3RelaxedOrderingLetsWritesPassEachOther) {
  Start("mlx5,landing=random,seed=3", IBV_ACCESS_RELAXED_ORDERING);
  bool passed = false;
  for (int round = 0; round < 200 && !passed; ++round) {
    std::memset(to, 0, sizeof(to));
    from[0] = from[1] = 1;
    ASSERT_EQ(Write(0, 0), 0);
    ASSERT_EQ(Write(1), 0);
    while (source.Poll().empty()) source.verbs->Drive();
    passed = to[1] == 1 && to[0] == 0;
    Fence();
    ASSERT_EQ(to[0], 1);
    ASSERT_EQ(to[1], 1);
  }
  EXPECT_TRUE(passed);
}

// What the first end saw and did, as text.
std::string Trace(uint64_t seed) {
  struct Run : SoftPair {
    void TestBody() override {}
    std::string Go(uint64_t seed) {
      Connect("mlx5,landing=random,seed=" + std::to_string(seed),
              "mlx5,seed=1");
      uint8_t from[32];
      uint8_t to[32] = {};
      std::memset(from, 1, sizeof(from));
      ibv_mr* one = source.Register(from, 32, IBV_ACCESS_LOCAL_WRITE);
      ibv_mr* two = target.Register(
          to, 32, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
      std::string trace;
      for (size_t i = 0; i < 12; ++i) {
        Wr(IBV_WR_RDMA_WRITE)
            .From(from + i, 1, one->lkey)
            .To(to + i, two->rkey)
            .Post(source.qp());
        source.verbs->Drive();
        trace += std::to_string(source.Poll().size());
        for (const uint8_t byte : to) trace += static_cast<char>('0' + byte);
      }
      TearDown();
      return trace;
    }
  };
  return Run().Go(seed);
}

TEST(LandingSeedTest, SameSeedSameRun) {
  EXPECT_EQ(Trace(1), Trace(1));
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed <= 8; ++seed) traces.insert(Trace(seed));
  EXPECT_GT(traces.size(), 4u);
}

}  // namespace
}  // namespace mig::soft
