// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <sqlite3.h>

#include "guest/dirty_tracker.h"
#include "guest/workload_runner.h"
#include "migrate.h"

namespace mig::sim {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kBlocks = {"ram:4M"};

// Where the database begins in a guest of one block.
std::byte* Database(const Guest& guest) {
  return guest.memory->blocks()[0].base + kPageSize;
}

TEST(Bank, IsARealDatabaseThatAnyoneCanOpen) {
  Guest guest = MakeGuest(kBlocks, "bank:accounts=100");
  Steps(guest.workload.get(), 10);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_deserialize(
                db, "main", reinterpret_cast<unsigned char*>(Database(guest)),
                1 << 20, 1 << 20, SQLITE_DESERIALIZE_READONLY),
            SQLITE_OK);
  sqlite3_stmt* query = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(
                db, "SELECT sum(balance), max(transfers) FROM account, bank",
                -1, &query, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(query), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int64(query, 0), 100'000);
  EXPECT_EQ(sqlite3_column_int64(query, 1), 10);
  sqlite3_finalize(query);
  sqlite3_close(db);
}

// After every single transaction, since any of them can be the last one here.
TEST(Bank, HasAllThatIsCommittedInGuestMemoryAtEachStep) {
  Guest source = MakeGuest(kBlocks, "bank:accounts=500");
  for (int i = 0; i < 60; ++i) {
    Steps(source.workload.get(), 1);
    Guest copy;
    copy.memory = std::make_unique<GuestMemory>(MakeMemory(kBlocks));
    memcpy(copy.memory->blocks()[0].base, source.memory->blocks()[0].base,
           source.memory->total_bytes());
    copy.workload = AttachWorkload(copy.memory.get()).value();
    MIG_ASSERT_OK(copy.workload->Verify());
    EXPECT_THAT(copy.workload->Summary(),
                HasSubstr(std::to_string(i + 1) + " transfers"));
  }
}

TEST(Bank, GoesOnAtTheDestinationWithTheSourcePoisoned) {
  Guest stayed = MakeGuest(kBlocks, "bank:accounts=500", 5);
  Guest source = MakeGuest(kBlocks, "bank:accounts=500", 5);
  Steps(stayed.workload.get(), 1700);
  Steps(source.workload.get(), 900);
  Guest target = Migrate(source, kBlocks);
  ASSERT_NE(target.workload, nullptr);
  MIG_ASSERT_OK(target.workload->Verify());
  Steps(target.workload.get(), 800);
  MIG_EXPECT_OK(target.workload->Verify());
  EXPECT_EQ(target.workload->steps(), 1700U);
  EXPECT_TRUE(SameMemory(*target.memory, *stayed.memory));
  // And on, from there.
  Guest third = Migrate(target, kBlocks);
  ASSERT_NE(third.workload, nullptr);
  Steps(third.workload.get(), 10);
  MIG_EXPECT_OK(third.workload->Verify());
}

TEST(Bank, IsCopiedWholeWhileItRunsUnderARealTracker) {
  Guest source = MakeGuest(kBlocks, "bank:accounts=5000");
  EXPECT_FALSE(source.workload->ReportsWrites());
  WorkloadRunner runner(source.workload.get());
  auto tracker = MakeDirtyTracker("auto", source.memory.get()).value().tracker;
  MIG_ASSERT_OK(tracker->Start());
  MIG_ASSERT_OK(runner.Start());
  Guest target;
  target.memory = std::make_unique<GuestMemory>(MakeMemory(kBlocks));
  const GuestBlock& from = source.memory->blocks()[0];
  const auto round = [&](bool all) {
    DirtyBitmap dirty(from.pages());
    ASSERT_TRUE(tracker->FetchAndClear(from, &dirty).ok());
    if (all) dirty.SetAll();
    dirty.ForEachRange([&](uint64_t first, uint64_t count) {
      KernelCopy(target.memory->blocks()[0].base + first * kPageSize,
                 from.base + first * kPageSize, count * kPageSize);
    });
  };
  round(true);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    round(false);
  }
  runner.Pause();
  round(false);
  MIG_ASSERT_OK(runner.status());
  EXPECT_GT(runner.steps(), 5U);
  target.workload = AttachWorkload(target.memory.get()).value();
  EXPECT_EQ(target.workload->Summary(), source.workload->Summary());
  MIG_EXPECT_OK(target.workload->Verify());
}

TEST(Bank, SeesDamageBehindItsOwnCache) {
  Guest guest = MakeGuest(kBlocks, "bank:accounts=2000");
  Steps(guest.workload.get(), 50);
  MIG_ASSERT_OK(guest.workload->Verify());
  // The beginning of a b-tree page.
  Database(guest)[5 * kPageSize] ^= std::byte{0xff};
  EXPECT_EQ(guest.workload->Verify().code(), absl::StatusCode::kDataLoss);
}

TEST(Bank, SeesMoneyThatIsMissing) {
  Guest source = MakeGuest(kBlocks, "bank:accounts=2000");
  const GuestBlock& block = source.memory->blocks()[0];
  const std::vector<std::byte> before(block.base, block.base + block.length);
  Steps(source.workload.get(), 200);
  // One page in turn that is whole, but that of 200 transfers ago.
  int changed = 0;
  int seen = 0;
  for (uint64_t page = 1; page < block.pages(); ++page) {
    std::byte* here = block.base + page * kPageSize;
    const std::byte* old = before.data() + page * kPageSize;
    if (memcmp(here, old, kPageSize) == 0) continue;
    ++changed;
    const std::vector<std::byte> saved(here, here + kPageSize);
    memcpy(here, old, kPageSize);
    if (!source.workload->Verify().ok()) ++seen;
    memcpy(here, saved.data(), kPageSize);
  }
  // All but the first, which is only SQLite's change counter.
  EXPECT_GE(changed, 8);
  EXPECT_GE(seen, changed - 1);
  MIG_EXPECT_OK(source.workload->Verify());
}

TEST(Bank, RefusesWhatIsNoDatabaseOrDoesNotFit) {
  Guest guest = MakeGuest(kBlocks, "bank:accounts=100");
  Guest copy;
  memset(Database(guest), 0, 100);
  ExpectError(guest.workload->Attach(), absl::StatusCode::kDataLoss,
              {"'ram', page 1", "no SQLite database"});
  GuestMemory small = MakeMemory({"ram:128K"});
  ExpectError(MakeWorkload("bank:accounts=100000", &small, 1).value()->Init(),
              absl::StatusCode::kInvalidArgument,
              {"'ram'", "126976", "fewer accounts"});
  ExpectError(MakeWorkload("bank:accounts=1", &small, 1).status(),
              absl::StatusCode::kInvalidArgument, {"'1'", "2 to"});
}

TEST(Bank, NeverCrashesOnADamagedHeaderPage) {
  Guest guest = MakeGuest(kBlocks, "bank:accounts=100");
  for (int offset = 0; offset < 112; ++offset) {
    const std::byte saved = Database(guest)[offset];
    Database(guest)[offset] = std::byte{0xff};
    auto workload = AttachWorkload(guest.memory.get());
    if (workload.ok()) {
      (void)(*workload)->Verify();
      (void)(*workload)->Step();
    }
    workload = absl::CancelledError();
    // Steps may have written: start from a good one each time.
    guest = MakeGuest(kBlocks, "bank:accounts=100");
    EXPECT_EQ(Database(guest)[offset], saved);
  }
}

}  // namespace
}  // namespace mig::sim
