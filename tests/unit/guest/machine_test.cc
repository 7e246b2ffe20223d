// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/machine.h"

#include <set>

#include "migrate.h"

namespace mig::sim {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kBlocks = {"ram:1M", "vga:64K,backing=memfd"};

TEST(Machine, CanBeStoppedBetweenAnyTwoInstructions) {
  std::vector<std::byte> whole(16 * kPageSize);
  std::vector<std::byte> halted(16 * kPageSize);
  Machine a(whole.data(), whole.size());
  Machine b(halted.data(), halted.size());
  a.Boot(3);
  b.Boot(3);
  MIG_ASSERT_OK(a.Run(600, nullptr));
  for (int i = 0; i < 600; ++i) {
    // What is not in its memory is lost between instructions.
    std::vector<std::byte> moved = halted;
    Machine next(moved.data(), moved.size());
    MIG_ASSERT_OK(next.Run(1, nullptr));
    halted = moved;
  }
  EXPECT_EQ(a.executed(), 600U);
  EXPECT_TRUE(whole == halted);
}

TEST(Machine, ScattersItsWritesOverAllOfItsData) {
  std::vector<std::byte> memory(66 * kPageSize);
  Machine machine(memory.data(), memory.size());
  machine.Boot(1);
  std::set<uint64_t> pages;
  MIG_ASSERT_OK(machine.Run(50'000, [&](uint64_t offset, uint64_t) {
    pages.insert(offset / kPageSize);
  }));
  // 64 of data and the registers.
  EXPECT_EQ(pages.size(), 65U);
}

TEST(Machine, StopsAtAnInstructionThatDoesNotExist) {
  std::vector<std::byte> memory(3 * kPageSize);
  Machine machine(memory.data(), memory.size());
  machine.Boot(1);
  MIG_ASSERT_OK(machine.Run(100, nullptr));
  memset(memory.data() + kPageSize, 0x77, kPageSize);
  ExpectError(machine.Run(5, nullptr), absl::StatusCode::kDataLoss,
              {"opcode 119", "after 100"});
  EXPECT_EQ(machine.executed(), 100U);
}

TEST(MachineWorkload, EqualsARunThatWasNeverMovedBitForBit) {
  const std::string spec = "machine:instructions=100003,step=997";
  Guest stayed = MakeGuest(kBlocks, spec, 9);
  Guest source = MakeGuest(kBlocks, spec, 9);
  while (!stayed.workload->Done()) Steps(stayed.workload.get(), 1);
  Steps(source.workload.get(), 41);
  MIG_EXPECT_OK(source.workload->Verify());
  Guest target = Migrate(source, kBlocks);
  ASSERT_NE(target.workload, nullptr);
  MIG_EXPECT_OK(target.workload->Verify());
  while (!target.workload->Done()) Steps(target.workload.get(), 1);
  MIG_EXPECT_OK(target.workload->Verify());
  EXPECT_TRUE(SameMemory(*target.memory, *stayed.memory));
  EXPECT_THAT(target.workload->Summary(), HasSubstr("100003 of 100003"));
  // Nothing is left to do.
  Steps(target.workload.get(), 3);
  EXPECT_TRUE(SameMemory(*target.memory, *stayed.memory));
}

TEST(MachineWorkload, SeesAnyFlippedBitAndSaysWhere) {
  Guest guest = MakeGuest({"ram:64K"}, "machine:instructions=5000");
  Steps(guest.workload.get(), 3);
  std::byte* base = guest.memory->blocks()[0].base;
  const auto flipped = [&](uint64_t offset) {
    base[offset] ^= std::byte{0x10};
    absl::Status status = guest.workload->Verify();
    base[offset] ^= std::byte{0x10};
    return status;
  };
  ExpectError(flipped(kPageSize + 8), absl::StatusCode::kDataLoss,
              {"'ram', page 1 (offset 0x1008)", "registers"});
  ExpectError(flipped(2 * kPageSize + 4095), absl::StatusCode::kDataLoss,
              {"page 2 (offset 0x2fff)", "program"});
  ExpectError(flipped(16 * kPageSize - 1), absl::StatusCode::kDataLoss,
              {"page 15 (offset 0xffff)", "data"});
  MIG_EXPECT_OK(guest.workload->Verify());
}

TEST(MachineWorkload, NeverCrashesOnDamagedRegistersOrProgram) {
  const std::string spec = "machine:instructions=5000";
  for (uint64_t offset = kPageSize; offset < 3 * kPageSize; offset += 8) {
    if (offset == kPageSize + 160) offset = 2 * kPageSize;
    if (offset == 2 * kPageSize + 200) break;
    Guest guest = MakeGuest({"ram:64K"}, spec);
    memset(guest.memory->blocks()[0].base + offset, 0xff, 8);
    if (!guest.workload->Attach().ok()) continue;
    (void)guest.workload->Step();
    (void)guest.workload->Verify();
  }
}

TEST(MachineWorkload, ReportsWhatItWrites) {
  Guest guest = MakeGuest({"ram:1M"}, "machine:instructions=5000");
  const GuestBlock& block = guest.memory->blocks()[0];
  struct Log : WriteObserver {
    void OnWrite(uint32_t, uint64_t offset, uint64_t length) override {
      for (uint64_t i = offset / kPageSize;
           i <= (offset + length - 1) / kPageSize; ++i) {
        pages.insert(i);
      }
    }
    std::set<uint64_t> pages;
  } log;
  const std::vector<std::byte> before(block.base, block.base + block.length);
  guest.workload->set_observer(&log);
  Steps(guest.workload.get(), 2);
  for (uint64_t page = 0; page < block.pages(); ++page) {
    const bool changed = memcmp(before.data() + page * kPageSize,
                                block.base + page * kPageSize, kPageSize) != 0;
    EXPECT_TRUE(!changed || log.pages.contains(page)) << page;
  }
  EXPECT_LT(log.pages.size(), 60U);
}

TEST(MachineWorkload, RefusesWhatItHasNoRoomFor) {
  GuestMemory memory = MakeMemory({"ram:64K"});
  const auto init = [&](const std::string& spec) {
    return MakeWorkload(spec, &memory, 1).value()->Init();
  };
  ExpectError(init("machine:memory=64K"), absl::StatusCode::kInvalidArgument,
              {"65536", "61440", "12288"});
  ExpectError(init("machine:memory=8K"), absl::StatusCode::kInvalidArgument,
              {"8192", "12288"});
  MIG_EXPECT_OK(init("machine:memory=60K"));
}

}  // namespace
}  // namespace mig::sim
