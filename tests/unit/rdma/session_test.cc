// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/session.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session_pair.h"

namespace mig::rdma {
namespace {

// An address of this machine's that is valid on one link only; "" if none.
std::string LinkLocalAddress() {
  ifaddrs* list = nullptr;
  std::string found;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET6) {
      continue;
    }
    const auto* const v6 = reinterpret_cast<sockaddr_in6*>(each->ifa_addr);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
    std::array<char, INET6_ADDRSTRLEN> text = {};
    inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    found = absl::StrCat(text.data(), "%", each->ifa_name);
    break;
  }
  freeifaddrs(list);
  return found;
}

// The address of an accepted id has no scope, and without one nothing can be
// bound to it: seen on soft-RoCE.
TEST_F(SessionTest, LinkLocalAddressesKeepTheirScope) {
  const std::string address = LinkLocalAddress();
  if (address.empty()) GTEST_SKIP() << "no link-local address here";
  Make();
  ASSERT_TRUE(Ready(absl::StrCat("rdma://[", address, "]:7700")));
  EXPECT_TRUE(Round(1));
  EXPECT_TRUE(Same());
  CloseBoth();
}

TEST_F(SessionTest, EveryModelMigratesPinnedAndByChunk) {
  for (const char* model : {"mlx5", "mlx4", "irdma", "rxe", "siw"}) {
    for (const bool pinned : {true, false}) {
      for (const char* landing : {"earliest", "latest", "random"}) {
        const std::string config =
            absl::StrCat(model, ",landing=", landing, ",seed=");
        Make(config + "1", config + "2", pinned);
        ASSERT_TRUE(Ready()) << model;
        EXPECT_TRUE(Round(1)) << model;
        EXPECT_TRUE(Same()) << model << landing;
        s->memory[0] ^= 1;
        EXPECT_TRUE(Round(2)) << model;
        EXPECT_TRUE(Same()) << model << landing;
        CloseBoth();
      }
    }
  }
}

// 16 MiB of guest, where 4 MiB may be pinned.
TEST_F(SessionTest, OnDemandPagingPinsNoGuestMemoryAndAsksForNoLimit) {
  const std::string config = "mlx5,odp=on,memlock=4M,seed=";
  on_demand = true;
  Make(config + "1", config + "2", /*pinned=*/true, /*pages=*/4096);
  ASSERT_TRUE(Ready());
  EXPECT_EQ(s->memlock_reads + d->memlock_reads, 0);
  EXPECT_TRUE(Round(1));
  EXPECT_TRUE(Same());
  EXPECT_EQ(s->Count(Counter::kRegistrations), 16u);
  CloseBoth();
  on_demand = false;
  Make(config + "3", config + "4", /*pinned=*/true, /*pages=*/4096);
  EXPECT_FALSE(Ready());
  EXPECT_EQ(s->FailureCode(), MIG_E_LIMIT);
}

TEST_F(SessionTest, OnDemandPagingThatTheDeviceHasNotIsRefusedInWords) {
  on_demand = true;
  Make("mlx5,seed=1", "mlx5,seed=2,odp=on");
  EXPECT_FALSE(Ready());
  EXPECT_EQ(s->FailureCode(), MIG_E_UNSUPPORTED);
  const auto failure = s->Find(MIG_EVENT_ERROR);
  ASSERT_NE(failure, s->events.end());
  EXPECT_THAT(
      std::string((*s)->error().message()),
      ::testing::AllOf(::testing::HasSubstr("registration=odp was asked for"),
                       ::testing::HasSubstr("choose registration=pinned")));
}

// Pages that the device faults in may be replaced; those that are pinned not.
TEST_F(SessionTest, OnlyOnDemandTakesBlocksWhosePagesGo) {
  for (const bool odp : {false, true}) {
    on_demand = odp;
    Make("mlx5,seed=1,odp=on", "mlx5,seed=2,odp=on");
    struct mig_block block = {};
    block.size = sizeof(block);
    block.id = 1;
    block.name = "ram";
    block.address = s->memory;
    block.length = s->size();
    block.page_size = kPageBytes;
    block.fd = -1;
    block.flags = MIG_BLOCK_DISCARDABLE;
    EXPECT_EQ((*s)->AddBlock(block).ok(), odp);
  }
}

