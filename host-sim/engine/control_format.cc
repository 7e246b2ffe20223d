// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/control_format.h"

#include <bit>
#include <fstream>

#include "absl/strings/str_format.h"
#include "engine/wire.h"

namespace mig::sim {
namespace {

constexpr uint32_t kMagic = 0x4d475332;  // "MGS2"
constexpr uint32_t kFlagProof = 1;
constexpr uint64_t kMaxBlockBytes = uint64_t{1} << 46;

absl::Status Refuse(const char* what, ByteSpan data) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "the peer's %s message of %u bytes is malformed: run the same "
      "mig-host-sim on both sides",
      what, data.size()));
}

bool PlausibleBlock(const GuestMessage::Block& block) {
  return !block.name.empty() && block.length != 0 &&
         block.length <= kMaxBlockBytes &&
         std::has_single_bit(block.page_size) &&
         block.length % block.page_size == 0;
}

void PutRegion(const PageQueryMessage& region, WireWriter* writer) {
  writer->PutString(region.block);
  writer->Put(region.offset);
  writer->Put(region.length);
}

PageQueryMessage GetRegion(WireReader* reader) {
  PageQueryMessage region;
  region.block = reader->GetString();
  region.offset = reader->Get<uint64_t>();
  region.length = reader->Get<uint64_t>();
  return region;
}

}  // namespace

Bytes Encode(const GuestMessage& message) {
  WireWriter writer;
  writer.Put(kMagic);
  writer.Put(message.proof_follows ? kFlagProof : uint32_t{0});
  writer.Put(message.seed);
  writer.PutString(message.workload);
  writer.PutString(message.machine);
  writer.Put(static_cast<uint16_t>(message.blocks.size()));
  for (const GuestMessage::Block& block : message.blocks) {
    writer.PutString(block.name);
    writer.Put(block.length);
    writer.Put(block.page_size);
    writer.Put(block.backing);
  }
  return writer.Take();
}

absl::StatusOr<GuestMessage> ParseGuest(ByteSpan data) {
  WireReader reader(data);
  GuestMessage message;
  if (reader.Get<uint32_t>() != kMagic) return Refuse("GUEST", data);
  const auto flags = reader.Get<uint32_t>();
  message.proof_follows = (flags & kFlagProof) != 0;
  message.seed = reader.Get<uint64_t>();
  message.workload = reader.GetPrintable();
  message.machine = reader.GetPrintable();
  const auto count = reader.Get<uint16_t>();
  if ((flags & ~kFlagProof) != 0 || count == 0 || count > kMaxBlocks) {
    return Refuse("GUEST", data);
  }
  for (uint16_t i = 0; i < count; ++i) {
    GuestMessage::Block block;
    block.name = reader.GetPrintable();
    block.length = reader.Get<uint64_t>();
    block.page_size = reader.Get<uint64_t>();
    block.backing = reader.Get<uint32_t>();
    if (!reader.good() || !PlausibleBlock(block)) return Refuse("GUEST", data);
    message.blocks.push_back(block);
  }
  if (!reader.complete()) return Refuse("GUEST", data);
  return message;
}

Bytes Encode(const PageQueryMessage& message) {
  WireWriter writer;
  PutRegion(message, &writer);
  return writer.Take();
}

absl::StatusOr<PageQueryMessage> ParsePageQuery(ByteSpan data) {
  WireReader reader(data);
  PageQueryMessage message = GetRegion(&reader);
  if (!reader.complete()) return Refuse("PAGE_QUERY", data);
  return message;
}

Bytes Encode(const PagesMessage& message) {
  WireWriter writer;
  PutRegion(message.region, &writer);
  writer.Put(static_cast<uint32_t>(message.hashes.size()));
  for (const uint64_t hash : message.hashes) writer.Put(hash);
  return writer.Take();
}

absl::StatusOr<PagesMessage> ParsePages(ByteSpan data) {
  WireReader reader(data);
  PagesMessage message;
  message.region = GetRegion(&reader);
  const auto count = reader.Get<uint32_t>();
  // A count is checked against the bytes that are there before any is taken.
  if (count == 0 || count > kMaxPageHashes ||
      reader.remaining() != count * sizeof(uint64_t)) {
    return Refuse("PAGES", data);
  }
  for (uint32_t i = 0; i < count; ++i) {
    message.hashes.push_back(reader.Get<uint64_t>());
  }
  return message;
}

Bytes Encode(const ResultMessage& message) {
  WireWriter writer;
  writer.Put(static_cast<uint32_t>(message.outcome));
  writer.Put(message.handover_ns);
  writer.Put(message.resumed_ns);
  writer.Put(message.verify_ns);
  writer.PutString(message.machine);
  writer.PutString(message.text);
  return writer.Take();
}

absl::StatusOr<ResultMessage> ParseResult(ByteSpan data) {
  WireReader reader(data);
  ResultMessage message;
  const auto outcome = reader.Get<uint32_t>();
  message.outcome = static_cast<VerifyOutcome>(outcome);
  message.handover_ns = reader.Get<uint64_t>();
  message.resumed_ns = reader.Get<uint64_t>();
  message.verify_ns = reader.Get<uint64_t>();
  message.machine = reader.GetPrintable();
  message.text = reader.GetPrintable();
  if (!reader.complete() || outcome < 1 || outcome > 3) {
    return Refuse("RESULT", data);
  }
  return message;
}

Bytes Encode(const ReasonMessage& message) {
  WireWriter writer;
  writer.PutString(message.text);
  return writer.Take();
}

absl::StatusOr<ReasonMessage> ParseReason(ByteSpan data) {
  WireReader reader(data);
  ReasonMessage message;
  message.text = reader.GetPrintable();
  if (!reader.complete()) return Refuse("REASON", data);
  return message;
}

Bytes Encode(const PingMessage& message) {
  WireWriter writer;
  writer.Put(message.number);
  return writer.Take();
}

absl::StatusOr<PingMessage> ParsePing(ByteSpan data) {
  WireReader reader(data);
  PingMessage message;
  message.number = reader.Get<uint64_t>();
  if (!reader.complete()) return Refuse("PING or PONG", data);
  return message;
}

std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace mig::sim
