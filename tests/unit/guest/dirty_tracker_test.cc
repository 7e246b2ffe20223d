// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/dirty_tracker.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "test_util.h"

namespace mig::sim {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

void Write(const GuestBlock& block, uint64_t page, unsigned char value) {
  reinterpret_cast<volatile unsigned char*>(
      block.base)[page * kPageSize + page % kPageSize] = value;
}

// Whether the kernel can be without `kind`; where it has it, a probe that fails
// is a failure of the tracker.
bool MayBeAbsent(const std::string& kind) {
  if (kind == "soft-dirty") return true;
  utsname name = {};
  int major = 0;
  int minor = 0;
  if (kind != "uffd" || uname(&name) != 0 ||
      sscanf(name.release, "%d.%d", &major, &minor) != 2) {
    return false;
  }
  return major < 6 || (major == 6 && minor < 7);
}

// A guest of two blocks and one writer thread, with a tracker of `kind`.
class TrackerTest : public testing::TestWithParam<std::string> {
 protected:
  void Make(const std::vector<std::string>& texts) {
    memory_ = std::make_unique<GuestMemory>(MakeMemory(texts));
    absl::StatusOr<TrackerChoice> choice =
        MakeDirtyTracker(GetParam(), memory_.get(), [this](const auto& call) {
          const std::lock_guard<std::mutex> lock(guest_runs_);
          call();
        });
    if (!choice.ok()) {
      ASSERT_TRUE(MayBeAbsent(GetParam())) << choice.status();
      GTEST_SKIP() << choice.status().message();
    }
    tracker_ = std::move(choice->tracker);
  }

  // Reports to a tracker that cannot see by itself.
  void GuestWrite(const GuestBlock& block, uint64_t page, unsigned char value) {
    const std::lock_guard<std::mutex> lock(guest_runs_);
    Write(block, page, value);
    if (tracker_->observer() != nullptr) {
      tracker_->observer()->OnWrite(block.id, page * kPageSize, 1);
    }
  }

  std::vector<uint64_t> Fetch(const GuestBlock& block) {
    DirtyBitmap dirty(block.pages());
    absl::StatusOr<uint64_t> count = tracker_->FetchAndClear(block, &dirty);
    EXPECT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count.value_or(0), dirty.Count());
    std::vector<uint64_t> pages;
    dirty.ForEachRange([&](uint64_t first, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) pages.push_back(first + i);
    });
    return pages;
  }

  std::unique_ptr<GuestMemory> memory_;
  std::mutex guest_runs_;
  std::unique_ptr<DirtyTracker> tracker_;
};

#define MIG_MAKE_OR_SKIP(...) \
  Make(__VA_ARGS__);          \
  if (tracker_ == nullptr) return

TEST_P(TrackerTest, ReportsJustThePagesWrittenSinceTheLastFetch) {
  MIG_MAKE_OR_SKIP({"a:1M", "b:1M"});
  const GuestBlock& a = memory_->blocks()[0];
  const GuestBlock& b = memory_->blocks()[1];
  Write(a, 77, 1);
  MIG_ASSERT_OK(tracker_->Start());
  GuestWrite(a, 0, 1);
  GuestWrite(a, 64, 1);
  GuestWrite(b, 255, 1);
  EXPECT_EQ(Fetch(a), (std::vector<uint64_t>{0, 64}));
  EXPECT_EQ(Fetch(a), (std::vector<uint64_t>{}));
  GuestWrite(a, 64, 2);
  // Fetching one block must not lose what the other one has.
  EXPECT_EQ(Fetch(b), (std::vector<uint64_t>{255}));
  EXPECT_EQ(Fetch(a), (std::vector<uint64_t>{64}));
  MIG_ASSERT_OK(tracker_->Stop());
  Write(a, 3, 1);
}

