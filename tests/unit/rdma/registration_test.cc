// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/registration.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/worker_pool.h"

namespace mig::rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Never touched unless a test says so.
std::byte* const kBase = At(uint64_t{1} << 40);

using ReadyChunk = BlockRegistration::ReadyChunk;

// With 0, 1 and 4 worker threads.
class RegistrationTest : public ::testing::TestWithParam<unsigned> {
 protected:
  void Open(RegistrationSettings settings = Unlimited()) {
    settings.threads = GetParam();
    auto made = RegistrationCache::Create(&device, device.pd(), &host,
                                          std::move(settings));
    ASSERT_TRUE(made.ok()) << made.status();
    cache = *std::move(made);
  }
  static RegistrationSettings Unlimited() {
    RegistrationSettings settings;
    settings.memlock = [] { return Memlock{true, 0, 0}; };
    return settings;
  }
  static RegistrationSettings Limited(uint64_t limit) {
    RegistrationSettings settings;
    settings.memlock = [limit] { return Memlock{false, limit, 0}; };
    return settings;
  }
  std::unique_ptr<BlockRegistration> Add(uint64_t length, uint64_t chunk,
                                         bool kept = false,
                                         MemoryUse use = MemoryUse::kReadHere,
                                         uint64_t at = 0) {
    auto made = cache->Open({.name = "ram",
                             .base = kBase + at,
                             .length = length,
                             .chunk_size = chunk,
                             .use = use,
                             .kept = kept,
                             .wake = [this] { ++wakes; }});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  // Waits, or steps, until `done`.
  void Until(const std::function<bool()>& done) {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (GetParam() == 0) {
        cache->Step();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_LT(std::chrono::steady_clock::now(), limit);
    }
  }
  std::vector<ReadyChunk> WaitForAll(BlockRegistration* block, size_t count) {
    std::vector<ReadyChunk> all;
    Until([&] {
      std::array<ReadyChunk, 3> some;
      const auto got = block->TakeReady(some);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) return true;
      all.insert(all.end(), some.begin(),
                 some.begin() + static_cast<ptrdiff_t>(*got));
      return all.size() >= count;
    });
    return all;
  }
  absl::Status WaitForFailure(BlockRegistration* block) {
    absl::Status failure;
    Until([&] {
      std::array<ReadyChunk, 8> some;
      const auto got = block->TakeReady(some);
      if (!got.ok()) failure = got.status();
      return !got.ok();
    });
    return failure;
  }

  FakeDevice device;
  Host host;
  std::atomic<int> wakes = 0;
  std::unique_ptr<RegistrationCache> cache;
};

INSTANTIATE_TEST_SUITE_P(Threads, RegistrationTest,
                         ::testing::Values(0u, 1u, 4u));

TEST_P(RegistrationTest, PinsEachChunkOnce) {
  Open();
  for (const uint64_t chunk : {kMiB, 32 * kMiB, kGiB}) {
    const uint64_t unit = RegistrationUnit(chunk, GetParam(), false);
    const uint64_t length = 3 * kGiB + 4096;
    const uint64_t before = device.registrations;
    const auto block = Add(length, unit, false, MemoryUse::kReadHere);
    const uint64_t count = length / unit + 1;
    EXPECT_EQ(block->chunk_count(), count);
    EXPECT_EQ(block->MissingBytes(), length);
    block->AskAll();
    block->AskAll();
    block->Ask(5, 7);
    const auto ready = WaitForAll(block.get(), count);
    EXPECT_EQ(device.registrations - before, count);
    std::set<uint32_t> chunks;
    for (const ReadyChunk& chunk_ready : ready) {
      chunks.insert(chunk_ready.chunk);
      EXPECT_NE(chunk_ready.lkey, chunk_ready.rkey);
    }
    EXPECT_EQ(chunks.size(), count);
    EXPECT_EQ(block->asked_bytes(), length);
    EXPECT_EQ(block->ready_bytes(), length);
    EXPECT_EQ(block->MissingBytes(), 0u);
    EXPECT_EQ(cache->stats().bytes, length);
    block->Release();
    Until([&] { return block->released(); });
    EXPECT_EQ(cache->stats().bytes, 0u);
  }
  EXPECT_EQ(device.LiveMrs(), 0u);
}

