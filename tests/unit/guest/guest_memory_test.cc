// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/guest_memory.h"

#include <cstring>
#include <fstream>
#include <utility>

#include "test_util.h"

namespace mig::sim {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string WriteFile(const std::string& name, const std::string& contents) {
  std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

absl::Status CreateStatus(const std::string& text) {
  absl::StatusOr<BlockSpec> spec = ParseBlockSpec(text);
  if (!spec.ok()) return spec.status();
  return GuestMemory::Create({*spec}).status();
}

bool AllZero(const GuestBlock& block) {
  return *block.base == std::byte{0} &&
         memcmp(block.base, block.base + 1, block.length - 1) == 0;
}

TEST(BlockSpec, ReadsNameSizeAndBacking) {
  const BlockSpec spec = ParseBlockSpec("vga.0:8M,backing=memfd").value();
  EXPECT_EQ(spec.name, "vga.0");
  EXPECT_EQ(spec.size, uint64_t{8} << 20);
  EXPECT_EQ(spec.backing, Backing::kMemfd);
  const BlockSpec file = ParseBlockSpec("rom,backing=file:/a,b:c").value();
  EXPECT_EQ(file.path, "/a,b:c");
  EXPECT_FALSE(file.size.has_value());
}

TEST(BlockSpec, RefusesBadTextInOneLineWithTheRemedy) {
  ExpectError(ParseBlockSpec("").status(), kInvalid, {"no block name"});
  ExpectError(ParseBlockSpec("a b:1M").status(), kInvalid, {"'a b'", "ram:"});
  ExpectError(ParseBlockSpec("ram").status(), kInvalid, {"no size", "256M"});
  ExpectError(ParseBlockSpec("ram:x").status(), kInvalid, {"'x'"});
  ExpectError(ParseBlockSpec("ram:1M,huge").status(), kInvalid,
              {"'huge'", "backing="});
  ExpectError(ParseBlockSpec("ram:1M,backing=disk").status(), kInvalid,
              {"'disk'", "memfd"});
  ExpectError(ParseBlockSpec("ram:1M,backing=file:").status(), kInvalid,
              {"file:PATH"});
}

TEST(GuestMemory, RefusesSizesThatAreNoMultipleOfThePage) {
  ExpectError(CreateStatus("ram:5000"), kInvalid,
              {"'ram'", "5000", "4096", "8192"});
  ExpectError(CreateStatus("ram:0"), kInvalid, {"out of range"});
  ExpectError(CreateStatus("ram:1000000T"), kInvalid, {"out of range", "64T"});
  ExpectError(CreateStatus("ram:1M,backing=hugetlb"), kInvalid, {"2097152"});
}

TEST(GuestMemory, RefusesTwoBlocksOfOneNameAndNoBlocks) {
  const BlockSpec spec = ParseBlockSpec("ram:1M").value();
  ExpectError(GuestMemory::Create({spec, spec}).status(), kInvalid,
              {"'ram'", "twice"});
  ExpectError(GuestMemory::Create({}).status(), kInvalid, {"at least one"});
}

TEST(GuestMemory, HugePagesWorkOrSayHowManyAreMissing) {
  const absl::Status status = CreateStatus("ram:64G,backing=hugetlb");
  if (status.ok()) GTEST_SKIP() << "64 GiB of huge pages are free here";
  ExpectError(status, absl::StatusCode::kResourceExhausted,
              {"32768 huge pages", "vm.nr_hugepages", "backing=anon"});
}

TEST(GuestMemory, BlocksAreZeroFoundByNameAndKeepTheirAddressWhenMoved) {
  GuestMemory memory = MakeMemory({"ram:1M", "rom:64K,backing=memfd"});
  EXPECT_EQ(memory.total_pages(), 272U);
  EXPECT_EQ(memory.total_bytes(), 272U * kPageSize);
  const GuestBlock rom = *memory.FindBlock("rom");
  EXPECT_EQ(rom.id, 1U);
  EXPECT_GE(rom.fd, 0);
  EXPECT_EQ(memory.FindBlock("vga"), nullptr);
  for (const GuestBlock& block : memory.blocks()) EXPECT_TRUE(AllZero(block));
  rom.base[5] = std::byte{9};
  const GuestMemory moved = std::move(memory);
  EXPECT_EQ(moved.FindBlock("rom")->base, rom.base);
  EXPECT_EQ(rom.base[5], std::byte{9});
}

TEST(GuestMemory, ZeroForgetsEverythingWrittenInEveryBacking) {
  GuestMemory memory = MakeMemory({"a:1M", "b:1M,backing=memfd"});
  for (const GuestBlock& block : memory.blocks()) {
    memset(block.base, 7, block.length);
  }
  MIG_ASSERT_OK(memory.Zero());
  for (const GuestBlock& block : memory.blocks()) EXPECT_TRUE(AllZero(block));
}

TEST(GuestMemory, PrefaultKeepsContentsAndMakesPagesResident) {
  GuestMemory memory = MakeMemory({"ram:64M"});
  memory.blocks()[0].base[12345] = std::byte{42};
  const long before = ResidentKib();
  MIG_ASSERT_OK(memory.Prefault(2));
  EXPECT_GT(ResidentKib() - before, 60 * 1024);
  EXPECT_EQ(memory.blocks()[0].base[12345], std::byte{42});
}

TEST(GuestMemory, FileImageIsTheFirstContentsAndStaysUnchanged) {
  std::string image(5000, 'x');
  image[4999] = 'y';
  const std::string path = WriteFile("image", image);
  const GuestMemory memory = MakeMemory({"rom,backing=file:" + path});
  const GuestBlock& block = memory.blocks()[0];
  EXPECT_EQ(block.length, 8192U);
  EXPECT_EQ(memcmp(block.base, image.data(), image.size()), 0);
  EXPECT_EQ(block.base[5000], std::byte{0});
  block.base[0] = std::byte{'z'};
  std::ifstream file(path);
  EXPECT_EQ(file.get(), 'x');
}

TEST(GuestMemory, SizeBelowTheFilesTakesItsBeginning) {
  const std::string path = WriteFile("long", std::string(9000, 'q'));
  const GuestMemory memory = MakeMemory({"rom:4K,backing=file:" + path});
  EXPECT_EQ(memory.blocks()[0].length, 4096U);
  EXPECT_EQ(memory.blocks()[0].base[4095], std::byte{'q'});
}

TEST(GuestMemory, RefusesFilesThatAreMissingShortEmptyOrNoFiles) {
  const std::string path = WriteFile("short", "abc");
  ExpectError(CreateStatus("rom:8K,backing=file:" + path), kInvalid,
              {path, "3 bytes", "8192"});
  ExpectError(CreateStatus("rom,backing=file:/nowhere"), kInvalid,
              {"'/nowhere'", "No such file"});
  ExpectError(CreateStatus("rom,backing=file:/dev/zero"), kInvalid,
              {"not a regular file"});
  ExpectError(CreateStatus("rom,backing=file:" + WriteFile("none", "")),
              kInvalid, {"0 bytes"});
}

// C13.
TEST(GuestMemory, SparseFiveGiBCostsNothingAndReachesPastFourGiB) {
  for (const char* backing : {"anon", "memfd"}) {
    const long before = ResidentKib();
    const GuestMemory memory =
        MakeMemory({std::string("ram:5G,backing=") + backing});
    const GuestBlock& block = memory.blocks()[0];
    EXPECT_EQ(block.length, 5 * kGiB);
    for (const uint64_t edge : {2 * kGiB, 4 * kGiB}) {
      block.base[edge - 1] = std::byte{1};
      block.base[edge] = std::byte{2};
    }
    EXPECT_EQ(block.base[0], std::byte{0});
    EXPECT_EQ(block.base[4 * kGiB - 1], std::byte{1});
    EXPECT_LT(ResidentKib() - before, 16 * 1024);
  }
}

}  // namespace
}  // namespace mig::sim
