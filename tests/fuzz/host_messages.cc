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

using Input = std::span<const uint8_t>;

ByteSpan BytesOf(Input input) {
  return {reinterpret_cast<const std::byte*>(input.data()), input.size()};
}

template <typename Parse>
void FuzzMessage(Input input, Parse parse) {
  const auto once = parse(BytesOf(input));
  if (!once.ok()) return;
  const Bytes bytes = Encode(*once);
  const auto twice = parse(bytes);
  FUZZ_CHECK(twice.ok() && *twice == *once);
}

void FuzzGuest(Input input) { FuzzMessage(input, ParseGuest); }
void FuzzPageQuery(Input input) { FuzzMessage(input, ParsePageQuery); }
void FuzzPages(Input input) { FuzzMessage(input, ParsePages); }
void FuzzResult(Input input) { FuzzMessage(input, ParseResult); }
void FuzzReason(Input input) { FuzzMessage(input, ParseReason); }
void FuzzPing(Input input) { FuzzMessage(input, ParsePing); }

// With the right checksum, which no mutation would find.
void FuzzState(Input input) {
  WireWriter writer;
  writer.PutBytes(BytesOf(input));
  writer.Put(uint64_t{XXH3_64bits(input.data(), input.size())});
  const auto once = ParseState(writer.bytes());
  if (!once.ok()) return;
  const Bytes bytes = EncodeState(*once);
  FUZZ_CHECK(bytes.size() == writer.bytes().size());
  const auto twice = ParseState(bytes);
  FUZZ_CHECK(twice.ok() && *twice == *once);
}

// Pieces one after another, each behind a byte that is its length.
void FuzzPieces(Input input) {
  PieceAssembler assembler("state");
  ByteSpan rest = BytesOf(input);
  while (!rest.empty()) {
    const auto length = std::to_integer<size_t>(rest.front());
    rest.remove_prefix(1);
    const ByteSpan piece = rest.subspan(0, length);
    rest.remove_prefix(piece.size());
    if (!assembler.Add(piece).ok()) return;
  }
  FUZZ_CHECK(assembler.whole().size() <= kMaxStateBytes);
}

void FuzzDigests(Input input) {
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
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}