TEST_P(RegistrationTest, RegistersOnDemandWhatIsAskedForAndNoMore) {
  Open();
  const auto block = Add(64 * kMiB, kMiB);
  block->Ask(3);
  block->Ask(60, 100);  // ends with the block
  block->Ask(1000, 5);  // not there
  block->Ask(3);
  const auto ready = WaitForAll(block.get(), 5);
  std::set<uint32_t> chunks;
  for (const ReadyChunk& chunk : ready) chunks.insert(chunk.chunk);
  EXPECT_EQ(chunks, (std::set<uint32_t>{3, 60, 61, 62, 63}));
  EXPECT_EQ(device.registrations, 5u);
  if (GetParam() > 0) {
    EXPECT_GE(wakes, 5);
  }
}

TEST_P(RegistrationTest, AsksForTheLeastRightsThatTheRoleNeeds) {
  Open();
  const auto source = Add(kMiB, kMiB, false, MemoryUse::kReadHere);
  const auto destination =
      Add(kMiB, kMiB, false, MemoryUse::kWrittenByPeer, 16 * kMiB);
  source->AskAll();
  WaitForAll(source.get(), 1);
  destination->AskAll();
  WaitForAll(destination.get(), 1);
  ASSERT_EQ(device.mrs.size(), 2u);
  EXPECT_EQ(device.mrs[0]->access, 0u);
  EXPECT_EQ(device.mrs[1]->access,
            unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE);
}

TEST_P(RegistrationTest, PagesOnDemandOnlyWhereAskedFor) {
  RegistrationSettings settings = Limited(1);
  settings.on_demand = true;
  Open(settings);
  const auto block = Add(kMiB, kMiB);
  // It pins nothing.
  const std::array<const BlockRegistration*, 1> blocks = {block.get()};
  EXPECT_TRUE(cache->CheckPinnable(blocks).ok());
  block->AskAll();
  WaitForAll(block.get(), 1);
  EXPECT_EQ(device.mrs[0]->access, unsigned{IBV_ACCESS_ON_DEMAND});
}

TEST(Registration, OnDemandPagingNeedsTheDevicesWordForIt) {
  ibv_device_attr_ex attr = {};
  EXPECT_EQ(ErrorCode(CheckOdp(attr)), MIG_E_UNSUPPORTED);
  attr.odp_caps.general_caps = IBV_ODP_SUPPORT;
  attr.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND;
  EXPECT_EQ(ErrorCode(CheckOdp(attr)), MIG_E_UNSUPPORTED);
  attr.odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_WRITE;
  EXPECT_TRUE(CheckOdp(attr).ok());
}

// C11: before anything is pinned, with need, limit and remedy.
TEST_P(RegistrationTest, TooLowALimitOfLockedMemoryIsSeenBeforehand) {
  Open(Limited(64 * kMiB));
  const auto first = Add(100 * kMiB, kMiB);
  const auto second =
      Add(156 * kMiB, kMiB, false, MemoryUse::kReadHere, 512 * kMiB);
  const std::array<const BlockRegistration*, 2> both = {first.get(),
                                                        second.get()};
  const absl::Status status = cache->CheckPinnable(both);
  EXPECT_EQ(ErrorCode(status), MIG_E_LIMIT);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr(std::to_string(256 * kMiB)));
  EXPECT_THAT(message, HasSubstr(std::to_string(64 * kMiB)));
  EXPECT_THAT(message, HasSubstr("ulimit -l"));
  EXPECT_THAT(message, HasSubstr("registration=dynamic"));
  EXPECT_EQ(device.registrations, 0u);
}

