// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <fstream>

#include "guest/trace_file.h"
#include "migrate.h"

namespace mig::sim {
namespace {

using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const std::vector<std::string> kBlocks = {"ram:1M", "vga:64K"};

std::string WriteTrace(const std::string& text) {
  static int number = 0;
  std::string path = testing::TempDir() + "/trace" + std::to_string(getpid()) +
                     "_" + std::to_string(++number);
  std::ofstream(path) << text;
  return path;
}

uint32_t VersionAt(const Guest& guest, uint64_t page) {
  return guest.workload->ExpectedVersions().value()[page];
}

class TraceParser : public testing::Test {
 protected:
  absl::StatusOr<std::vector<TraceEvent>> Parse(const std::string& text) {
    return ParseTrace("t", text, memory_);
  }
  GuestMemory memory_ = MakeMemory(kBlocks);
};

TEST_F(TraceParser, ReadsLinesCommentsAndHexadecimal) {
  const auto events = Parse(
                          "# head\n"
                          "0 ram 0 4096\n"
                          "\n"
                          "  10\tvga 0x1000   0X10 # tail\r\n"
                          "10 ram 1048575 1")
                          .value();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].time_ms, 10U);
  EXPECT_EQ(events[1].block, 1U);
  EXPECT_EQ(events[1].offset, 4096U);
  EXPECT_EQ(events[1].length, 16U);
  EXPECT_EQ(events[2].first_page(), 255U);
  EXPECT_EQ(events[2].pages(), 1U);
}

TEST_F(TraceParser, RefusesEverythingElseNamingTheLine) {
  const auto expect = [&](const std::string& text,
                          const std::vector<std::string>& parts) {
    ExpectError(Parse(text).status(), kInvalid, parts);
  };
  expect("0 ram 0 1\n0 ram 0", {"t:2", "3 fields"});
  expect("0 ram 0 1 1", {"t:1", "5 fields"});
  expect("#\n\nx ram 0 1", {"t:3", "'x'"});
  expect("0 ram -1 1", {"t:1", "'-1'"});
  expect("0 ram 0x 1", {"'0x'"});
  expect("0 ram 99999999999999999999 1", {"2^64"});
  expect("0 rom 0 1", {"t:1", "'rom'", "'ram'"});
  expect("5 ram 0 1\n4 ram 0 1", {"t:2", "4 ms", "5"});
  expect("0 ram 0 0", {"0 bytes"});
  expect("0 vga 65536 1", {"'vga'", "65536"});
  expect("0 vga 65535 2", {"inside"});
  expect("0 vga 1 18446744073709551615", {"inside"});
  expect("18446744073709551615 ram 0 1", {"out of order"});
  expect("# nothing\n", {"no writes"});
}

TEST(Trace, WritesThePagesOfEachLineAtItsTime) {
  int64_t now = 0;
  const std::string path = WriteTrace(
      "0 ram 0x10000 1\n"
      "100 ram 0x10fff 2\n"
      "100 vga 0 65536\n");
  Guest guest = MakeGuest(kBlocks, "trace:" + path + ",fill=none", 1,
                          [&now] { return now; });
  Steps(guest.workload.get(), 3);
  EXPECT_EQ(VersionAt(guest, 16), 1U);
  EXPECT_EQ(VersionAt(guest, 17), 0U);
  EXPECT_GT(guest.workload->DelayNs(), 0);
  now += 99'999'999;
  Steps(guest.workload.get(), 1);
  EXPECT_EQ(VersionAt(guest, 16), 1U);
  now += 1;
  EXPECT_EQ(guest.workload->DelayNs(), 0);
  EXPECT_FALSE(guest.workload->Done());
  Steps(guest.workload.get(), 5);
  EXPECT_EQ(VersionAt(guest, 16), 2U);
  EXPECT_EQ(VersionAt(guest, 17), 1U);
  for (uint64_t page = 256; page < 272; ++page) {
    EXPECT_EQ(VersionAt(guest, page), 1U);
  }
  EXPECT_TRUE(guest.workload->Done());
  MIG_EXPECT_OK(guest.workload->Verify());
}

