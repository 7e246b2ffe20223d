// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What one mig-host-sim tells the other: its messages, device state and proof.
// What is taken must come out the same when it is encoded and parsed again.
#include <xxhash.h>

#include <array>
#include <span>
#include <string>

#include "check.h"
#include "engine/control_format.h"
#include "engine/state_stream.h"
#include "engine/wire.h"
#include "guest/digest.h"

namespace mig::sim {
namespace {

template <typename Parse>
void FuzzMessage(ByteSpan input, Parse parse) {
  const auto once = parse(input);
  if (!once.ok()) return;
  const Bytes bytes = Encode(*once);
  const auto twice = parse(bytes);
  FUZZ_CHECK(twice.ok() && *twice == *once);
}

void FuzzGuest(ByteSpan input) { FuzzMessage(input, ParseGuest); }
void FuzzPageQuery(ByteSpan input) { FuzzMessage(input, ParsePageQuery); }
void FuzzPages(ByteSpan input) { FuzzMessage(input, ParsePages); }
void FuzzResult(ByteSpan input) { FuzzMessage(input, ParseResult); }
void FuzzReason(ByteSpan input) { FuzzMessage(input, ParseReason); }
void FuzzPing(ByteSpan input) { FuzzMessage(input, ParsePing); }

// With the right checksum, which no mutation would find.
void FuzzState(ByteSpan input) {
  WireWriter writer;
  writer.PutBytes(input);
  writer.Put(uint64_t{XXH3_64bits(input.data(), input.size())});
  const auto once = ParseState(writer.bytes());
  if (!once.ok()) return;
  const Bytes bytes = EncodeState(*once);
  FUZZ_CHECK(bytes.size() == writer.bytes().size());
  const auto twice = ParseState(bytes);
  FUZZ_CHECK(twice.ok() && *twice == *once);
}

// Pieces one after another, each behind a byte that is its length.
void FuzzPieces(ByteSpan input) {
  PieceAssembler assembler("state");
  while (!input.empty()) {
    const auto length = std::to_integer<size_t>(input.front());
    input.remove_prefix(1);
    const ByteSpan piece = input.subspan(0, length);
    input.remove_prefix(piece.size());
    if (!assembler.Add(piece).ok()) return;
  }
  FUZZ_CHECK(assembler.whole().size() <= kMaxStateBytes);
}

void FuzzDigests(ByteSpan input) {
  const absl::string_view text(reinterpret_cast<const char*>(input.data()),
                               input.size());
  const auto table = ParseDigests(text);
  if (table.ok()) FUZZ_CHECK(SerializeDigests(*table) == text);
}

}  // namespace
}  // namespace mig::sim

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::sim::FuzzGuest,  mig::sim::FuzzPageQuery, mig::sim::FuzzPages,
      mig::sim::FuzzResult, mig::sim::FuzzReason,    mig::sim::FuzzPing,
      mig::sim::FuzzState,  mig::sim::FuzzPieces,    mig::sim::FuzzDigests};
  std::span<const uint8_t> input(data, size);
  const unsigned choice = mig::fuzz::Choose(kParsers.size(), &input);
  kParsers[choice](
      {reinterpret_cast<const std::byte*>(input.data()), input.size()});
  return 0;
}