TEST(Memlock, IsWhatTheProcessHas) {
  struct Limit {
    bool unlimited;
    uint64_t limit, pinned, need;
    bool fits;
  };
  for (const Limit& at :
       {Limit{true, 1, 0, 100, true}, Limit{false, 100, 0, 100, true},
        Limit{false, 100, 1, 100, false}, Limit{false, 100, 200, 1, false},
        Limit{false, UINT64_MAX, 5, UINT64_MAX - 5, true},
        Limit{false, 0, 0, 0, true}}) {
    EXPECT_EQ(CheckMemlock({at.unlimited, at.limit, at.pinned}, at.need).ok(),
              at.fits);
  }
  EXPECT_EQ(PinnedBytes(0, 1), 4096u);
  EXPECT_EQ(PinnedBytes(4095, 2), 8192u);
  EXPECT_EQ(PinnedBytes(1024, 0), 0u);
  (void)ReadMemlock();
}

// C11: the limit was lowered, or something else took it, in between.
TEST_P(RegistrationTest, ARegistrationThatFailsNamesWhatWasAskedAndTheRemedy) {
  Open(Limited(64 * kMiB));
  device.fail_reg_at = 2;
  device.fail_reg_errno = ENOMEM;
  const auto block = Add(8 * kMiB, kMiB);
  block->AskAll();
  const absl::Status failure = WaitForFailure(block.get());
  EXPECT_EQ(ErrorCode(failure), MIG_E_LIMIT);
  EXPECT_EQ(ErrorErrno(failure), ENOMEM);
  EXPECT_THAT(std::string(failure.message()), HasSubstr("block 'ram'"));
  EXPECT_THAT(std::string(failure.message()), HasSubstr("67108864"));
  EXPECT_THAT(std::string(failure.message()), HasSubstr("ulimit -l"));
  std::array<ReadyChunk, 1> out;
  EXPECT_FALSE(block->TakeReady(out).ok());  // for good
}

// C11: siw holds root to the limit, which other devices don't.
TEST_P(RegistrationTest, ARefusalInSpiteOfCapIpcLockNamesTheLimitAndTheRemedy) {
  RegistrationSettings settings;
  settings.memlock = [] { return Memlock{true, 8 * kMiB, 0}; };
  Open(settings);
  device.fail_reg_at = 1;
  device.fail_reg_errno = ENOMEM;
  const auto block = Add(8 * kMiB, kMiB);
  block->AskAll();
  const absl::Status failure = WaitForFailure(block.get());
  EXPECT_EQ(ErrorCode(failure), MIG_E_LIMIT);
  EXPECT_THAT(std::string(failure.message()),
              AllOf(HasSubstr("8388608"), HasSubstr("CAP_IPC_LOCK"),
                    HasSubstr("siw"), HasSubstr("LimitMEMLOCK=")));
}

TEST_P(RegistrationTest, TellsFailuresApart) {
  struct Failure {
    int system_errno;
    int code;
  };
  for (const Failure& at :
       {Failure{EFAULT, MIG_E_GUEST_MEMORY},
        Failure{EACCES, MIG_E_GUEST_MEMORY}, Failure{EINVAL, MIG_E_DEVICE},
        Failure{EAGAIN, MIG_E_LIMIT}}) {
    Open();
    device.fail_reg_at = device.registrations.load();
    device.fail_reg_errno = at.system_errno;
    const auto block = Add(kMiB, kMiB);
    block->AskAll();
    EXPECT_EQ(ErrorCode(WaitForFailure(block.get())), at.code);
  }
}

TEST_P(RegistrationTest, RefusesWhatTheDeviceCanNotHave) {
  RegistrationSettings settings;
  settings.max_mr = 100;
  settings.max_mr_size = 32 * kMiB;
  Open(settings);
  const auto many = cache->Open(
      {.name = "ram", .base = kBase, .length = kGiB, .chunk_size = kMiB});
  EXPECT_EQ(ErrorCode(many.status()), MIG_E_LIMIT);
  EXPECT_THAT(std::string(many.status().message()), HasSubstr("larger"));
  const auto large = cache->Open(
      {.name = "ram", .base = kBase, .length = kGiB, .chunk_size = 64 * kMiB});
  EXPECT_EQ(ErrorCode(large.status()), MIG_E_LIMIT);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("smaller"));
}