TEST(Trace, GoesOnAtTheDestinationWithoutItsFile) {
  int64_t now = 0;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += std::to_string(i) + " ram " + std::to_string((8 + i) * 4096) +
            " 8192\n";
  }
  const std::string path = WriteTrace(text);
  const std::string spec = "trace:" + path + ",loop=2";
  const GuestClock clock = [&now] { return now; };
  Guest stayed = MakeGuest(kBlocks, spec, 4, clock);
  Guest source = MakeGuest(kBlocks, spec, 4, clock);
  std::remove(path.c_str());
  const auto run = [&](Guest* guest, int64_t until_ms) {
    for (; now < until_ms * 1'000'000; now += 1'000'000) {
      Steps(guest->workload.get(), 1);
    }
  };
  run(&stayed, 260);
  EXPECT_TRUE(stayed.workload->Done());
  now = 0;
  run(&source, 130);
  Guest target;
  target.memory = std::make_unique<GuestMemory>(MakeMemory(kBlocks));
  MigrateAndPoison(*source.memory, *target.memory);
  target.workload = AttachWorkload(target.memory.get(), clock).value();
  // How long the migration took is no guest time.
  now += 1'000'000'000;
  const int64_t resumed = now / 1'000'000;
  run(&target, resumed + 10);
  EXPECT_FALSE(target.workload->Done());
  run(&target, resumed + 160);
  EXPECT_TRUE(target.workload->Done());
  MIG_EXPECT_OK(target.workload->Verify());
  EXPECT_EQ(target.workload->ExpectedVersions().value(),
            stayed.workload->ExpectedVersions().value());
}

TEST(Trace, LeavesOutWhereItIsKeptItselfAndCounts) {
  const std::string path = WriteTrace("0 ram 0 16384\n");
  Guest guest = MakeGuest(kBlocks, "trace:" + path + ",fill=none");
  Steps(guest.workload.get(), 1);
  EXPECT_THAT(guest.workload->Summary(), HasSubstr("2 page writes left out"));
  EXPECT_EQ(VersionAt(guest, 2), 1U);
  MIG_EXPECT_OK(guest.workload->Attach());
}

TEST(Trace, RefusesFilesThatAreMissingBadOrTooLong) {
  GuestMemory memory = MakeMemory({"ram:16K"});
  const auto init = [&](const std::string& spec) {
    return MakeWorkload(spec, &memory, 1).value()->Init();
  };
  ExpectError(init("trace:/nowhere"), kInvalid, {"'/nowhere'", "No such file"});
  ExpectError(init("trace:" + WriteTrace("what\n")), kInvalid,
              {":1: 1 fields"});
  ExpectError(init("trace:/"), kInvalid, {"'/'", "directory"});
  std::string text;
  for (int i = 0; i < 400; ++i) text += "0 ram 0 1\n";
  ExpectError(init("trace:" + WriteTrace(text)), kInvalid,
              {"'ram' of 4 pages", "5 pages of state"});
  ExpectError(MakeWorkload("trace", &memory, 1).status(), kInvalid, {"FILE"});
}

TEST(Trace, RefusesDamagedStateAtTheDestination) {
  const std::string path = WriteTrace("0 ram 0x8000 1\n5 ram 0x8000 1\n");
  for (uint64_t offset = 0; offset < kPageSize + 64; offset += 8) {
    const Guest guest = MakeGuest(kBlocks, "trace:" + path + ",fill=none");
    memset(guest.memory->blocks()[0].base + offset, 0xff, 8);
    auto workload = AttachWorkload(guest.memory.get());
    if (workload.ok()) {
      Steps(workload->get(), 1);
    } else {
      EXPECT_EQ(workload.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace mig::sim
