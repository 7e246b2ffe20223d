// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/digest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "guest/parallel.h"
#include "guest/presence_map.h"

namespace mig::sim {
namespace {

constexpr uint64_t kPagesPerRegion = kRegionSize / kPageSize;
// What a thread takes at a time, as a PresenceMap is not free to make.
constexpr uint64_t kRegionsPerSlice = 16;
constexpr uint64_t kMagic = 0x3154534547494447;  // "GDIGEST1"
constexpr uint64_t kMaxBlocks = 65536;
constexpr uint64_t kMaxNameLength = 64;
constexpr size_t kShownPages = 4;

alignas(64) constexpr std::array<std::byte, kPageSize> kZeroPage{};

uint64_t RegionCount(uint64_t length) {
  return length / kRegionSize + (length % kRegionSize != 0 ? 1 : 0);
}

RegionHash HashZeros(uint64_t length) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (uint64_t at = 0; at < length; at += kPageSize) {
    XXH3_128bits_update(&state, kZeroPage.data(), kPageSize);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

// Streaming gives the hash of the bytes as a whole, however they are cut up,
// so both sides agree though other pages of theirs are present.
RegionHash HashRegion(const GuestBlock& block, uint64_t first, uint64_t count,
                      PresenceMap* presence) {
  const std::vector<PresenceMap::Run> runs =
      presence->Runs(block, first, count);
  if (runs.size() == 1 && !runs[0].present && count == kPagesPerRegion) {
    static const RegionHash zeros = HashZeros(kRegionSize);
    return zeros;
  }
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const PresenceMap::Run& run : runs) {
    if (run.present) {
      XXH3_128bits_update(&state, block.base + run.first * kPageSize,
                          run.count * kPageSize);
      continue;
    }
    for (uint64_t i = 0; i < run.count; ++i) {
      XXH3_128bits_update(&state, kZeroPage.data(), kPageSize);
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

void PutU64(std::string* out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

// Reads from the front of `bytes`; `ok` turns false for good at the first
// value that is not all there.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t U64() {
    const absl::string_view raw = Bytes(8);
    uint64_t value = 0;
    for (const char c : raw) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  absl::string_view Bytes(uint64_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return "";
    const absl::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  uint64_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

absl::Status Malformed(absl::string_view what, uint64_t value,
                       absl::string_view limit) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "digest table: %s is %u, not %s: the peer's version differs or the "
      "message is damaged",
      what, value, limit));
}

absl::StatusOr<BlockDigest> ParseBlock(Reader* reader) {
  BlockDigest block;
  const uint64_t name_length = reader->U64();
  if (name_length == 0 || name_length > kMaxNameLength) {
    return Malformed("a name's length", name_length, "1 to 64");
  }
  block.name = std::string(reader->Bytes(name_length));
  block.length = reader->U64();
  if (block.length == 0 || block.length % kPageSize != 0) {
    return Malformed("a block's length", block.length, "a multiple of 4096");
  }
  // Compared before anything is allocated: the peer chose the number.
  const uint64_t regions = RegionCount(block.length);
  if (regions > reader->left() / 16) {
    return Malformed("a block's number of regions", regions,
                     "what the message holds");
  }
  block.regions.resize(regions);
  for (RegionHash& hash : block.regions) {
    hash.low = reader->U64();
    hash.high = reader->U64();
  }
  return block;
}

}  // namespace

DigestTable ComputeDigests(const GuestMemory& memory, unsigned threads) {
  DigestTable table;
  for (const GuestBlock& block : memory.blocks()) {
    BlockDigest digest{block.name, block.length, {}};
    digest.regions.resize(RegionCount(block.length));
    const uint64_t regions = digest.regions.size();
    ParallelFor(
        (regions + kRegionsPerSlice - 1) / kRegionsPerSlice, threads,
        [&](uint64_t slice) {
          PresenceMap presence;
          uint64_t region = slice * kRegionsPerSlice;
          const uint64_t end = std::min(regions, region + kRegionsPerSlice);
          for (; region < end; ++region) {
            const uint64_t first = region * kPagesPerRegion;
            digest.regions[region] = HashRegion(
                block, first, std::min(kPagesPerRegion, block.pages() - first),
                &presence);
          }
        });
    table.blocks.push_back(std::move(digest));
  }
  return table;
}

std::string SerializeDigests(const DigestTable& table) {
  std::string out;
  PutU64(&out, kMagic);
  PutU64(&out, table.blocks.size());
  for (const BlockDigest& block : table.blocks) {
    PutU64(&out, block.name.size());
    out.append(block.name);
    PutU64(&out, block.length);
    for (const RegionHash& hash : block.regions) {
      PutU64(&out, hash.low);
      PutU64(&out, hash.high);
    }
  }
  return out;
}

absl::StatusOr<DigestTable> ParseDigests(absl::string_view bytes) {
  Reader reader(bytes);
  const uint64_t magic = reader.U64();
  if (magic != kMagic) return Malformed("the magic", magic, "GDIGEST1");
  const uint64_t count = reader.U64();
  if (count == 0 || count > kMaxBlocks) {
    return Malformed("the number of blocks", count, "1 to 65536");
  }
  DigestTable table;
  for (uint64_t i = 0; i < count; ++i) {
    absl::StatusOr<BlockDigest> block = ParseBlock(&reader);
    if (!block.ok()) return block.status();
    table.blocks.push_back(*std::move(block));
  }
  if (!reader.ok() || reader.left() != 0) {
    return Malformed("the number of bytes left over", reader.left(), "0");
  }
  return table;
}

absl::StatusOr<std::vector<Region>> CompareDigests(const DigestTable& ours,
                                                   const DigestTable& theirs) {
  if (ours.blocks.size() != theirs.blocks.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "digests of %u blocks here and %u there: give both sides the same "
        "memory",
        ours.blocks.size(), theirs.blocks.size()));
  }
  std::vector<Region> regions;
  for (size_t b = 0; b < ours.blocks.size(); ++b) {
    const BlockDigest& here = ours.blocks[b];
    const BlockDigest& there = theirs.blocks[b];
    if (here.name != there.name || here.length != there.length ||
        here.regions.size() != there.regions.size()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "digests of block '%s' (%u bytes) here and '%s' (%u bytes) there: "
          "give both sides the same memory",
          here.name, here.length, there.name, there.length));
    }
    for (uint64_t i = 0; i < here.regions.size(); ++i) {
      if (here.regions[i] == there.regions[i]) continue;
      const uint64_t offset = i * kRegionSize;
      regions.push_back(
          {here.name, offset, std::min(kRegionSize, here.length - offset)});
    }
  }
  return regions;
}

