// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Every decoder of the RDMA plugin: what it takes must come out the same when
// it is encoded and decoded again.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "check.h"
#include "rdma/fence.h"
#include "rdma/hello.h"
#include "rdma/private_data.h"
#include "rdma/reassembler.h"
#include "rdma/wire.h"
#include "rdma/wire_blocks.h"
#include "script.h"

namespace mig::rdma {
namespace {

using Input = std::span<const uint8_t>;

void FuzzHeader(Input input) {
  if (input.empty()) return;
  const uint64_t max_message = (input[0] & 2) != 0 ? 1u << 20 : 0;
  const bool source = (input[0] & 1) != 0;
  input = input.subspan(1);
  const auto header = DecodeHeader(input, source, max_message);
  if (!header.ok()) return;
  FUZZ_CHECK(header->length + kHeaderSize == input.size());
  std::array<uint8_t, kHeaderSize> again;
  EncodeHeader(*header, again);
  FUZZ_CHECK(std::equal(again.begin(), again.end(), input.begin()));
  FUZZ_CHECK(FrameName(header->type) != nullptr);
}

// Parts one after another of frames that an input describes: longer than any
// input is, and as often as not of the length that is due.
void FuzzReassembler(Input input) {
  static std::array<uint8_t, kSlotSize> send = {};
  fuzz::Script script(input.data(), input.size());
  Reassembler reassembler;
  std::vector<uint8_t> whole;
  size_t left = 0;
  while (!script.ended()) {
    FrameHeader header;
    header.type = static_cast<FrameType>(1 + script.Below(kMaxFrameType));
    if (!IsLong(header.type)) continue;
    const size_t total = script.Take<uint16_t>();
    if (!reassembler.in_frame()) left = total;
    header.argument = LongArgument(total, script.Byte());
    const bool good = script.Below(2) == 0;
    header.length = static_cast<uint16_t>(good ? std::min(left, kMaxFragment)
                                               : script.Take<uint16_t>() %
                                                     (kMaxFragment + 1));
    EncodeHeader(header, std::span(send).first<kHeaderSize>());
    const Input sent(send.data(), kHeaderSize + header.length);
    const auto decoded = DecodeHeader(sent, true, 1u << 20);
    if (!decoded.ok()) continue;
    const auto done =
        reassembler.Add(*decoded, sent.subspan(kHeaderSize), &whole);
    if (!done.ok()) return;
    left -= header.length;
    FUZZ_CHECK(*done == (left == 0) && *done != reassembler.in_frame());
    if (*done) FUZZ_CHECK(whole.size() == LongTotal(header.argument));
  }
}

template <typename Decode, typename Encode>
void FuzzList(Input input, Decode decode, Encode encode) {
  const auto once = decode(input);
  if (!once.ok()) return;
  FUZZ_CHECK(!once->empty());
  const std::vector<uint8_t> bytes = encode(*once);
  const auto twice = decode(Input(bytes));
  FUZZ_CHECK(twice.ok() && encode(*twice) == bytes);
}
void FuzzZeroRuns(Input input) {
  FuzzList(input, DecodeZeroRuns, EncodeZeroRuns);
}
void FuzzChunkSpans(Input input) {
  FuzzList(input, DecodeChunkSpans, EncodeChunkSpans);
}
void FuzzChunkKeys(Input input) {
  FuzzList(input, DecodeChunkKeys, EncodeChunkKeys);
}

void FuzzBlocks(Input input) {
  const auto once = DecodeBlocks(input);
  if (!once.ok()) return;
  for (const WireBlock& block : *once) {
    FUZZ_CHECK(block.address + block.description.length >= block.address);
  }
  const std::vector<uint8_t> bytes = EncodeBlocks(*once);
  const auto twice = DecodeBlocks(bytes);
  FUZZ_CHECK(twice.ok() && EncodeBlocks(*twice) == bytes);
}

void FuzzHello(Input input) {
  const auto theirs = DecodeHello(input);
  if (!theirs.ok()) return;
  const std::vector<uint8_t> once = EncodeHello(*theirs);
  const auto twice = DecodeHello(once);
  FUZZ_CHECK(twice.ok() && EncodeHello(*twice) == once);

  Hello ours;
  ours.role = MIG_ROLE_DESTINATION;
  ours.uuid = theirs->uuid;
  ours.attempt = theirs->attempt;
  ours.max_message = 1u << 20;
  ours.window = 4u << 20;
  ours.peer_timeout_ns = 1'000'000'000;
  ours.chunk_size = 32u << 20;
  ours.data_qps = 4;
  bool other_vm = false;
  const auto agreed = Negotiate(ours, *theirs, &other_vm);
  if (!agreed.ok()) return;
  FUZZ_CHECK(agreed->chunk_size >= kLeastChunkSize);
  FUZZ_CHECK(agreed->chunk_size <= ours.chunk_size);
  FUZZ_CHECK((agreed->chunk_size & (agreed->chunk_size - 1)) == 0);
  FUZZ_CHECK(agreed->data_qps >= 1 && agreed->data_qps <= kMaxDataQps);
  FUZZ_CHECK(agreed->max_message <= ours.max_message);
}

void FuzzPrivateData(Input input) {
  const auto once = DecodePrivateData(input);
  if (!once.ok()) return;
  const auto bytes = EncodePrivateData(*once);
  const auto twice = DecodePrivateData(bytes);
  FUZZ_CHECK(twice.ok() && EncodePrivateData(*twice) == bytes);
}

void FuzzFence(Input input) {
  const auto fence = DecodeFence(input);
  if (!fence.ok()) return;
  std::array<uint8_t, kFenceSize> again;
  EncodeFence(*fence, again);
  FUZZ_CHECK(
      std::equal(again.begin(), again.end(), input.begin(), input.end()));
}

}  // namespace
}  // namespace mig::rdma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::rdma::FuzzHeader,    mig::rdma::FuzzReassembler,
      mig::rdma::FuzzZeroRuns,  mig::rdma::FuzzChunkSpans,
      mig::rdma::FuzzChunkKeys, mig::rdma::FuzzBlocks,
      mig::rdma::FuzzHello,     mig::rdma::FuzzPrivateData,
      mig::rdma::FuzzFence};
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}