// A destination that listens makes its memory meanwhile.
TEST_F(SessionTest, BlocksMayBeAddedWhileTheSidesConnect) {
  Make();
  ASSERT_TRUE((*d)->Listen(kUri).ok());
  EXPECT_TRUE(d->AddBlock(9).ok());
  ASSERT_TRUE((*s)->Connect(kUri).ok());
  EXPECT_TRUE(s->AddBlock(7).ok());
  ASSERT_TRUE(RunUntil([this] {
    return s->Has(MIG_EVENT_CONNECTED) && d->Has(MIG_EVENT_CONNECTED);
  }));
  ASSERT_TRUE((*s)->Exchange().ok());
  ASSERT_TRUE((*d)->Exchange().ok());
  ASSERT_TRUE(RunUntil([this] {
    return s->Has(MIG_EVENT_BLOCKS_READY) && d->Has(MIG_EVENT_BLOCKS_READY);
  }));
  EXPECT_TRUE(Round(1));
  EXPECT_TRUE(Same());
}

TEST_F(SessionTest, C24ADelayedLastCompletionDelaysRoundDone) {
  Make("mlx5,seed=1,wr-delay=50us,landing=latest", "mlx5,seed=2");
  ASSERT_TRUE(Ready());
  EXPECT_TRUE(Round(1));
  EXPECT_TRUE(Same());
}

TEST_F(SessionTest, C35AMessageBehindARoundComesAfterIt) {
  Make("mlx5,seed=1,wr-delay=1ms,landing=latest", "mlx5,seed=2");
  ASSERT_TRUE(Ready());
  ASSERT_TRUE((*s)->RoundBegin(1, 0).ok());
  ASSERT_TRUE(WriteAll().ok());
  ASSERT_TRUE((*s)->RoundEnd(1).ok());
  const char state[] = "device state";
  const struct mig_iov piece = {state, sizeof(state)};
  ASSERT_TRUE(*(*s)->Send(0, 5, &piece, 1, sizeof(piece)));
  ASSERT_TRUE(RunUntil([this] { return d->Has(MIG_EVENT_MESSAGE); }));
  EXPECT_LT(d->Find(MIG_EVENT_ROUND_DONE), d->Find(MIG_EVENT_MESSAGE));
}

TEST_F(SessionTest, C12MessagesLongerThanTheDeviceCarriesAreSplit) {
  Make("mlx5,seed=1,max-msg-size=64K", "mlx5,seed=2,max-msg-size=64K");
  ASSERT_TRUE(Ready());
  ASSERT_TRUE((*s)->RoundBegin(1, 0).ok());
  const struct mig_range all = {0, s->size(), 7, 0, 0};
  size_t accepted = 0;
  uint64_t partial = 0;
  ASSERT_TRUE((*s)->Write(&all, 1, sizeof(all), &accepted, &partial).ok());
  ASSERT_EQ(accepted, 1u);
  ASSERT_TRUE((*s)->RoundEnd(1).ok());
  ASSERT_TRUE(RunUntil([this] { return s->Has(MIG_EVENT_ROUND_DONE); }));
  EXPECT_TRUE(Same());
}

// Data queue pairs of one session on two devices here and two there: memory is
// registered on each, and every write uses the keys of its own pair.
TEST_F(SessionTest, EachDeviceHasRegistrationsAndKeysOfItsOwn) {
  for (const bool pinned : {true, false}) {
    Make("mlx5,devices=3,spread=on,seed=1", "mlx4,devices=2,spread=on,seed=2",
         pinned);
    ASSERT_TRUE(Ready());
    EXPECT_TRUE(Round(1));
    EXPECT_TRUE(Same());
    s->memory[0] ^= 1;
    EXPECT_TRUE(Round(2));
    EXPECT_TRUE(Same());
    const uint64_t chunks = s->size() >> 20;
    EXPECT_EQ(s->Count(Counter::kRegistrations), 2 * chunks) << pinned;
    EXPECT_EQ(d->Count(Counter::kRegistrations), 2 * chunks) << pinned;
    CloseBoth();
  }
}

