// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Writer and reader back to back over an unkind stream.
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tcp/frame_reader.h"
#include "tcp/frame_writer.h"
#include "unkind_stream.h"

namespace mig::tcp {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBudget = 1u << 20;

// Notes frames, and plans data into its own copy of the memory.
class Sink final : public FrameHandler {
 public:
  explicit Sink(size_t size) : memory(size, std::byte{0}) {}
  absl::StatusOr<uint32_t> PayloadLimit(FrameType type) override {
    return tcp::PayloadLimit(type, 1u << 20);
  }
  absl::Status OnFrame(const FrameHeader& header,
                       std::vector<uint8_t>* payload) override {
    log.push_back(absl::StrCat(static_cast<int>(header.type), ":",
                               header.argument, ":", payload->size()));
    last = *payload;
    return result;
  }
  absl::Status OnData(const FrameHeader& header,
                      std::span<const uint8_t> ranges,
                      DataPlan* plan) override {
    log.push_back(absl::StrCat("data:", header.argument));
    batches.push_back(ranges.size() / kWireRangeSize);
    for (size_t at = 0; at < ranges.size(); at += kWireRangeSize) {
      const WireRange range =
          DecodeRange(std::span<const uint8_t, kWireRangeSize>(
              ranges.data() + at, kWireRangeSize));
      if (range.flags == MIG_RANGE_ZERO) {
        zero_bytes += range.length;
        continue;
      }
      plan->fill.push_back({memory.data() + range.offset, range.length});
    }
    return absl::OkStatus();
  }
  std::vector<std::byte> memory;
  std::vector<std::string> log;
  std::vector<size_t> batches;
  std::vector<uint8_t> last;
  uint64_t zero_bytes = 0;
  absl::Status result;
};

class StreamTest : public ::testing::Test {
 protected:
  explicit StreamTest(size_t pages = 64) : guest(pages * kPage), sink(0) {
    uint32_t state = 1;
    for (std::byte& byte : guest) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<std::byte>(state >> 24);
    }
    block.id = 7;
    block.base = guest.data();
    block.length = guest.size();
    block.page_size = kPage;
    block.page_shift = 12;
    sink = Sink(guest.size());
    writer.EnableData(4);
  }
  uint64_t Append(uint64_t page, uint64_t pages, bool zero = false) {
    return writer.Append(1, block, page * kPage, pages * kPage, zero);
  }
  // Until everything has arrived.
  void Carry(UnkindStream* stream) {
    for (int i = 0;
         i < 10'000'000 && !(writer.empty() && stream->bytes.empty()); ++i) {
      bool blocked = false;
      ASSERT_TRUE(writer.Pump(stream, &blocked).ok());
      const auto outcome = reader.Pump(stream, &sink, kBudget);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
    }
    EXPECT_TRUE(reader.between_frames());
  }
  void FlushWriter(UnkindStream* stream) {
    bool blocked = false;
    ASSERT_TRUE(writer.Pump(stream, &blocked).ok());
  }

  std::vector<std::byte> guest;
  Block block;
  FrameWriter writer;
  FrameReader reader;
  Sink sink;
};

TEST_F(StreamTest, C28EveryByteArrivesInOrderHoweverLittleMoves) {
  const UnkindStream::Appetite kAppetites[] = {
      UnkindStream::Always(1), UnkindStream::Always(4099),
      UnkindStream::Random(1, 40), UnkindStream::Random(2, 5000),
      UnkindStream::Random(3, 100000)};
  const std::vector<uint8_t> text(300, 'x');
  for (const auto& appetite : kAppetites) {
    sink = Sink(guest.size());
    UnkindStream stream(appetite);
    for (uint64_t page = 0; page < 64; page += 2) Append(page, 1);
    writer.Seal();
    writer.Queue({.type = FrameType::kMessage, .argument = 5}, text);
    Append(1, 3);
    Append(40, 2, /*zero=*/true);
    writer.Seal();
    writer.Queue({.type = FrameType::kHeartbeat}, {});
    Carry(&stream);
    EXPECT_EQ(sink.log, (std::vector<std::string>{"data:1", "8:5:300", "data:1",
                                                  "10:0:0"}));
    EXPECT_EQ(sink.zero_bytes, 2 * kPage);
    for (uint64_t page = 0; page < 64; ++page) {
      const bool sent = page % 2 == 0 || page <= 3;
      EXPECT_EQ(
          std::equal(guest.begin() + static_cast<long>(page * kPage),
                     guest.begin() + static_cast<long>((page + 1) * kPage),
                     sink.memory.begin() + static_cast<long>(page * kPage)),
          sent)
          << page;
    }
  }
}

