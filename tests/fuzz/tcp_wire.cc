// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Every decoder of the TCP wire: what it takes must come out the same when it
// is encoded and decoded again.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "check.h"
#include "tcp/wire.h"

namespace mig::tcp {
namespace {

using Input = std::span<const uint8_t>;

void FuzzHeader(Input input) {
  if (input.size() < kHeaderSize) return;
  const auto header = DecodeHeader(input.first<kHeaderSize>());
  if (!header.ok()) return;
  std::array<uint8_t, kHeaderSize> again;
  EncodeHeader(*header, again);
  FUZZ_CHECK(std::equal(again.begin(), again.end(), input.begin()));
  FUZZ_CHECK(PayloadLimit(header->type, kMostMaxMessage) <= kMostMaxMessage);
}

void FuzzRange(Input input) {
  if (input.size() < kWireRangeSize) return;
  std::array<uint8_t, kWireRangeSize> again;
  EncodeRange(DecodeRange(input.first<kWireRangeSize>()), again);
  FUZZ_CHECK(std::equal(again.begin(), again.end(), input.begin()));
}

void FuzzSums(Input input) {
  const auto sums = DecodeSums(input);
  if (!sums.ok()) return;
  const std::array<uint8_t, 16> again = EncodeSums(*sums);
  FUZZ_CHECK(
      std::equal(again.begin(), again.end(), input.begin(), input.end()));
}

void FuzzHello(Input input) {
  const auto theirs = DecodeHello(input);
  if (!theirs.ok()) return;
  FUZZ_CHECK(theirs->extensions.size() <= kMaxExtensions);
  const std::vector<uint8_t> once = EncodeHello(*theirs);
  const auto twice = DecodeHello(once);
  FUZZ_CHECK(twice.ok() && EncodeHello(*twice) == once);

  Hello ours;
  ours.role = MIG_ROLE_DESTINATION;
  ours.uuid = theirs->uuid;  // or little is looked at
  ours.attempt = theirs->attempt;
  ours.max_message = 1u << 20;
  ours.window = 4u << 20;
  ours.peer_timeout_ns = 1'000'000'000;
  bool other_vm = false;
  if (!CheckIdentity(ours, *theirs, &other_vm).ok()) return;
  const auto agreed = AgreeOnCommon(ours, *theirs);
  if (!agreed.ok()) return;
  FUZZ_CHECK(agreed->wire_version == kWireVersion);
  FUZZ_CHECK(agreed->max_message <= ours.max_message);
  FUZZ_CHECK(agreed->peer_timeout_ns <= ours.peer_timeout_ns);
  FUZZ_CHECK(agreed->peer_window <= kMostWindow);
}

void FuzzBlocks(Input input) {
  const auto theirs = DecodeBlocks(input);
  if (!theirs.ok()) return;
  const std::vector<uint8_t> once = EncodeBlocks(*theirs);
  const auto twice = DecodeBlocks(once);
  FUZZ_CHECK(twice.ok() && EncodeBlocks(*twice) == once);

  static std::array<std::byte, 4096> memory;
  struct mig_block block = {};
  block.size = sizeof(block);
  block.id = 3;
  block.name = "ram";
  block.address = memory.data();
  block.length = memory.size();
  block.page_size = memory.size();
  block.fd = -1;
  BlockTable table;
  if (!table.Add(block, false).ok() || !table.Agree(*theirs).ok()) return;
  FUZZ_CHECK(theirs->size() == 1 && theirs->front().length == memory.size());
}

void FuzzPeerError(Input input) {
  if (input.size() < 8) return;
  const uint64_t argument = Get<uint64_t>(input.data());
  FUZZ_CHECK(!PeerGaveUp(argument, input.subspan(8)).ok());
  FUZZ_CHECK(!PeerRefusedUs(argument, input.subspan(8)).ok());
}

}  // namespace
}  // namespace mig::tcp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::tcp::FuzzHeader, mig::tcp::FuzzRange,  mig::tcp::FuzzSums,
      mig::tcp::FuzzHello,  mig::tcp::FuzzBlocks, mig::tcp::FuzzPeerError};
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}