// H1: the page is zero by message in one round, and data by a write in the
// next.
TEST_F(SessionTest, H01ZerosOfARoundNeverLandAfterDataOfTheNext) {
  Make("mlx5,seed=1,landing=random", "mlx5,seed=2,landing=random");
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  ASSERT_TRUE((*s)->RoundBegin(2, 0).ok());
  const struct mig_range zero = {0, s->size(), 7, MIG_RANGE_ZERO, 0};
  size_t accepted = 0;
  uint64_t partial = 0;
  ASSERT_TRUE((*s)->Write(&zero, 1, sizeof(zero), &accepted, &partial).ok());
  ASSERT_TRUE((*s)->RoundEnd(2).ok());
  EXPECT_TRUE(Round(3));
  EXPECT_TRUE(Same());
  EXPECT_EQ(d->Count(Counter::kZeroBytesReceived), s->size());
}

// One range a write, and a flush every 1,000 pages.
TEST_F(SessionTest, CountsOfRoundsOfScatteredPages) {
  constexpr uint64_t kPages = 4096;
  constexpr uint64_t kChunks = kPages * kPageBytes >> 20;
  depth = 512;
  for (const bool pinned : {true, false}) {
    Make("mlx5,seed=1", "mlx5,seed=2", pinned, kPages);
    ASSERT_TRUE(Ready());
    const auto frames = [this] {
      return s->Count(Counter::kControlFramesSent) +
             d->Count(Counter::kControlFramesSent);
    };
    for (uint64_t round = 1; round <= 3; ++round) {
      const uint64_t frames_before = frames();
      ASSERT_TRUE(Round(round));
      // Downwards, so that each chunk is a batch: asked for and answered. And
      // the round's end, its answer, and credit for these two.
      const uint64_t keys = pinned || round > 1 ? 0 : 2 * kChunks;
      EXPECT_LE(frames() - frames_before, keys + 4);
      EXPECT_EQ(s->Count(Counter::kWrites), round * kPages);
      EXPECT_LE(s->Count(Counter::kDoorbells) * 32, round * kPages);
      EXPECT_LE(s->Count(Counter::kCompletions) * 32, round * kPages);
    }
    EXPECT_EQ(s->Count(Counter::kRegistrations), kChunks) << "one a chunk";
    EXPECT_EQ(d->Count(Counter::kRegistrations), kChunks);
    for (SessionSide* side : {s.get(), d.get()}) {
      EXPECT_EQ(side->verbs->SeenMishaps().not_ready, 0u);
      EXPECT_EQ(side->verbs->SeenMishaps().cq_overruns, 0u);
    }
    CloseBoth();
  }
}

TEST_F(SessionTest, CapsTellWhatWasAskedGrantedAndTried) {
  Make("mlx5,seed=1,max-inline=20", "mlx5,seed=2");
  ASSERT_TRUE(Ready());
  struct mig_caps caps = {};
  (*s)->GetCaps(&caps);
  std::string text;
  uint64_t granted = 99;
  for (uint64_t i = 0; i < caps.detail_count; ++i) {
    const struct mig_capability& detail = caps.details[i];
    if (detail.name == std::string("control-inline")) granted = detail.granted;
    if (detail.name == std::string("control-send-depth")) text = detail.text;
  }
  EXPECT_LT(granted, 56u);
  EXPECT_THAT(text, testing::HasSubstr("ex EINVAL"));
}

TEST_F(SessionTest, AHandoverIsCommitted) {
  Make();
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  ASSERT_TRUE((*s)->Handover().ok());
  ASSERT_TRUE(RunUntil([this] { return d->Has(MIG_EVENT_HANDOVER); }));
  ASSERT_TRUE((*d)->Handover().ok());
  ASSERT_TRUE(RunUntil([this] { return s->Has(MIG_EVENT_COMMITTED); }));
  CloseBoth();
}

