// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/digest.h"

#include <cstring>
#include <fstream>
#include <random>

#include "guest/dirty_tracker.h"
#include "test_util.h"

namespace mig::sim {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr uint64_t kGiB = uint64_t{1} << 30;

GuestMemory Filled(const std::vector<std::string>& texts) {
  GuestMemory memory = MakeMemory(texts);
  std::mt19937_64 random(3);
  for (const GuestBlock& block : memory.blocks()) {
    auto* words = reinterpret_cast<uint64_t*>(block.base);
    for (uint64_t i = 0; i < block.length / 8; ++i) words[i] = random();
  }
  return memory;
}

TEST(Digest, LocatesASingleFlippedBit) {
  const std::vector<std::string> texts = {"ram:5M", "rom:64K"};
  const GuestMemory ours = Filled(texts);
  const GuestMemory theirs = Filled(texts);
  const DigestTable before = ComputeDigests(ours);
  EXPECT_TRUE(CompareDigests(before, ComputeDigests(theirs)).value().empty());

  // The last byte of the last, short region, and one in the other block.
  theirs.blocks()[0].base[5 * 1024 * 1024 - 1] ^= std::byte{0x80};
  theirs.blocks()[1].base[3 * kPageSize] ^= std::byte{1};
  const std::vector<Region> regions =
      CompareDigests(before, ComputeDigests(theirs)).value();
  EXPECT_EQ(regions, (std::vector<Region>{{"ram", 4 << 20, 1 << 20},
                                          {"rom", 0, 64 << 10}}));
  std::vector<std::string> lines;
  lines.reserve(regions.size());
  for (const Region& region : regions) {
    lines.push_back(DescribePageMismatches(region,
                                           PageHashes(ours, region).value(),
                                           PageHashes(theirs, region).value()));
  }
  EXPECT_EQ(lines[0],
            "block 'ram': 1 of 256 pages differ: page 1279 (offset 0x4ff000)");
  EXPECT_EQ(lines[1],
            "block 'rom': 1 of 16 pages differ: page 3 (offset 0x3000)");
}

TEST(Digest, FindsTwoPagesThatChangedPlaces) {
  const GuestMemory ours = Filled({"ram:2M"});
  const GuestMemory theirs = Filled({"ram:2M"});
  std::byte* base = theirs.blocks()[0].base;
  std::vector<std::byte> saved(base, base + kPageSize);
  memcpy(base, base + kPageSize, kPageSize);
  memcpy(base + kPageSize, saved.data(), kPageSize);
  EXPECT_EQ(CompareDigests(ComputeDigests(ours), ComputeDigests(theirs))
                .value()
                .size(),
            1U);
}

TEST(Digest, IsOfContentsNotOfWhichPagesArePresentNorOfTheBacking) {
  const GuestMemory sparse = MakeMemory({"ram:3M"});
  const GuestMemory zeroed = MakeMemory({"ram:3M"});
  const GuestMemory shared = MakeMemory({"ram:3M,backing=memfd"});
  memset(zeroed.blocks()[0].base, 0, zeroed.blocks()[0].length);
  for (const GuestMemory* memory : {&sparse, &zeroed, &shared}) {
    memory->blocks()[0].base[kRegionSize - 1] = std::byte{5};
  }
  const DigestTable table = ComputeDigests(sparse);
  EXPECT_TRUE(CompareDigests(table, ComputeDigests(zeroed)).value().empty());
  EXPECT_TRUE(CompareDigests(table, ComputeDigests(shared)).value().empty());
  EXPECT_NE(table.blocks[0].regions[0], table.blocks[0].regions[1]);
}

// C13.
TEST(Digest, OfSparseFiveGiBTouchesNoPageAndSeesPastFourGiB) {
  for (const char* backing : {"anon", "memfd"}) {
    const std::string text = std::string("ram:5G,backing=") + backing;
    const GuestMemory ours = MakeMemory({text});
    const GuestMemory theirs = MakeMemory({text});
    for (const GuestMemory* memory : {&ours, &theirs}) {
      memory->blocks()[0].base[2 * kGiB] = std::byte{1};
    }
    theirs.blocks()[0].base[4 * kGiB + kRegionSize] = std::byte{1};
    const long before = ResidentKib();
    const std::vector<Region> regions =
        CompareDigests(ComputeDigests(ours), ComputeDigests(theirs)).value();
    EXPECT_LT(ResidentKib() - before, UnderSanitizer() ? 1 << 20 : 16 * 1024);
    EXPECT_EQ(
        regions,
        (std::vector<Region>{{"ram", 4 * kGiB + kRegionSize, kRegionSize}}));
  }
}

TEST(Digest, OfASparseGuestThatIsTrackedTouchesNoPage) {
  std::ifstream swaps("/proc/swaps");
  std::string line;
  if (std::getline(swaps, line) && std::getline(swaps, line)) {
    GTEST_SKIP() << "needs a machine without swap, or tracking off";
  }
  const GuestMemory memory = MakeMemory({"ram:512M"});
  memory.blocks()[0].base[0] = std::byte{1};
  const DigestTable before = ComputeDigests(memory);
  auto tracker = MakeDirtyTracker("auto", &memory).value().tracker;
  MIG_ASSERT_OK(tracker->Start());
  const long resident = ResidentKib();
  EXPECT_TRUE(CompareDigests(before, ComputeDigests(memory)).value().empty());
  EXPECT_LT(ResidentKib() - resident, 16 * 1024);
}

// As after the kernel reclaimed a page table, or another process wrote.
TEST(Digest, SeesPagesOfAMemfdThatAreNotMappedHere) {
  const GuestMemory empty = MakeMemory({"ram:4M,backing=memfd"});
  const GuestMemory memory = MakeMemory({"ram:4M,backing=memfd"});
  ASSERT_EQ(pwrite(memory.blocks()[0].fd, "x", 1, 3 << 20), 1);
  EXPECT_EQ(CompareDigests(ComputeDigests(empty), ComputeDigests(memory))
                .value()
                .size(),
            1U);
}

TEST(Digest, RefusesToCompareDifferentLayoutsNamingBoth) {
  const auto table = [](const std::vector<std::string>& texts) {
    return ComputeDigests(MakeMemory(texts));
  };
  ExpectError(CompareDigests(table({"a:1M"}), table({"a:2M"})).status(),
              kInvalid, {"1048576", "2097152"});
  ExpectError(CompareDigests(table({"a:1M"}), table({"b:1M"})).status(),
              kInvalid, {"'a'", "'b'"});
  ExpectError(CompareDigests(table({"a:1M"}), table({"a:1M", "b:1M"})).status(),
              kInvalid, {"1 blocks here", "2 there"});
}

TEST(Digest, ParseReadsWhatSerializeWroteAndNothingElse) {
  const DigestTable table = ComputeDigests(Filled({"ram:5M", "rom:64K"}));
  const std::string bytes = SerializeDigests(table);
  const DigestTable parsed = ParseDigests(bytes).value();
  EXPECT_TRUE(CompareDigests(table, parsed).value().empty());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(ParseDigests(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseDigests(bytes + "x").ok());
  // Counts and lengths that promise more than there is.
  for (size_t at = 8; at < 43; ++at) {
    std::string damaged = bytes;
    damaged[at] = '\xff';
    (void)ParseDigests(damaged);
  }
}

TEST(Digest, PageHashesRefuseRegionsOutsideTheMemory) {
  const GuestMemory memory = MakeMemory({"ram:1M"});
  for (const Region& region :
       std::vector<Region>{{"rom", 0, 4096},
                           {"ram", 1 << 20, 4096},
                           {"ram", 4096, ~uint64_t{0} - 4095},
                           {"ram", 1, 4096}}) {
    EXPECT_EQ(PageHashes(memory, region).status().code(),
              absl::StatusCode::kOutOfRange);
  }
}

}  // namespace
}  // namespace mig::sim
