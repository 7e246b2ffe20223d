// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/fence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/wc_error.h"
#include "rdma/wr_id.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

constexpr uint64_t kMagic = 0x4d464e43;  // "MFNC"

// Big-endian, `size` bytes at `from`.
uint64_t Get(const uint8_t* from, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | from[i];
  return value;
}

void Put(uint8_t* to, size_t size, uint64_t value) {
  for (size_t i = size; i > 0; --i) {
    to[i - 1] = static_cast<uint8_t>(value);
    value >>= 8;
  }
}

}  // namespace

void EncodeFence(const Fence& fence, std::span<uint8_t, kFenceSize> to) {
  uint8_t* const bytes = to.data();
  Put(bytes, 4, kMagic);
  Put(bytes + 4, 2, fence.queue);
  Put(bytes + 6, 2, fence.queues);
  Put(bytes + 8, 8, fence.round);
  Put(bytes + 16, 8, fence.writes);
  Put(bytes + 24, 8, fence.bytes);
}

absl::StatusOr<Fence> DecodeFence(std::span<const uint8_t> from) {
  if (from.size() != kFenceSize || Get(from.data(), 4) != kMagic) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("the peer sent ", from.size(),
                     " bytes on a data queue pair that are no fence of ",
                     kFenceSize,
                     ": both sides need the same version of this plugin"));
  }
  const uint8_t* const bytes = from.data();
  Fence fence;
  fence.queue = static_cast<uint16_t>(Get(bytes + 4, 2));
  fence.queues = static_cast<uint16_t>(Get(bytes + 6, 2));
  fence.round = Get(bytes + 8, 8);
  fence.writes = Get(bytes + 16, 8);
  fence.bytes = Get(bytes + 24, 8);
  return fence;
}

absl::StatusOr<std::unique_ptr<FenceSlots>> FenceSlots::Create(
    verbs::Verbs* verbs, ibv_pd* pd, unsigned int access) {
  std::unique_ptr<FenceSlots> slots(new FenceSlots(verbs));
  int failure = 0;
  slots->mr_ = verbs::ObjectOfCall(&failure, [&] {
    return verbs->RegMr(pd, slots->slots_.data(), sizeof(slots->slots_),
                        access);
  });
  if (slots->mr_ == nullptr) {
    return verbs::StatusOfErrno(
        absl::StrCat("registering ", sizeof(slots->slots_),
                     " bytes for fences failed; raise the limit of locked "
                     "memory (ulimit -l) or use fewer data queue pairs"),
        failure);
  }
  return slots;
}

FenceSlots::~FenceSlots() {
  if (mr_ != nullptr) verbs_->DeregMr(mr_);
}

ibv_sge FenceSlots::sge(size_t slot) const {
  ibv_sge sge = {};
  sge.addr = reinterpret_cast<uintptr_t>(slots_[slot].data());
  sge.length = kFenceSize;
  sge.lkey = mr_->lkey;
  return sge;
}

absl::Status FenceReceiver::PostReceives(uint16_t queue, ibv_qp* qp) {
  auto slots = FenceSlots::Create(verbs_, qp->pd, IBV_ACCESS_LOCAL_WRITE);
  if (!slots.ok()) return slots.status();
  lanes_[queue].slots = *std::move(slots);
  lanes_[queue].qp = qp;
  for (size_t slot = 0; slot < kReceives; ++slot) {
    MIG_RETURN_IF_ERROR(PostReceive(queue, slot));
  }
  return absl::OkStatus();
}

absl::Status FenceReceiver::PostReceive(uint16_t queue, size_t slot) {
  Lane& lane = lanes_[queue];
  ibv_sge sge = lane.slots->sge(slot);
  ibv_recv_wr wr = {};
  wr.wr_id = MakeWrId(WrKind::kFenceReceive, static_cast<uint8_t>(queue), slot);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int failure =
      verbs::ErrnoOfCall([&] { return ibv_post_recv(lane.qp, &wr, &bad); });
  if (failure == 0) return absl::OkStatus();
  return MakeSystemError(
      MIG_E_DEVICE,
      absl::StrCat("posting a receive for fences on data queue pair ", queue,
                   " failed, of at most ", kReceives,
                   " that are posted; see the kernel's log for the device"),
      failure);
}

absl::Status FenceReceiver::Check(const Fence& fence, uint16_t queue) const {
  const Lane& lane = lanes_[queue];
  if (fence.queue == queue && fence.queues == lanes_.size() &&
      fence.round == round_ && !lane.arrived) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_PEER_PROTOCOL,
      absl::StrCat("the peer ended round ", fence.round, " on data queue pair ",
                   fence.queue, " of ", fence.queues, ", and due was ",
                   lane.arrived ? "nothing more of round " : "round ", round_,
                   " on ", queue, " of ", lanes_.size()));
}

absl::Status FenceReceiver::OnCompletion(const ibv_wc& wc) {
  const uint16_t queue = WrIdQueue(wc.wr_id);
  const uint64_t slot = WrIdNumber(wc.wr_id);
  if (queue >= lanes_.size() || slot >= kReceives) {
    return MakeError(MIG_E_DEVICE,
                     absl::StrCat("a receive completed that was never posted: "
                                  "number ",
                                  slot, " of data queue pair ", queue,
                                  "; the device is broken"));
  }
  if (wc.status != IBV_WC_SUCCESS) {
    return CompletionError(verbs_, wc,
                           absl::StrCat("receiving the end of round ", round_,
                                        " on data queue pair ", queue));
  }
  Lane& lane = lanes_[queue];
  const auto bytes = lane.slots->bytes(slot);
  // What is longer than the slot never gets here: the device refuses it.
  const auto fence =
      DecodeFence(bytes.first(std::min<size_t>(wc.byte_len, kFenceSize)));
  if (!fence.ok()) return fence.status();
  MIG_RETURN_IF_ERROR(Check(*fence, queue));
  lane.arrived = true;
  ++arrived_;
  writes_ += fence->writes;
  bytes_ += fence->bytes;
  return PostReceive(queue, slot);
}

void FenceReceiver::Next() {
  for (Lane& lane : lanes_) lane.arrived = false;
  arrived_ = 0;
  writes_ = 0;
  bytes_ = 0;
  ++round_;
}

}  // namespace mig::rdma