// -- What fails ---------------------------------------------------------------

// Whatever work request fails: both sides end in a bound, the destination never
// has a round that is not whole, and all goes.
TEST_F(SessionTest, C06C32AnyWorkRequestMayFail) {
  for (const char* status :
       {"REM_ACCESS_ERR", "RETRY_EXC_ERR", "LOC_QP_OP_ERR"}) {
    for (int k = 1; k < 40; k += 3) {
      Make(absl::StrCat("mlx5,seed=1,faults=wc ", k, " ", status),
           "mlx5,seed=2", true, 64);
      const bool ready = Ready();
      if (ready) Round(1);
      EXPECT_TRUE(RunUntil([this] { return s->Ended() || Same(); }))
          << status << k;
      if (d->Has(MIG_EVENT_ROUND_DONE)) {
        EXPECT_TRUE(Same()) << status << k;
      }
      CloseBoth();
    }
  }
}

TEST_F(SessionTest, C20ADeviceThatDiesEndsTheMigrationAndNotTheProcess) {
  for (const char* fault : {"fatal 30", "removal 30", "disconnect 30"}) {
    for (const bool source : {true, false}) {
      const std::string faults = absl::StrCat(",faults=", fault);
      Make(absl::StrCat("mlx5,seed=1", source ? faults : ""),
           absl::StrCat("mlx5,seed=2", source ? "" : faults), true, 64);
      if (Ready()) {
        Round(1);
        RunUntil([this] { return s->Ended() && d->Ended(); });
      }
      if (d->Has(MIG_EVENT_ROUND_DONE)) {
        EXPECT_TRUE(Same()) << fault;
      }
      CloseBoth();
    }
  }
}

TEST_F(SessionTest, C08APeerThatStopsIsGivenUpInTime) {
  Make("mlx5,seed=1", "mlx5,seed=2");
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  // It is not stepped any more, as if it were stopped.
  const uint64_t start = host.now_ns;
  while (!s->Ended() && host.now_ns - start < 60 * kSecond) {
    s->Step();
    uint64_t due = 0;
    if (!(*s)->Arm(&due)) host.now_ns = std::max(host.now_ns, due);
  }
  EXPECT_EQ(s->FailureCode(), MIG_E_PEER_TIMEOUT);
  EXPECT_LE(host.now_ns - start, 10 * kSecond * 5 / 4);
  EXPECT_THAT(std::string((*s)->error().message()),
              testing::HasSubstr("rdma://10.0.0.2:4444"));
}

// Receiving the keys of memory that takes long to register, the source sends
// nothing but receives given back.
TEST_F(SessionTest, C08APeerThatOnlyReceivesIsHeardHoweverLongTheExchange) {
  constexpr uint64_t kChunks = 96;
  constexpr uint64_t kChunkNs = kSecond * 15 / 100;
  Make("mlx5,seed=1", "mlx5,seed=2,register-cost=150ms", /*pinned=*/true,
       kChunks * 256);
  const uint64_t start = host.now_ns;
  ASSERT_TRUE(Ready());
  EXPECT_GE(host.now_ns - start, kChunks * kChunkNs);
  EXPECT_LE(host.now_ns - start, kChunks * kChunkNs + kSecond);
  EXPECT_TRUE(Round(1));
  CloseBoth();
}

TEST_F(SessionTest, C11MemoryThatCantBePinnedIsToldBeforeARound) {
  Make("mlx5,seed=1,memlock=1M", "mlx5,seed=2");
  EXPECT_FALSE(Ready());
  EXPECT_TRUE(RunUntil([this] { return s->Ended() && d->Ended(); }));
  EXPECT_FALSE(s->Has(MIG_EVENT_BLOCKS_READY));
  CloseBoth();
}

}  // namespace
}  // namespace mig::rdma
