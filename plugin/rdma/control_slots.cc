// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/control_slots.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/mutation.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

constexpr size_t kAlignment = 4096;

constexpr size_t BytesOf(size_t receives, size_t sends) {
  return (receives + sends + 1) * kSlotSize;
}
static_assert(kSlotSize % kAlignment == 0);

}  // namespace

ControlSlots::ControlSlots(verbs::Verbs* verbs, uint16_t receives,
                           uint16_t sends)
    : verbs_(verbs), receives_(receives), sends_(sends) {
  free_.reserve(sends);
  for (uint16_t slot = sends; slot-- > 0;) free_.push_back(slot);
}

absl::StatusOr<std::unique_ptr<ControlSlots>> ControlSlots::Create(
    verbs::Verbs* verbs, ibv_pd* pd, uint16_t receives, uint16_t sends) {
  auto slots =
      std::unique_ptr<ControlSlots>(new ControlSlots(verbs, receives, sends));
  const size_t size = BytesOf(receives, sends);
  slots->bytes_ = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, size));
  if (slots->bytes_ == nullptr) {
    return MakeError(
        MIG_E_MEMORY,
        absl::StrCat("no ", size, " bytes for control messages: free some"));
  }
  // A peer never sees what this process held before.
  std::memset(slots->bytes_, 0, size);
  int failure = 0;
  slots->mr_ = verbs::ObjectOfCall(&failure, [&] {
    return verbs->RegMr(pd, slots->bytes_, size, IBV_ACCESS_LOCAL_WRITE);
  });
  if (slots->mr_ == nullptr) {
    return verbs::StatusOfErrno(
        absl::StrCat("can't register ", size,
                     " bytes for control messages (raise the limit of locked "
                     "memory, ulimit -l, if that is the reason)"),
        failure);
  }
  return slots;
}

ControlSlots::~ControlSlots() {
  // What can't be deregistered may still be a device's: better lost than given
  // to the next who allocates.
  if (mr_ != nullptr && verbs_->DeregMr(mr_) != 0) return;
  std::free(bytes_);
}

int32_t ControlSlots::Take() {
  if (free_.empty()) return -1;
  const uint16_t slot = free_.back();
  if (!Mutated(Mutation::kReuseSlotEarly)) free_.pop_back();
  return slot;
}

void ControlSlots::GiveBack(int32_t slot) {
  if (Mutated(Mutation::kReuseSlotEarly)) return;
  free_.push_back(static_cast<uint16_t>(slot));
}

}  // namespace mig::rdma