TEST_P(TrackerTest, FetchAddsToTheBitmapAndClearsNothingThere) {
  MIG_MAKE_OR_SKIP({"a:1M"});
  const GuestBlock& a = memory_->blocks()[0];
  MIG_ASSERT_OK(tracker_->Start());
  GuestWrite(a, 9, 1);
  DirtyBitmap pending(a.pages());
  pending.Set(200);
  EXPECT_EQ(tracker_->FetchAndClear(a, &pending).value(), 1U);
  EXPECT_TRUE(pending.Test(200));
  EXPECT_TRUE(pending.Test(9));
  EXPECT_EQ(pending.Count(), 2U);
}

TEST_P(TrackerTest, CanBeStoppedAndStartedAgain) {
  MIG_MAKE_OR_SKIP({"a:1M"});
  const GuestBlock& a = memory_->blocks()[0];
  for (int i = 0; i < 3; ++i) {
    MIG_ASSERT_OK(tracker_->Start());
    EXPECT_EQ(tracker_->Start().code(), absl::StatusCode::kFailedPrecondition);
    GuestWrite(a, 10 + i, 1);
    EXPECT_EQ(Fetch(a), (std::vector<uint64_t>{10U + i}));
    MIG_ASSERT_OK(tracker_->Stop());
    MIG_ASSERT_OK(tracker_->Stop());
    Write(a, 100, 1);
  }
}

TEST_P(TrackerTest, RefusesToFetchWhenOffOrIntoAnotherSize) {
  MIG_MAKE_OR_SKIP({"a:1M"});
  const GuestBlock& a = memory_->blocks()[0];
  DirtyBitmap right(a.pages());
  DirtyBitmap wrong(a.pages() - 1);
  EXPECT_EQ(tracker_->FetchAndClear(a, &right).status().code(),
            absl::StatusCode::kFailedPrecondition);
  MIG_ASSERT_OK(tracker_->Start());
  ExpectError(tracker_->FetchAndClear(a, &wrong).status(),
              absl::StatusCode::kInvalidArgument, {"'a'", "256", "255"});
}

// C13.
TEST_P(TrackerTest, FindsPagesEitherSideOfTwoAndFourGiB) {
  MIG_MAKE_OR_SKIP({"ram:5G"});
  const GuestBlock& ram = memory_->blocks()[0];
  MIG_ASSERT_OK(tracker_->Start());
  std::vector<uint64_t> written;
  for (const uint64_t edge : {2 * kGiB, 4 * kGiB}) {
    written.push_back(edge / kPageSize - 1);
    written.push_back(edge / kPageSize);
  }
  written.push_back(ram.pages() - 1);
  for (const uint64_t page : written) GuestWrite(ram, page, 1);
  EXPECT_EQ(Fetch(ram), written);
  EXPECT_EQ(Fetch(ram), (std::vector<uint64_t>{}));
}

// C25. Each page is written once a pass, in random order, while pages are
// fetched and copied as fast as possible: one lost write, and the copy differs
// for good.
TEST_P(TrackerTest, LosesNoWriteOfARacingGuest) {
  MIG_MAKE_OR_SKIP(
      {"a:4M", "b:2M,backing=" +
                   std::string(GetParam() == "soft-dirty" ? "anon" : "memfd")});
  std::vector<std::vector<char>> copies;
  std::vector<std::pair<const GuestBlock*, uint64_t>> order;
  for (const GuestBlock& block : memory_->blocks()) {
    copies.emplace_back(block.length);
    for (uint64_t page = 0; page < block.pages(); ++page) {
      order.emplace_back(&block, page);
    }
  }
  const auto fetch_and_copy = [&](DirtyBitmap* fetched) {
    for (const GuestBlock& block : memory_->blocks()) {
      DirtyBitmap dirty(block.pages());
      ASSERT_TRUE(tracker_->FetchAndClear(block, &dirty).ok());
      dirty.ForEachRange([&](uint64_t first, uint64_t count) {
        KernelCopy(&copies[block.id][first * kPageSize],
                   block.base + first * kPageSize, count * kPageSize);
      });
      fetched[block.id].Merge(dirty);
    }
  };
  MIG_ASSERT_OK(tracker_->Start());
  std::mt19937_64 random(7);
  const int passes = UnderSanitizer() ? 6 : 20;
  for (int pass = 1; pass <= passes; ++pass) {
    std::shuffle(order.begin(), order.end(), random);
    DirtyBitmap fetched[] = {DirtyBitmap(memory_->blocks()[0].pages()),
                             DirtyBitmap(memory_->blocks()[1].pages())};
    std::atomic<bool> done{false};
    std::thread guest([&] {
      for (const auto& [block, page] : order) GuestWrite(*block, page, pass);
      done = true;
    });
    while (!done) fetch_and_copy(fetched);
    guest.join();
    fetch_and_copy(fetched);
    for (const GuestBlock& block : memory_->blocks()) {
      EXPECT_EQ(fetched[block.id].Count(), block.pages()) << "pass " << pass;
      ASSERT_EQ(memcmp(copies[block.id].data(), block.base, block.length), 0)
          << "block " << block.name << " pass " << pass;
    }
  }
}