absl::StatusOr<std::vector<uint64_t>> PageHashes(const GuestMemory& memory,
                                                 const Region& region) {
  const GuestBlock* block = memory.FindBlock(region.block);
  if (block == nullptr || region.offset % kPageSize != 0 ||
      region.length % kPageSize != 0 || region.offset > block->length ||
      region.length > block->length - region.offset) {
    return absl::OutOfRangeError(absl::StrFormat(
        "page hashes of block '%s', %u bytes at 0x%x: not whole pages of this "
        "memory%s",
        region.block, region.length, region.offset,
        block == nullptr
            ? std::string(", which has no such block")
            : absl::StrFormat(", whose block has %u bytes", block->length)));
  }
  PresenceMap presence;
  std::vector<uint64_t> hashes;
  hashes.reserve(region.length / kPageSize);
  static const uint64_t zeros = XXH3_64bits(kZeroPage.data(), kPageSize);
  for (const PresenceMap::Run& run : presence.Runs(
           *block, region.offset / kPageSize, region.length / kPageSize)) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const std::byte* page = block->base + (run.first + i) * kPageSize;
      hashes.push_back(run.present ? XXH3_64bits(page, kPageSize) : zeros);
    }
  }
  return hashes;
}

std::string DescribePageMismatches(const Region& region,
                                   const std::vector<uint64_t>& ours,
                                   const std::vector<uint64_t>& theirs) {
  if (ours.size() != theirs.size()) {
    return absl::StrFormat(
        "block '%s': %u page hashes here and %u there at offset 0x%x",
        region.block, ours.size(), theirs.size(), region.offset);
  }
  std::string pages;
  size_t differing = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    if (++differing > kShownPages) continue;
    const uint64_t offset = region.offset + i * kPageSize;
    absl::StrAppendFormat(&pages, "%spage %u (offset 0x%x)",
                          pages.empty() ? "" : ", ", offset / kPageSize,
                          offset);
  }
  if (differing == 0) return "";
  return absl::StrFormat("block '%s': %u of %u pages differ: %s%s",
                         region.block, differing, ours.size(), pages,
                         differing > kShownPages ? ", ..." : "");
}

}  // namespace mig::sim
