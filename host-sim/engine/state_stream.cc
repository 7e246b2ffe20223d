// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/state_stream.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "engine/wire.h"

namespace mig::sim {
namespace {

constexpr uint64_t kPieceHeader = 2 * sizeof(uint64_t);

absl::Status Refuse(const char* why, uint64_t size) {
  return absl::InvalidArgumentError(
      absl::StrFormat("device state or proof of %u bytes %s: run the same "
                      "mig-host-sim on both sides",
                      size, why));
}

}  // namespace

Bytes EncodeState(const StateSections& sections) {
  WireWriter writer;
  for (const auto& [kind, bytes] : sections) {
    writer.Put(kind);
    writer.Put(static_cast<uint64_t>(bytes.size()));
    writer.PutBytes(bytes);
  }
  const uint64_t sum =
      XXH3_64bits(writer.bytes().data(), writer.bytes().size());
  writer.Put(sum);
  return writer.Take();
}

absl::StatusOr<StateSections> ParseState(ByteSpan data) {
  if (data.size() < sizeof(uint64_t)) return Refuse("is cut", data.size());
  const size_t body = data.size() - sizeof(uint64_t);
  WireReader tail(data.subspan(body));
  if (tail.Get<uint64_t>() != XXH3_64bits(data.data(), body)) {
    return Refuse("does not match its checksum", data.size());
  }
  StateSections sections;
  WireReader reader(data.subspan(0, body));
  while (reader.good() && reader.remaining() > 0) {
    const auto kind = reader.Get<uint32_t>();
    const ByteSpan bytes = reader.GetBytes(reader.Get<uint64_t>());
    if (!sections.try_emplace(kind, bytes.begin(), bytes.end()).second) {
      return Refuse("has a section twice", data.size());
    }
  }
  if (!reader.complete()) return Refuse("is cut in a section", data.size());
  return sections;
}

uint64_t PieceBytes(uint64_t max_message) { return max_message - kPieceHeader; }

Bytes EncodePiece(ByteSpan whole, uint64_t offset, uint64_t max_message) {
  WireWriter writer;
  writer.Put(static_cast<uint64_t>(whole.size()));
  writer.Put(offset);
  writer.PutBytes(whole.subspan(
      offset,
      std::min<uint64_t>(whole.size() - offset, PieceBytes(max_message))));
  return writer.Take();
}

absl::Status PieceAssembler::Add(ByteSpan data) {
  WireReader reader(data);
  const auto total = reader.Get<uint64_t>();
  const auto offset = reader.Get<uint64_t>();
  const ByteSpan bytes = reader.GetBytes(reader.remaining());
  if (!started_) total_ = total;
  // No piece is empty, so a peer can't keep this going for ever.
  if (!reader.complete() || bytes.empty() || total != total_ ||
      total > kMaxStateBytes || offset != whole_.size() ||
      bytes.size() > total - offset) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: a piece of %u bytes at %u of %u does not follow what came, %u of "
        "%u bytes: run the same mig-host-sim on both sides",
        what_, bytes.size(), offset, total, whole_.size(), total_));
  }
  started_ = true;
  whole_.insert(whole_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

}  // namespace mig::sim
