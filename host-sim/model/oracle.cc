// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "guest/random.h"

namespace mig::model {
namespace {

const char* const kHalfNames[] = {"first half", "second half"};

absl::Status Loss(uint64_t page, int half, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(kHalfNames[half], " of page ", page, ": ", what));
}

}  // namespace

Oracle::Oracle(const GuestMemory* source, const GuestMemory* destination)
    : source_(source),
      destination_(destination),
      pages_(source->shape().Pages()),
      halves_(2 * pages_) {
  uint64_t page = 0;
  for (const BlockShape& block : source->shape().blocks) {
    for (uint64_t i = 0; i < block.pages; ++i, ++page) {
      if (block.zeroed) {
        halves_[2 * page].last_zero = halves_[2 * page + 1].last_zero = 0;
      } else {
        Write(page, Part::kWhole, /*zero=*/false);
      }
    }
  }
  writes_ = 0;
}

// Each word tells by itself what it belongs to, wherever a page was torn.
uint64_t Oracle::Stamp(uint64_t page, uint32_t version, size_t word) {
  return (page << 32 | version) ^ sim::Mix(word + 1);
}

std::span<uint64_t> Oracle::WordsOf(const GuestMemory& memory, uint64_t page,
                                    int half) const {
  const std::span<uint64_t> words = memory.Page(page);
  const size_t count = words.size() / 2;
  return words.subspan(half == 0 ? 0 : count, count);
}

void Oracle::Write(uint64_t page, Part part, bool zero) {
  ++writes_;
  const uint32_t version =
      std::max(halves_[2 * page].version, halves_[2 * page + 1].version) + 1;
  const GuestMemory& memory = taken_ ? *destination_ : *source_;
  for (int half = 0; half < 2; ++half) {
    if (half == 0 ? part == Part::kSecond : part == Part::kFirst) continue;
    Half& state = halves_[2 * page + static_cast<uint64_t>(half)];
    state.version = version;
    if (zero) state.last_zero = version;
    const std::span<uint64_t> words = WordsOf(memory, page, half);
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = zero ? 0 : Stamp(page, version, i);
    }
  }
}

void Oracle::HandedOver(uint64_t page, uint64_t round) {
  rounds_[round].push_back(
      {page, {halves_[2 * page].version, halves_[2 * page + 1].version}});
}

void Oracle::TakenBack(uint64_t page, uint64_t round) {
  std::erase_if(rounds_[round],
                [page](const Handed& handed) { return handed.page == page; });
}

absl::Status Oracle::RoundDone(uint64_t round) {
  const auto found = rounds_.find(round);
  if (found != rounds_.end()) {
    for (const Handed& handed : found->second) {
      halves_[2 * handed.page].floor = handed.versions[0];
      halves_[2 * handed.page + 1].floor = handed.versions[1];
    }
    rounds_.erase(found);
  }
  return CheckDestination();
}

// What a word of the half says, for a message.
std::string Oracle::Describe(const Half& state, uint64_t page,
                             uint64_t stamp) const {
  if (stamp >> 32 != page) return ", which the guest never wrote there";
  return absl::StrCat(", of version ", static_cast<uint32_t>(stamp), " of ",
                      state.version, ", where ", state.floor,
                      " was there already");
}

// Whether each byte is of a version from the floor to now: a stream may be cut
// in the middle of a word.
bool Oracle::MayBeCut(const Half& state, uint64_t page, size_t word,
                      uint64_t value) const {
  const uint32_t span = state.version - state.floor;
  if (span == 0) return false;
  if (span > kMaxSpan) return true;  // not worth the time
  for (int shift = 0; shift < 64; shift += 8) {
    const uint64_t byte = value >> shift & 0xff;
    bool found = byte == 0 && ZeroIsNew(state);
    for (uint32_t v = state.floor; v <= state.version && !found; ++v) {
      found = (Stamp(page, v, word) >> shift & 0xff) == byte;
    }
    if (!found) return false;
  }
  return true;
}

absl::Status Oracle::CheckHalf(uint64_t page, int half) const {
  const Half& state = halves_[2 * page + static_cast<uint64_t>(half)];
  if (state.floor == kNone) return absl::OkStatus();
  const std::span<uint64_t> words = WordsOf(*destination_, page, half);
  const uint64_t first = words[0] == 0 ? 0 : words[0] ^ sim::Mix(1);
  bool torn = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t stamp = words[i] == 0 ? 0 : words[i] ^ sim::Mix(i + 1);
    torn = torn || stamp != first;
    if (words[i] == 0 && ZeroIsNew(state)) continue;
    const auto version = static_cast<uint32_t>(stamp);
    const bool right = words[i] != 0 && stamp >> 32 == page &&
                       version >= state.floor && version <= state.version;
    if (right || MayBeCut(state, page, i, words[i])) continue;
    return Loss(page, half,
                absl::StrCat("word ", i, " is 0x", absl::Hex(words[i]),
                             Describe(state, page, stamp)));
  }
  if (torn && state.version == state.floor) {
    return Loss(
        page, half,
        absl::StrCat("torn, and not written since version ", state.floor));
  }
  return absl::OkStatus();
}

absl::Status Oracle::CheckDestination() const {
  if (taken_) return CheckExact(*destination_, "destination");
  for (uint64_t page = 0; page < pages_; ++page) {
    for (int half = 0; half < 2; ++half) {
      absl::Status status = CheckHalf(page, half);
      if (!status.ok()) return status;
    }
  }
  compared_ += pages_;
  return absl::OkStatus();
}

absl::Status Oracle::CheckExact(const GuestMemory& memory,
                                const char* side) const {
  for (uint64_t page = 0; page < pages_; ++page) {
    for (int half = 0; half < 2; ++half) {
      const Half& state = halves_[2 * page + static_cast<uint64_t>(half)];
      const bool zero = state.last_zero == state.version;
      const std::span<uint64_t> words = WordsOf(memory, page, half);
      for (size_t i = 0; i < words.size(); ++i) {
        const uint64_t right = zero ? 0 : Stamp(page, state.version, i);
        if (words[i] == right) continue;
        return Loss(
            page, half,
            absl::StrCat("word ", i, " at the ", side, " is 0x",
                         absl::Hex(words[i]), ", not 0x", absl::Hex(right),
                         " of version ", state.version));
      }
    }
  }
  compared_ += pages_;
  return absl::OkStatus();
}

absl::Status Oracle::CheckWhole() const {
  absl::Status status = CheckExact(*destination_, "destination");
  if (!status.ok()) return status;
  return CheckExact(*source_, "source");
}

absl::Status Oracle::CheckOwner() const {
  return taken_ ? CheckExact(*destination_, "destination")
                : CheckExact(*source_, "source");
}

}  // namespace mig::model
