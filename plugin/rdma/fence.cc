// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/fence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/wire_bytes.h"
#include "rdma/wc_error.h"
#include "rdma/wr_id.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

constexpr uint32_t kMagic = 0x4d464e43;  // "MFNC"

}  // namespace

void EncodeFence(const Fence& fence, std::span<uint8_t, kFenceSize> to) {
  uint8_t* const bytes = to.data();
  Put<uint32_t>(bytes, kMagic);
  Put<uint16_t>(bytes + 4, fence.queue);
  Put<uint16_t>(bytes + 6, fence.queues);
  Put<uint64_t>(bytes + 8, fence.round);
  Put<uint64_t>(bytes + 16, fence.writes);
  Put<uint64_t>(bytes + 24, fence.bytes);
}

absl::StatusOr<Fence> DecodeFence(std::span<const uint8_t> from) {
  if (from.size() != kFenceSize || Get<uint32_t>(from.data()) != kMagic) {
    return MakeError(
        MIG_E_PEER_PROTOCOL,
        absl::StrCat("the peer sent ", from.size(),
                     " bytes on a data queue pair that are no fence of ",
                     kFenceSize,
                     ": both sides need the same version of this plugin"));
  }
  const uint8_t* const bytes = from.data();
  Fence fence;
  fence.queue = Get<uint16_t>(bytes + 4);
  fence.queues = Get<uint16_t>(bytes + 6);
  fence.round = Get<uint64_t>(bytes + 8);
  fence.writes = Get<uint64_t>(bytes + 16);
  fence.bytes = Get<uint64_t>(bytes + 24);
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
      (fence.round == round_ || Mutated(Mutation::kSkipFence)) &&
      (!lane.arrived || Mutated(Mutation::kSkipFence))) {
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
