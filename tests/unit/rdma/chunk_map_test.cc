// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/chunk_map.h"

#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "null_verbs.h"
#include "rdma/aside_queue.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Nothing here touches memory.
std::byte* const kBase = At(uint64_t{1} << 40);

std::unique_ptr<ChunkMap> Make(uint64_t length, uint64_t chunk,
                               uint32_t rails = 1) {
  auto map = ChunkMap::Create(7, kBase, length, chunk, rails);
  EXPECT_TRUE(map.ok()) << map.status();
  return *std::move(map);
}

TEST(ChunkMap, CutsBlocksOfEverySizeIntoChunksOfEverySize) {
  for (const uint64_t chunk : {kMiB, 32 * kMiB, kGiB}) {
    for (const uint64_t length : {uint64_t{4096}, chunk - 4096, chunk,
                                  chunk + 4096, 5 * kGiB, 5 * kGiB + 4096}) {
      const auto map = Make(length, chunk);
      uint64_t sum = 0;
      for (uint32_t i = 0; i < map->count(); ++i) {
        EXPECT_EQ(map->OffsetOf(i), sum);
        EXPECT_EQ(map->IndexOf(sum), i);
        sum += map->LengthOf(i);
        EXPECT_EQ(map->IndexOf(sum - 1), i);
      }
      EXPECT_EQ(sum, length);
      EXPECT_EQ(map->Cut(0, length), std::min(length, chunk));
    }
  }
}

// C13 (H5): nothing is 32 bits wide.
TEST(ChunkMap, CutsPastTwoAndFourGiB) {
  const auto map = Make(9 * kGiB, kGiB);
  EXPECT_EQ(map->IndexOf(2 * kGiB), 2u);
  EXPECT_EQ(map->IndexOf(4 * kGiB + 5), 4u);
  EXPECT_EQ(map->Cut(4 * kGiB + 4096, 5 * kGiB - 4096), kGiB - 4096);
  EXPECT_EQ(map->OffsetOf(8), 8 * kGiB);
}

TEST(ChunkMap, RefusesChunkSizesThatAreNoPowerOfTwoInTheRange) {
  for (const uint64_t chunk :
       {uint64_t{0}, kMiB / 2, 3 * kMiB, 2 * kGiB, UINT64_MAX}) {
    const auto map = ChunkMap::Create(7, kBase, kGiB, chunk);
    EXPECT_EQ(ErrorCode(map.status()), MIG_E_OPTION) << chunk;
    EXPECT_THAT(std::string(map.status().message()),
                HasSubstr(std::to_string(chunk)));
  }
}

TEST(ChunkMap, RefusesATableThatWouldNotFit) {
  const auto map = ChunkMap::Create(7, kBase, uint64_t{1} << 62, kMiB);
  EXPECT_EQ(ErrorCode(map.status()), MIG_E_LIMIT);
  EXPECT_THAT(std::string(map.status().message()), HasSubstr("chunk-size"));
}

TEST(ChunkMap, ZeroIsAKeyLikeAnyOther) {
  const auto map = Make(4 * kMiB, kMiB);
  EXPECT_EQ(map->RemoteState(2), KeyState::kUnknown);
  EXPECT_TRUE(map->AskRemote(2));
  EXPECT_FALSE(map->AskRemote(2));
  EXPECT_EQ(map->RemoteState(2), KeyState::kAsked);
  EXPECT_FALSE(*map->SetRemote(2, 0, 0));
  EXPECT_EQ(map->RemoteState(2), KeyState::kReady);
  EXPECT_FALSE(map->Ready(2));
  EXPECT_TRUE(*map->SetLocal(2, 0, 0));
  EXPECT_TRUE(map->Ready(2));
  EXPECT_EQ(map->rkey(2), 0u);
  EXPECT_EQ(map->unready(), 3u);
}

TEST(ChunkMap, IsReadyWhenTheKeysOfAllRailsAreHere) {
  const auto map = Make(2 * kMiB, kMiB, 2);
  EXPECT_FALSE(*map->SetLocal(1, 0, 10));
  EXPECT_FALSE(*map->SetRemote(1, 0, 20));
  EXPECT_FALSE(*map->SetRemote(1, 1, 21));
  EXPECT_TRUE(map->Unasked(1));
  EXPECT_TRUE(*map->SetLocal(1, 1, 11));
  EXPECT_FALSE(map->Unasked(1));
  EXPECT_EQ(map->lkey(1, 1), 11u);
  EXPECT_EQ(map->rkey(1, 0), 20u);
}

// C29 (H6)
TEST(ChunkMap, RefusesKeysOfThePeerThatCanNotBe) {
  const auto map = Make(4 * kMiB, kMiB);
  EXPECT_EQ(ErrorCode(map->SetRemote(4, 0, 1).status()), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(ErrorCode(map->SetRemote(uint64_t{1} << 32, 0, 1).status()),
            MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(ErrorCode(map->SetRemote(0, 1, 1).status()), MIG_E_PEER_PROTOCOL);
  EXPECT_TRUE(map->SetRemote(0, 0, 1).ok());
  EXPECT_EQ(ErrorCode(map->SetRemote(0, 0, 1).status()), MIG_E_PEER_PROTOCOL);
  EXPECT_EQ(ErrorCode(map->SetRemoteBase(UINT64_MAX - kMiB)),
            MIG_E_PEER_PROTOCOL);
}

TEST(AsideQueue, KeepsTheOrderOfAChunkAndTakesNoMoreThanItsPool) {
  const auto map = Make(4 * kMiB, kMiB);
  AsideQueue aside(3);
  EXPECT_TRUE(aside.Push({map.get(), 0, 4096}));
  EXPECT_TRUE(aside.Push({map.get(), 2 * kMiB, 4096}));
  EXPECT_TRUE(aside.Push({map.get(), 8192, 4096}));
  EXPECT_FALSE(aside.Push({map.get(), 16384, 4096}));
  EXPECT_TRUE(aside.Push({map.get(), 12288, 4096}));  // lengthens the last
  EXPECT_EQ(map->aside, 3u);
  EXPECT_FALSE(aside.HasReady());
  aside.ChunkReady(map.get(), 0);
  ASSERT_TRUE(aside.HasReady());
  EXPECT_EQ(aside.Front().offset, 0u);
  aside.PopFront();
  EXPECT_EQ(aside.Front().offset, 8192u);
  EXPECT_EQ(aside.Front().length, 8192u);
  aside.PopFront();
  EXPECT_FALSE(aside.HasReady());
  EXPECT_EQ(aside.free(), 2u);
  EXPECT_EQ(map->aside, 1u);
  aside.ChunkReady(map.get(), 2);
  aside.PopFront();
  EXPECT_EQ(aside.size(), 0u);
  EXPECT_EQ(aside.peak(), 3u);
}

}  // namespace
}  // namespace mig::rdma
