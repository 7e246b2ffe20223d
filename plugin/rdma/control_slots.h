// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_CONTROL_SLOTS_H_
#define PLUGIN_RDMA_CONTROL_SLOTS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma/wire.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// The registered memory of one control channel: receives, sends that do not fit
// inline, and one small place kept for SLOTS frames. Page-aligned and of its
// own, so that a registration covers nothing else. Not thread-safe.
class ControlSlots {
 public:
  // `pd` has no guest memory. Errors: MEMORY, LIMIT, DEVICE.
  static absl::StatusOr<std::unique_ptr<ControlSlots>> Create(
      verbs::Verbs* verbs, ibv_pd* pd, uint16_t receives, uint16_t sends);
  // Nothing may be posted any more: its queue pair is destroyed.
  ~ControlSlots();
  ControlSlots(const ControlSlots&) = delete;
  ControlSlots& operator=(const ControlSlots&) = delete;

  uint16_t receives() const { return receives_; }
  uint16_t sends() const { return sends_; }
  uint8_t* receive(uint16_t slot) const { return At(slot); }
  uint8_t* send(uint16_t slot) const { return At(receives_ + size_t{slot}); }
  uint8_t* last() const { return At(receives_ + size_t{sends_}); }
  uint32_t lkey() const { return mr_->lkey; }

  // Free send slots; -1 if there is none.
  int32_t Take();
  void GiveBack(int32_t slot);
  bool HasFree() const { return !free_.empty(); }

 private:
  ControlSlots(verbs::Verbs* verbs, uint16_t receives, uint16_t sends);
  uint8_t* At(size_t slot) const { return bytes_ + slot * kSlotSize; }

  verbs::Verbs* const verbs_;
  const uint16_t receives_;
  const uint16_t sends_;
  uint8_t* bytes_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<uint16_t> free_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CONTROL_SLOTS_H_