// Rule 15: a retry pays no second pinning.
TEST_P(RegistrationTest, ALaterSessionFindsWhatWasKept) {
  Open(Limited(32 * kMiB));
  auto block = Add(32 * kMiB, kMiB, /*kept=*/true);
  block->AskAll();
  auto first = WaitForAll(block.get(), 32);
  block->Release();
  EXPECT_TRUE(block->released());
  block.reset();
  EXPECT_EQ(device.LiveMrs(), 32u);

  block = Add(32 * kMiB, kMiB, /*kept=*/true);
  EXPECT_EQ(block->MissingBytes(), 0u);
  const std::array<const BlockRegistration*, 1> blocks = {block.get()};
  EXPECT_TRUE(cache->CheckPinnable(blocks).ok());
  block->AskAll();
  auto second = WaitForAll(block.get(), 32);
  EXPECT_EQ(device.registrations, 32u);
  EXPECT_EQ(cache->stats().reused, 32u);

  // Not kept any more: it goes with this session.
  block.reset();
  block = Add(32 * kMiB, kMiB, /*kept=*/false);
  block->AskAll();
  WaitForAll(block.get(), 32);
  EXPECT_EQ(device.registrations, 32u);
  block->Release();
  Until([&] { return block->released(); });
  EXPECT_EQ(device.LiveMrs(), 0u);
}

TEST_P(RegistrationTest, WhatWasKeptAndIsOtherwiseNowIsDropped) {
  Open();
  auto block = Add(8 * kMiB, kMiB, /*kept=*/true);
  block->AskAll();
  WaitForAll(block.get(), 8);
  block.reset();
  EXPECT_EQ(device.LiveMrs(), 8u);
  block = Add(8 * kMiB, 2 * kMiB, /*kept=*/true, MemoryUse::kReadHere, kMiB);
  Until([&] { return device.LiveMrs() == 0; });
  block->AskAll();
  WaitForAll(block.get(), 4);
  block.reset();
  cache.reset();
  EXPECT_EQ(device.LiveMrs(), 0u);  // the context's end
}

TEST_P(RegistrationTest, TwoSessionsShareOneRegistration) {
  Open();
  auto first = Add(4 * kMiB, kMiB);
  auto second = Add(4 * kMiB, kMiB);
  first->AskAll();
  second->Ask(1, 2);
  WaitForAll(first.get(), 4);
  WaitForAll(second.get(), 2);
  EXPECT_EQ(device.registrations, 4u);
  first->Release();
  EXPECT_TRUE(first->released());
  EXPECT_EQ(device.LiveMrs(), 4u);
  second->AskAll();
  WaitForAll(second.get(), 2);
  second.reset();
  Until([&] { return device.LiveMrs() == 0; });
}

// H8: whatever is under way, the end neither hangs nor leaks.
TEST_P(RegistrationTest, EndsInTheMiddleOfRegistering) {
  for (int steps = 0; steps < 20; ++steps) {
    Open();
    auto block = Add(64 * kMiB, kMiB, /*kept=*/steps % 2 == 1);
    block->AskAll();
    for (int i = 0; i < steps; ++i) cache->Step();
    if (steps % 3 == 0) block->Release();
    block.reset();
    auto again = Add(64 * kMiB, kMiB);
    again->AskAll();
    WaitForAll(again.get(), 64);
    again.reset();
    cache.reset();
    EXPECT_EQ(device.LiveMrs(), 0u);
    EXPECT_EQ(device.registrations, device.deregistrations);
  }
}