// Two threads that fault on the same page at once are where a handler that
// marks first and opens second goes wrong.
TEST_P(TrackerTest, LosesNoWriteOfTwoGuestThreadsOnOnePage) {
  MIG_MAKE_OR_SKIP({"a:64K"});
  const GuestBlock& a = memory_->blocks()[0];
  std::vector<char> copy(a.length);
  MIG_ASSERT_OK(tracker_->Start());
  std::atomic<bool> stop{false};
  const auto write = [&](int lane) {
    for (unsigned i = 0; !stop || i < 100; ++i) {
      const std::unique_lock<std::mutex> lock(guest_runs_, std::defer_lock);
      const uint64_t page = i % a.pages();
      auto* cell = reinterpret_cast<unsigned char*>(a.base) + page * kPageSize +
                   lane * 64;
      std::atomic_ref<unsigned char>(*cell).fetch_add(1);
      if (tracker_->observer() != nullptr) {
        tracker_->observer()->OnWrite(0, page * kPageSize, 1);
      }
    }
  };
  if (GetParam() == "soft-dirty") GTEST_SKIP() << "needs a pause, tested above";
  const int rounds = UnderSanitizer() ? 20 : 200;
  for (int round = 0; round < rounds; ++round) {
    stop = false;
    std::thread one(write, 0);
    std::thread two(write, 1);
    const auto fetch_and_copy = [&] {
      for (const uint64_t page : Fetch(a)) {
        KernelCopy(&copy[page * kPageSize], a.base + page * kPageSize,
                   kPageSize);
      }
    };
    for (int i = 0; i < 50; ++i) fetch_and_copy();
    stop = true;
    one.join();
    two.join();
    fetch_and_copy();
    ASSERT_EQ(memcmp(copy.data(), a.base, a.length), 0) << "round " << round;
  }
}

TEST_P(TrackerTest, StopsWhileTheGuestRuns) {
  MIG_MAKE_OR_SKIP({"a:1M"});
  const GuestBlock& a = memory_->blocks()[0];
  std::atomic<bool> stop{false};
  std::thread guest([&] {
    for (uint64_t i = 0; !stop; ++i) GuestWrite(a, i % a.pages(), 1);
  });
  for (int i = 0; i < 50; ++i) {
    MIG_EXPECT_OK(tracker_->Start());
    Fetch(a);
    MIG_EXPECT_OK(tracker_->Stop());
  }
  stop = true;
  guest.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrackerTest,
                         testing::Values("uffd", "soft-dirty", "mprotect",
                                         "simulated"),
                         [](const auto& info) {
                           return info.param == "soft-dirty" ? "softdirty"
                                                             : info.param;
                         });

TEST(MakeDirtyTracker, AutoSaysWhichKindAndWhy) {
  const GuestMemory memory = MakeMemory({"a:1M"});
  const TrackerChoice choice = MakeDirtyTracker("auto", &memory).value();
  EXPECT_THAT(choice.why,
              testing::HasSubstr(std::string(choice.tracker->name())));
  EXPECT_THAT(choice.why, testing::HasSubstr("best"));
  EXPECT_NE(choice.tracker->name(), "simulated");
}

