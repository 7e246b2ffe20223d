// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_ORACLE_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_ORACLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/memory.h"

namespace mig::model {

// Which half of a page a guest's write covers: a store that is caught half way.
enum class Part : uint8_t { kWhole, kFirst, kSecond };

// Knows what the destination's memory may look like at any moment.
//
// Every half of a page has a version that grows with each write; each word of
// it says page and version. What was handed over in a round has to be at the
// destination when the round is done, or something newer: that is the half's
// floor. Beneath it nothing may ever be seen again (old after new). A half that
// was not written since is there exactly; one that was is dirty again, and may
// be torn between versions from the floor to now.
//
// A run's only one of its kind; not thread-safe.
class Oracle {
 public:
  Oracle(const GuestMemory* source, const GuestMemory* destination);

  // The guest writes a page, or stores zeros over it. It runs at the source
  // until Taken, then at the destination.
  void Write(uint64_t page, Part part, bool zero);
  // The source's host clears the page's dirty bit and hands it over in `round`.
  void HandedOver(uint64_t page, uint64_t round);
  // ... but took it back: it is dirty again.
  void TakenBack(uint64_t page, uint64_t round);

  // One side says that the round is done: whatever was handed over in it has
  // to be there, now and from now on. DataLoss says what is not.
  absl::Status RoundDone(uint64_t round);
  // At any moment: nothing is older than what was there before.
  absl::Status CheckDestination() const;
  // Everything is there: the guest stands still, and may go on at the
  // destination.
  absl::Status CheckWhole() const;
  // It does: from here on its memory is that of the destination, and what
  // becomes of the source's is nobody's business.
  void Taken() { taken_ = true; }
  // At the end: the memory of the side that has the guest is as the guest left
  // it.
  absl::Status CheckOwner() const;

  uint64_t writes() const { return writes_; }
  // Pages compared so far, whole.
  uint64_t compared() const { return compared_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMaxSpan = 256;
  struct Half {
    uint32_t version = 0;
    uint32_t floor = kNone;      // none before its first round is done
    uint32_t last_zero = kNone;  // the newest version that is zero
  };
  struct Handed {
    uint64_t page;
    uint32_t versions[2];
  };

  // The newest zeros are not older than what was there.
  static bool ZeroIsNew(const Half& state) {
    return state.last_zero != kNone && state.last_zero >= state.floor;
  }
  std::string Describe(const Half& state, uint64_t page, uint64_t stamp) const;
  bool MayBeCut(const Half& state, uint64_t page, size_t word,
                uint64_t value) const;
  absl::Status CheckHalf(uint64_t page, int half) const;
  // Where the guest runs, the half is exactly as its version says.
  absl::Status CheckExact(const GuestMemory& memory, const char* side) const;
  std::span<uint64_t> WordsOf(const GuestMemory& memory, uint64_t page,
                              int half) const;
  static uint64_t Stamp(uint64_t page, uint32_t version, size_t word);

  const GuestMemory* const source_;
  const GuestMemory* const destination_;
  const uint64_t pages_;
  std::vector<Half> halves_;                        // two a page
  std::map<uint64_t, std::vector<Handed>> rounds_;  // not done yet
  bool taken_ = false;
  uint64_t writes_ = 0;
  mutable uint64_t compared_ = 0;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_ORACLE_H_
