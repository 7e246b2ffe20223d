// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/stamp.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "guest/guest_memory.h"
#include "guest/random.h"

namespace mig::sim {
namespace {

constexpr size_t kWords = kPageSize / 8;
constexpr size_t kHeaderWords = 2;
constexpr uint64_t kMark = uint64_t{0x5354414d} << 32;  // "STAM"
constexpr uint64_t kMarkMask = ~uint64_t{0} << 32;

uint64_t OwnerWord(const StampId& id) {
  return uint64_t{id.block} << 40 | id.page;
}

uint64_t Key(const StampId& id, uint32_t version) {
  return Mix(Mix(Mix(id.seed + kGolden) ^ OwnerWord(id)) + version);
}

uint64_t BodyWord(uint64_t key, size_t index) {
  return Mix(key + index * kGolden);
}

uint64_t WordAt(const std::byte* page, size_t index) {
  uint64_t word = 0;
  memcpy(&word, page + index * 8, 8);
  return word;
}

// The index of the first word from `index` on that is not of `version`.
size_t FirstForeignWord(const std::byte* page, const StampId& id,
                        uint32_t version, size_t index) {
  const uint64_t key = Key(id, version);
  while (index < kWords && WordAt(page, index) == BodyWord(key, index)) ++index;
  return index;
}

std::string ExplainZero(const std::byte* page) {
  for (size_t i = 0; i < kWords; ++i) {
    if (WordAt(page, i) == 0) continue;
    return absl::StrFormat(
        "begins like an unwritten page, but is not zero at "
        "byte %u",
        i * 8);
  }
  return "";
}

// Looks among the versions near by, where a torn page's other half is from.
std::string ExplainBody(const std::byte* page, const StampId& id,
                        uint32_t version, size_t bad) {
  for (uint32_t back = 1; back <= 16; ++back) {
    for (const uint32_t other : {version - back, version + back}) {
      if (FirstForeignWord(page, id, other, bad) > bad) {
        return absl::StrFormat(
            "torn: version %u up to byte %u, version %u from there", version,
            bad * 8, other);
      }
    }
  }
  return absl::StrFormat("damaged: not version %u at byte %u%s", version,
                         bad * 8, WordAt(page, bad) == 0 ? ", but zero" : "");
}

}  // namespace

// Races with the transport that sends the page, by design; see Machine::Run.
__attribute__((no_sanitize("thread"))) void WriteStamp(std::byte* page,
                                                       const StampId& id,
                                                       uint32_t version) {
  const uint64_t key = Key(id, version);
  auto* words = reinterpret_cast<uint64_t*>(page);
  words[0] = kMark | version;
  words[1] = OwnerWord(id);
  for (size_t i = kHeaderWords; i < kWords; ++i) words[i] = BodyWord(key, i);
}

uint32_t StampVersion(const std::byte* page) {
  const uint64_t word = WordAt(page, 0);
  return (word & kMarkMask) == kMark ? static_cast<uint32_t>(word) : 0;
}

std::string ExplainStamp(const std::byte* page, const StampId& id) {
  const uint64_t first = WordAt(page, 0);
  if (first == 0) return ExplainZero(page);
  const uint32_t version = StampVersion(page);
  if (version == 0) {
    return absl::StrFormat("damaged: no stamp at its beginning, but 0x%x",
                           first);
  }
  const uint64_t owner = WordAt(page, 1);
  if (owner != OwnerWord(id)) {
    return absl::StrFormat("foreign: it is page %u of block number %u",
                           owner & ((uint64_t{1} << 40) - 1), owner >> 40);
  }
  const size_t bad = FirstForeignWord(page, id, version, kHeaderWords);
  return bad == kWords ? "" : ExplainBody(page, id, version, bad);
}

}  // namespace mig::sim
