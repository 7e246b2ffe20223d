// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The end of a round on the data queue pairs. A local completion of a WRITE
// does not mean that the destination's CPU sees it (H2), and nothing is ordered
// between queue pairs (H3). So behind its last write each queue pair carries a
// small SEND; the receive completion of it makes the writes before it visible,
// relaxed ordering or not. When the destination has those of all, the round's
// data is whole; only when it said so may writes of the next round start, so
// that old data never lands after new.
#ifndef PLUGIN_RDMA_FENCE_H_
#define PLUGIN_RDMA_FENCE_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma/mutation.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// The payload, in network byte order: magic "MFNC" (4), queue (2), queues (2),
// round (8), writes (8), bytes (8).
struct Fence {
  uint16_t queue = 0;   // index of the data queue pair
  uint16_t queues = 0;  // how many there are
  uint64_t round = 0;
  uint64_t writes = 0;  // RDMA WRITEs of the round on this queue pair
  uint64_t bytes = 0;   // of them
};
inline constexpr size_t kFenceSize = 32;

void EncodeFence(const Fence& fence, std::span<uint8_t, kFenceSize> to);
// Errors: PEER_PROTOCOL for another length or magic.
absl::StatusOr<Fence> DecodeFence(std::span<const uint8_t> from);

// Two payloads of one queue pair, registered.
class FenceSlots {
 public:
  // `access` of ibv_access_flags. Errors: LIMIT, DEVICE.
  static absl::StatusOr<std::unique_ptr<FenceSlots>> Create(
      verbs::Verbs* verbs, ibv_pd* pd, unsigned int access);
  ~FenceSlots();
  FenceSlots(const FenceSlots&) = delete;
  FenceSlots& operator=(const FenceSlots&) = delete;

  std::span<uint8_t, kFenceSize> bytes(size_t slot) {
    return std::span<uint8_t, kFenceSize>(slots_[slot]);
  }
  ibv_sge sge(size_t slot) const;

 private:
  explicit FenceSlots(verbs::Verbs* verbs) : verbs_(verbs) {}
  verbs::Verbs* const verbs_;
  ibv_mr* mr_ = nullptr;
  alignas(64) std::array<std::array<uint8_t, kFenceSize>, 2> slots_ = {};
};

// Destination: receives fences on all data queue pairs. Not thread-safe.
class FenceReceiver {
 public:
  // For so many data queue pairs.
  FenceReceiver(verbs::Verbs* verbs, size_t queues)
      : verbs_(verbs), lanes_(queues) {}

  // Receives that PostReceives posts: what max_recv_wr must allow.
  static constexpr uint32_t kReceives = 2;
  // Posts the receives of one queue pair: before it is accepted, as the peer
  // may send at once (C09). Errors: DEVICE, LIMIT.
  absl::Status PostReceives(uint16_t queue, ibv_qp* qp);

  // A completion whose wr_id is of WrKind::kFenceReceive. Errors: that of a
  // failed completion; PEER_PROTOCOL for a fence of another length, queue pair,
  // count or round than is due, or a second one (H6); DEVICE where the receive
  // can't be posted again.
  absl::Status OnCompletion(const ibv_wc& wc);

  // The round that is being received, 1 at first.
  uint64_t round() const { return round_; }
  // Whether the fences of all queue pairs came: all data of round() is visible.
  bool Whole() const {
    return arrived_ == lanes_.size() || Mutated(Mutation::kSkipFence);
  }
  // What the fences said of round() so far.
  uint64_t writes() const { return writes_; }
  uint64_t bytes() const { return bytes_; }
  // Goes on to the next round: to be called when Whole, before the
  // acknowledgement leaves.
  void Next();

 private:
  struct Lane {
    std::unique_ptr<FenceSlots> slots;
    ibv_qp* qp = nullptr;
    bool arrived = false;
  };
  absl::Status PostReceive(uint16_t queue, size_t slot);
  absl::Status Check(const Fence& fence, uint16_t queue) const;

  verbs::Verbs* const verbs_;
  std::vector<Lane> lanes_;
  uint64_t round_ = 1;
  size_t arrived_ = 0;
  uint64_t writes_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_FENCE_H_