TEST_F(StreamTest, AdjacentRangesOfOneKindMerge) {
  Append(0, 2);
  Append(2, 1);         // merges
  Append(3, 1, true);   // another kind
  Append(4, 2, true);   // merges
  Append(10, 1, true);  // a gap
  Append(11, 1);        // another kind
  writer.Seal();
  UnkindStream stream(UnkindStream::Always(1 << 20));
  Carry(&stream);
  EXPECT_EQ(sink.batches, std::vector<size_t>{4});
  EXPECT_EQ(writer.counts().merged, 2u);
  EXPECT_EQ(writer.counts().ranges, 4u);
  EXPECT_EQ(writer.counts().data_bytes, 4 * kPage);
  EXPECT_EQ(reader.counts().data_bytes, 4 * kPage);
}

class LargeStreamTest : public StreamTest {
 protected:
  LargeStreamTest() : StreamTest(6144) {}  // 24 MiB
};

TEST_F(LargeStreamTest, ABatchIsBoundedInRangesAndBytes) {
  size_t taken = 0;
  for (uint64_t page = 0; page < 2 * 513; page += 2) taken += Append(page, 1);
  EXPECT_EQ(taken, 513 * kPage);
  EXPECT_EQ(writer.RangeRoom(), 4 * kMaxBatchRanges - 513);
  writer.Seal();
  UnkindStream stream(UnkindStream::Always(1 << 30));
  Carry(&stream);
  EXPECT_EQ(sink.batches, (std::vector<size_t>{512, 1}));
  sink.batches.clear();
  // 24 MiB in four slots of 4 MiB: partial, in whole pages.
  uint64_t page = 0;
  while (const uint64_t step = Append(page, 6144 - page)) page += step / kPage;
  EXPECT_EQ(page, 4096u);
  EXPECT_EQ(writer.RangeRoom(), 0u);
  EXPECT_FALSE(writer.has_open_batch());
  Carry(&stream);
  EXPECT_EQ(sink.batches.size(), 4u);
  EXPECT_TRUE(std::equal(guest.begin(), guest.begin() + (16 << 20),
                         sink.memory.begin()));
}

TEST_F(LargeStreamTest, APageLargerThanABatchIsOneOfItsOwn) {
  block.page_size = 8u << 20;
  block.page_shift = 23;
  EXPECT_EQ(writer.Append(1, block, 0, 8u << 20, false), 8u << 20);
  EXPECT_EQ(writer.Append(1, block, 8u << 20, 16u << 20, false), 8u << 20);
  UnkindStream stream(UnkindStream::Random(4, 1 << 20));
  Carry(&stream);
  EXPECT_EQ(sink.batches, (std::vector<size_t>{1, 1}));
  EXPECT_TRUE(std::equal(guest.begin(), guest.begin() + (16 << 20),
                         sink.memory.begin()));
}

TEST_F(StreamTest, NoCallPassesMorePiecesThanTheSystemTakes) {
  for (int frame = 0; frame < 5000; ++frame) {
    writer.Queue({.type = FrameType::kHeartbeat}, {});
  }
  UnkindStream stream(UnkindStream::Always(1 << 20));
  Carry(&stream);
  EXPECT_LE(stream.most_pieces, 1024u);
  EXPECT_EQ(sink.log.size(), 5000u);
}

// What decides between ERROR and IN_DOUBT.
TEST_F(StreamTest, KnowsWhatHasStartedAndFinished) {
  UnkindStream stream(UnkindStream::Always(1));
  const uint64_t first = writer.Queue({.type = FrameType::kHeartbeat}, {});
  const uint64_t offer = writer.Queue({.type = FrameType::kOffer}, {});
  EXPECT_FALSE(writer.HasStarted(first));
  // One byte, then nothing more.
  int calls = 0;
  UnkindStream once([&calls] { return calls++ == 0 ? 1 : 0; });
  FlushWriter(&once);
  EXPECT_TRUE(writer.HasStarted(first));
  EXPECT_FALSE(writer.HasFinished(first));
  EXPECT_FALSE(writer.HasStarted(offer));
  calls = 0;
  UnkindStream rest([&calls] { return calls++ == 0 ? 15 : 0; });
  FlushWriter(&rest);
  EXPECT_TRUE(writer.HasFinished(first));
  EXPECT_FALSE(writer.HasStarted(offer)) << "not one byte of it";
  FlushWriter(&once);  // its appetite is gone
  EXPECT_FALSE(writer.HasStarted(offer));
  calls = 0;
  FlushWriter(&once);
  EXPECT_TRUE(writer.HasStarted(offer));
}