TEST(MakeDirtyTracker, AutoAvoidsSoftDirtyOnPinnedMemory) {
  const GuestMemory memory = MakeMemory({"a:1M"});
  const TrackerChoice choice =
      MakeDirtyTracker(
          "auto", &memory, [](const auto& call) { call(); }, /*pinned=*/true)
          .value();
  EXPECT_NE(choice.tracker->name(), "soft-dirty");
  EXPECT_THAT(choice.why, testing::HasSubstr("pinned"));
  // Also where this kernel has a better one than either.
  EXPECT_EQ(AutoTrackerKinds(/*pinned=*/true).back(), "soft-dirty");
}

TEST(MakeDirtyTracker, RefusesUnknownKindsNamingTheKnown) {
  const GuestMemory memory = MakeMemory({"a:1M"});
  ExpectError(MakeDirtyTracker("magic", &memory).status(),
              absl::StatusCode::kInvalidArgument, {"'magic'", "mprotect"});
}

TEST(MakeDirtyTracker, SoftDirtyIsRefusedWithoutAPauseAndForMemfd) {
  const GuestMemory memory = MakeMemory({"a:1M", "m:1M,backing=memfd"});
  ExpectError(MakeDirtyTracker("soft-dirty", &memory).status(),
              absl::StatusCode::kFailedPrecondition, {"pause"});
  ExpectError(
      MakeDirtyTracker("soft-dirty", &memory, [](const auto& call) { call(); })
          .status(),
      absl::StatusCode::kFailedPrecondition, {"'m'", "memfd"});
}

// More islands of writable pages than a process may have mappings.
TEST(MprotectTracker, SurvivesRunningOutOfMappings) {
  if (UnderSanitizer()) GTEST_SKIP() << "the sanitizer needs mappings itself";
  const GuestMemory memory = MakeMemory({"a:600M"});
  const GuestBlock& a = memory.blocks()[0];
  auto tracker = MakeDirtyTracker("mprotect", &memory).value().tracker;
  MIG_ASSERT_OK(tracker->Start());
  for (uint64_t page = 0; page < a.pages(); page += 2) Write(a, page, 1);
  DirtyBitmap dirty(a.pages());
  ASSERT_TRUE(tracker->FetchAndClear(a, &dirty).ok());
  for (uint64_t page = 0; page < a.pages(); page += 2) {
    ASSERT_TRUE(dirty.Test(page)) << page;
  }
  dirty.ClearAll();
  Write(a, 4, 2);
  EXPECT_EQ(tracker->FetchAndClear(a, &dirty).value(), 1U);
}

sigjmp_buf g_jump;

TEST(MprotectTracker, LeavesFaultsElsewhereToTheHandlerBefore) {
  if (UnderSanitizer()) GTEST_SKIP() << "leaves a signal handler by a jump";
  // A process of its own, where our handler is not installed yet.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct sigaction action = {};
        action.sa_handler = [](int) { siglongjmp(g_jump, 1); };
        sigaction(SIGSEGV, &action, nullptr);
        const GuestMemory memory = MakeMemory({"a:1M"});
        auto choice = MakeDirtyTracker("mprotect", &memory);
        void* trap = mmap(nullptr, kPageSize, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (sigsetjmp(g_jump, 1) == 0) {
          *static_cast<volatile char*>(trap) = 1;
          _exit(1);
        }
        _exit(choice.ok() ? 42 : 2);
      },
      testing::ExitedWithCode(42), "");
}

TEST(MprotectTracker, AFaultElsewhereStillEndsTheProcess) {
  if (UnderSanitizer()) GTEST_SKIP() << "the sanitizer reports the fault";
  EXPECT_EXIT(
      {
        const GuestMemory memory = MakeMemory({"a:1M"});
        auto choice = MakeDirtyTracker("mprotect", &memory);
        void* trap = mmap(nullptr, kPageSize, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile char*>(trap) = 1;
        _exit(choice.ok() ? 0 : 2);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace mig::sim