TEST_P(RegistrationTest, NothingTouchesTheMemoryAfterTheEnd) {
  RegistrationSettings settings;
  settings.prefault = true;
  for (int turn = 0; turn < 10; ++turn) {
    Open(settings);
    constexpr uint64_t kLength = 16 * kMiB;
    void* const memory = mmap(nullptr, kLength, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::atomic<bool> gone = false;
    std::atomic<int> late = 0;
    device.on_reg = [&] {
      if (gone) ++late;
    };
    auto block = cache->Open({.name = "ram",
                              .base = static_cast<std::byte*>(memory),
                              .length = kLength,
                              .chunk_size = kMiB,
                              .use = MemoryUse::kWrittenByPeer});
    ASSERT_TRUE(block.ok());
    (*block)->AskAll();
    for (int i = 0; i < turn; ++i) cache->Step();
    block->reset();
    gone = true;
    munmap(memory, kLength);
    cache.reset();
    EXPECT_EQ(late, 0);
    device.on_reg = nullptr;
  }
}

// The first touch of a page can cost more than sending it.
TEST_P(RegistrationTest, FaultsTheDestinationsMemoryInAhead) {
  RegistrationSettings settings;
  settings.prefault = true;
  Open(settings);
  constexpr uint64_t kLength = 4 * kMiB;
  void* const memory = mmap(nullptr, kLength, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto block = cache->Open({.name = "ram",
                            .base = static_cast<std::byte*>(memory),
                            .length = kLength,
                            .chunk_size = kMiB,
                            .use = MemoryUse::kWrittenByPeer});
  ASSERT_TRUE(block.ok());
  (*block)->AskAll();
  WaitForAll(block->get(), 4);
  std::vector<unsigned char> resident(kLength / 4096);
  ASSERT_EQ(mincore(memory, kLength, resident.data()), 0);
  EXPECT_THAT(resident, ::testing::Each(1));
  EXPECT_GT(cache->stats().prefault_ns, 0u);
  block->reset();
  munmap(memory, kLength);
}

// Rule 3: without threads a call does one system call of 64 MiB at most.
TEST(Registration, WithoutThreadsEachStepIsOneSliceAtMost) {
  EXPECT_EQ(RegistrationUnit(kGiB, 0, false), kMaxSlice);
  EXPECT_EQ(RegistrationUnit(kGiB, 1, false), kGiB);
  EXPECT_EQ(RegistrationUnit(kMiB, 0, false), kMiB);
  FakeDevice device;
  Host host;
  auto cache = RegistrationCache::Create(&device, device.pd(), &host, {});
  ASSERT_TRUE(cache.ok());
  RegistrationCache::Request request = {
      .name = "ram", .base = kBase, .length = kGiB, .chunk_size = kGiB};
  EXPECT_EQ(ErrorCode((*cache)->Open(request).status()), MIG_E_OPTION);
  request.chunk_size = RegistrationUnit(kGiB, 0, false);
  auto block = (*cache)->Open(request);
  ASSERT_TRUE(block.ok());
  EXPECT_FALSE((*cache)->HasWork());
  (*block)->AskAll();
  EXPECT_TRUE((*cache)->HasWork());
  uint64_t steps = 0;
  do {
    EXPECT_EQ(device.registrations, steps);
    ++steps;
  } while ((*cache)->Step());
  EXPECT_EQ(steps, kGiB / kMaxSlice);
  EXPECT_EQ(device.largest_registration, kMaxSlice);
  (*block)->Release();
  for (steps = 0; !(*block)->released(); ++steps) {
    EXPECT_EQ(device.deregistrations, steps);
    (*cache)->Step();
  }
  EXPECT_EQ(steps, kGiB / kMaxSlice);
}

// mig_host_services: the plugin's own threads block all signals; rule 5: the
// caller's mask stays as it was.
TEST(WorkerPool, BlocksAllSignalsInItsThreadsOnly) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<int> blocked = 0;
  WorkerPool pool;
  ASSERT_TRUE(pool.Start(3,
                         [&blocked](const std::stop_token&) {
                           sigset_t mask;
                           pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                           if (sigismember(&mask, SIGTERM) == 1 &&
                               sigismember(&mask, SIGUSR1) == 1) {
                             ++blocked;
                           }
                         })
                  .ok());
  pool.Join();
  EXPECT_EQ(blocked, 3);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

}  // namespace
}  // namespace mig::rdma