TEST_F(StreamTest, DropUnstartedKeepsOnlyTheFrameUnderWay) {
  int calls = 0;
  UnkindStream stream([&calls] { return calls++ == 0 ? 5 : 0; });
  Append(0, 1);
  writer.Seal();
  writer.Queue({.type = FrameType::kOffer}, {});
  Append(2, 1);
  writer.Seal();
  Append(4, 1);  // open
  FlushWriter(&stream);
  writer.DropUnstarted();
  EXPECT_FALSE(writer.has_open_batch());
  writer.Queue({.type = FrameType::kAbort, .argument = 3}, {});
  UnkindStream rest(UnkindStream::Random(9, 100));
  rest.bytes = stream.bytes;
  Carry(&rest);
  EXPECT_EQ(sink.log, (std::vector<std::string>{"data:1", "3:3:0"}));
  // Its slots are free again.
  EXPECT_EQ(writer.RangeRoom(), 4 * kMaxBatchRanges);
  EXPECT_EQ(Append(8, 1), kPage);
}

TEST_F(StreamTest, AnErrorOfTheStreamNamesWhatBroke) {
  UnkindStream stream(UnkindStream::Always(100));
  Append(0, 1);
  writer.Seal();
  bool blocked = false;
  stream.write_error = EFAULT;
  EXPECT_EQ(ErrorCode(writer.Pump(&stream, &blocked)), MIG_E_GUEST_MEMORY);
  stream.write_error = EPIPE;
  EXPECT_EQ(ErrorCode(writer.Pump(&stream, &blocked)), MIG_E_PEER_LOST);
}

TEST_F(StreamTest, TheEndIsCleanOnlyBetweenFrames) {
  for (size_t cut : {0u, 1u, 15u, 16u, 20u}) {
    FrameReader fresh;
    UnkindStream stream(UnkindStream::Always(1000));
    const std::vector<uint8_t> payload(10, 'p');
    writer.Queue({.type = FrameType::kMessage}, payload);
    FlushWriter(&stream);
    stream.bytes.resize(cut);
    stream.ended = true;
    const auto outcome = fresh.Pump(&stream, &sink, kBudget);
    if (cut == 0) {
      ASSERT_TRUE(outcome.ok());
      EXPECT_EQ(*outcome, ReadOutcome::kEnd);
    } else {
      EXPECT_EQ(ErrorCode(outcome.status()), MIG_E_PEER_LOST) << cut;
    }
  }
}

TEST_F(StreamTest, C29ALengthBeyondItsTypeIsRefusedBeforeItIsAllocated) {
  for (int type = 1; type <= kMaxFrameType; ++type) {
    FrameReader fresh;
    UnkindStream stream(UnkindStream::Always(1000));
    std::array<uint8_t, kHeaderSize> bytes;
    FrameHeader header{.type = static_cast<FrameType>(type)};
    header.length = tcp::PayloadLimit(header.type, 1u << 20) + 1;
    EncodeHeader(header, bytes);
    stream.bytes.assign(bytes.begin(), bytes.end());
    EXPECT_EQ(ErrorCode(fresh.Pump(&stream, &sink, kBudget).status()),
              MIG_E_PEER_PROTOCOL)
        << type;
  }
}

TEST_F(StreamTest, AHandlersErrorStopsTheReading) {
  UnkindStream stream(UnkindStream::Always(16));
  writer.Queue({.type = FrameType::kHeartbeat}, {});
  writer.Queue({.type = FrameType::kHeartbeat}, {});
  FlushWriter(&stream);
  sink.result = MakeError(MIG_E_PEER_PROTOCOL, "no");
  EXPECT_FALSE(reader.Pump(&stream, &sink, kBudget).ok());
  EXPECT_EQ(stream.bytes.size(), 16u) << "C32: the next frame is not read";
}

TEST_F(StreamTest, EmptyFramesUseUpABudgetToo) {
  UnkindStream stream(UnkindStream::Always(1 << 20));
  for (int i = 0; i < 1000; ++i) writer.Queue({.type = FrameType::kBusy}, {});
  FlushWriter(&stream);
  EXPECT_EQ(*reader.Pump(&stream, &sink, 10 * 4096), ReadOutcome::kYield);
  EXPECT_LE(sink.log.size(), 20u);
}

}  // namespace
}  // namespace mig::tcp
