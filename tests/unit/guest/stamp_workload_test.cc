// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <set>

#include "guest/dirty_tracker.h"
#include "guest/random.h"
#include "migrate.h"

namespace mig::sim {
namespace {

const std::vector<std::string> kBlocks = {"ram:2M", "vga:256K,backing=memfd"};

// The pages of all blocks, in order, that `steps` steps write.
std::vector<uint64_t> PagesWritten(Guest* guest, int steps) {
  struct Log : WriteObserver {
    void OnWrite(uint32_t block, uint64_t offset, uint64_t) override {
      const uint64_t page = offset / kPageSize + (block == 0 ? 0 : 512);
      if (page != 0) pages.push_back(page);
    }
    std::vector<uint64_t> pages;
  } log;
  guest->workload->set_observer(&log);
  Steps(guest->workload.get(), steps);
  guest->workload->set_observer(nullptr);
  return log.pages;
}

class StampWorkloadTest : public testing::TestWithParam<std::string> {};

TEST_P(StampWorkloadTest, GoesOnAtTheDestinationAsIfItNeverMoved) {
  Guest stayed = MakeGuest(kBlocks, GetParam(), 11);
  Guest source = MakeGuest(kBlocks, GetParam(), 11);
  Steps(stayed.workload.get(), 150);
  Steps(source.workload.get(), 70);
  MIG_EXPECT_OK(source.workload->Verify());
  const auto versions = source.workload->ExpectedVersions().value();
  Guest target = Migrate(source, kBlocks);
  ASSERT_NE(target.workload, nullptr);
  MIG_EXPECT_OK(target.workload->Verify());
  MIG_EXPECT_OK(target.workload->CheckVersions(versions));
  Steps(target.workload.get(), 80);
  MIG_EXPECT_OK(target.workload->Verify());
  EXPECT_TRUE(SameMemory(*target.memory, *stayed.memory));
  EXPECT_EQ(target.workload->ExpectedVersions().value(),
            stayed.workload->ExpectedVersions().value());
}

TEST_P(StampWorkloadTest, AnotherSeedMakesOtherContents) {
  const Guest a = MakeGuest(kBlocks, GetParam(), 1);
  const Guest b = MakeGuest(kBlocks, GetParam(), 2);
  EXPECT_NE(
      memcmp(a.memory->blocks()[1].base, b.memory->blocks()[1].base, kPageSize),
      0);
}

TEST_P(StampWorkloadTest, ReportsToASimulatedTrackerWhatARealOneSees) {
  Guest guest = MakeGuest(kBlocks, GetParam());
  auto real = MakeDirtyTracker("auto", guest.memory.get()).value().tracker;
  auto simulated =
      MakeDirtyTracker("simulated", guest.memory.get()).value().tracker;
  MIG_ASSERT_OK(real->Start());
  MIG_ASSERT_OK(simulated->Start());
  guest.workload->set_observer(simulated->observer());
  Steps(guest.workload.get(), 10);
  for (const GuestBlock& block : guest.memory->blocks()) {
    DirtyBitmap seen(block.pages());
    DirtyBitmap told(block.pages());
    ASSERT_TRUE(real->FetchAndClear(block, &seen).ok());
    ASSERT_TRUE(simulated->FetchAndClear(block, &told).ok());
    EXPECT_TRUE(seen == told) << seen.Count() << " " << told.Count();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, StampWorkloadTest,
                         testing::Values("idle", "uniform",
                                         "hotset:size=256K,share=0.8",
                                         "sequential"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find(':'));
                         });

TEST(Uniform, WritesEachPageOnceALap) {
  Guest guest = MakeGuest(kBlocks, "uniform");
  const uint64_t pages = guest.memory->total_pages() - 1;
  std::vector<uint64_t> written = PagesWritten(&guest, 2 * (pages + 7) / 8);
  ASSERT_GE(written.size(), 2 * pages);
  for (int lap = 0; lap < 2; ++lap) {
    const auto first = written.begin() + lap * pages;
    EXPECT_EQ(std::set<uint64_t>(first, first + pages).size(), pages);
  }
  EXPECT_FALSE(std::equal(written.begin(), written.begin() + pages,
                          written.begin() + pages));
}

TEST(Sequential, WritesPageAfterPageAndWrapsPastItsState) {
  Guest guest = MakeGuest({"ram:64K"}, "sequential");
  const std::vector<uint64_t> written = PagesWritten(&guest, 4);
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(written[i], 1 + i % 15);
  }
}

TEST(Hotset, GivesTheHotPagesTheirShare) {
  Guest guest = MakeGuest(kBlocks, "hotset:size=256K,share=0.8");
  const std::vector<uint64_t> written = PagesWritten(&guest, 1000);
  const auto hot = std::count_if(written.begin(), written.end(),
                                 [](uint64_t page) { return page <= 64; });
  EXPECT_NEAR(static_cast<double>(hot) / written.size(), 0.8, 0.03);
}

TEST(Idle, WritesNothing) {
  Guest guest = MakeGuest(kBlocks, "idle");
  EXPECT_TRUE(PagesWritten(&guest, 10).empty());
  EXPECT_GT(guest.workload->DelayNs(), 0);
}

TEST(Fill, LeavesTheRestZero) {
  const auto filled = [](const std::string& fill) {
    Guest guest = MakeGuest(kBlocks, "idle:fill=" + fill);
    const auto versions = guest.workload->ExpectedVersions().value();
    MIG_EXPECT_OK(guest.workload->Verify());
    return std::count(versions.begin(), versions.end(), 1U);
  };
  EXPECT_EQ(filled("all"), 575);
  EXPECT_EQ(filled("none"), 0);
  EXPECT_NEAR(filled("30"), 172, 40);
}

TEST(Rate, IsKeptByTheClockAndNotCaughtUpAfterAPause) {
  int64_t now = 0;
  Guest guest =
      MakeGuest(kBlocks, "uniform:rate=4000K", 1, [&now] { return now; });
  // A thousand pages a second.
  size_t pages = 0;
  for (; now < 1'000'000'000; now += 1'000'000) {
    pages += PagesWritten(&guest, 1).size();
  }
  EXPECT_NEAR(pages, 1000, 2);
  PagesWritten(&guest, 1);
  EXPECT_GT(guest.workload->DelayNs(), 900'000);
  EXPECT_LE(guest.workload->DelayNs(), 1'000'001);
  now += 50'000'000;
  guest.workload->SkipTime(50'000'000);
  EXPECT_LE(PagesWritten(&guest, 10).size(), 2U);
  // Time lost without a word is caught up on, up to a tenth of a second.
  now += 10'000'000'000;
  EXPECT_NEAR(PagesWritten(&guest, 1000).size(), 100, 1);
}

class Damage : public testing::Test {
 protected:
  Damage() : guest_(MakeGuest(kBlocks, "uniform")) {
    Steps(guest_.workload.get(), 100);
  }
  std::byte* Page(int block, uint64_t page) {
    return guest_.memory->blocks()[block].base + page * kPageSize;
  }
  Guest guest_;
};

TEST_F(Damage, IsLocatedByBlockPageAndOffset) {
  Page(1, 9)[100] ^= std::byte{4};
  ExpectError(guest_.workload->Verify(), absl::StatusCode::kDataLoss,
              {"1 of 575", "block 'vga', page 9 (offset 0x9000)", "byte 96"});
}

TEST_F(Damage, OfManyPagesIsCountedAndTheFirstShown) {
  for (uint64_t page = 20; page < 40; ++page) Page(0, page)[50] ^= std::byte{1};
  ExpectError(guest_.workload->Verify(), absl::StatusCode::kDataLoss,
              {"20 of 575", "'ram', page 20 ", "'ram', page 23 ", "..."});
}

TEST_F(Damage, ByAnOldPageIsSeenOnlyByTheVersionTable) {
  std::byte* page = Page(0, 30);
  const std::vector<std::byte> old(page, page + kPageSize);
  Steps(guest_.workload.get(), 100);
  const auto versions = guest_.workload->ExpectedVersions().value();
  MIG_EXPECT_OK(guest_.workload->CheckVersions(versions));
  memcpy(page, old.data(), kPageSize);
  MIG_EXPECT_OK(guest_.workload->Verify());
  ExpectError(guest_.workload->CheckVersions(versions),
              absl::StatusCode::kDataLoss,
              {"stale", "block 'ram', page 30 (offset 0x1e000)"});
  // A page that never arrived.
  memset(page, 0, kPageSize);
  MIG_EXPECT_OK(guest_.workload->Verify());
  ExpectError(guest_.workload->CheckVersions(versions),
              absl::StatusCode::kDataLoss, {"stale: version 0"});
}

TEST_F(Damage, OfTheTableOrTheStateIsRefused) {
  ExpectError(guest_.workload->CheckVersions({1, 2, 3}),
              absl::StatusCode::kInvalidArgument, {"3 page", "576 pages"});
  // Every 64-bit word of the control page that could be an index or a length.
  for (size_t offset = 0; offset < 2304; offset += 8) {
    uint64_t saved = 0;
    memcpy(&saved, Page(0, 0) + offset, 8);
    memset(Page(0, 0) + offset, 0xff, 8);
    auto workload = AttachWorkload(guest_.memory.get());
    if (workload.ok()) Steps(workload->get(), 1);
    memcpy(Page(0, 0) + offset, &saved, 8);
  }
}

TEST(Attach, RefusesMemoryWithoutAGuestOrWithAnother) {
  Guest guest = MakeGuest(kBlocks, "uniform");
  auto other = MakeWorkload("idle", guest.memory.get(), 1).value();
  ExpectError(other->Attach(), absl::StatusCode::kFailedPrecondition,
              {"'uniform'", "'idle'"});
  MIG_ASSERT_OK(guest.memory->Zero());
  ExpectError(guest.workload->Attach(), absl::StatusCode::kDataLoss,
              {"no guest", "'ram'"});
  ExpectError(AttachWorkload(guest.memory.get()).status(),
              absl::StatusCode::kDataLoss, {"no guest", "'ram'"});
}

TEST(MakeWorkload, RefusesBadSpecsInOneLine) {
  GuestMemory memory = MakeMemory({"ram:64K"});
  const auto expect = [&](const std::string& spec,
                          const std::vector<std::string>& parts) {
    ExpectError(MakeWorkload(spec, &memory, 1).status(),
                absl::StatusCode::kInvalidArgument, parts);
  };
  expect("busy", {"'busy'", "uniform", "sequential"});
  expect("uniform:rate=fast", {"uniform:rate", "'fast'"});
  expect("uniform:size=1M", {"'size'", "fill, rate"});
  expect("idle:rate=1M", {"'rate'", "fill"});
  expect("hotset:size=128K", {"131072", "65536"});
  expect("hotset:share=2", {"'2'", "0 to 1"});
  GuestMemory tiny = MakeMemory({"ram:4K"});
  ExpectError(MakeWorkload("uniform", &tiny, 1).value()->Init(),
              absl::StatusCode::kInvalidArgument, {"'ram'", "8192"});
}

// C13.
TEST(Sparse, FiveGiBGuestIsVerifiedWithoutBeingPopulated) {
  for (const char* backing : {"anon", "memfd"}) {
    const long before = ResidentKib();
    Guest guest = MakeGuest({std::string("ram:5G,backing=") + backing},
                            "uniform:fill=none");
    Steps(guest.workload.get(), 5);
    MIG_EXPECT_OK(guest.workload->Verify());
    const auto versions = guest.workload->ExpectedVersions().value();
    EXPECT_EQ(std::count(versions.begin(), versions.end(), 1U), 40);
    MIG_EXPECT_OK(guest.workload->CheckVersions(versions));
    EXPECT_LT(ResidentKib() - before, UnderSanitizer() ? 1 << 20 : 32 * 1024);
  }
}

}  // namespace
}  // namespace mig::sim
