// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Set-up, and what comes in.
#include "rdma/control_channel.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/control_wr.h"
#include "rdma/wc_error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

absl::Status Impossible(absl::string_view what) {
  return MakeError(MIG_E_DEVICE,
                   absl::StrCat("the device completed ", what,
                                " on the control queue pair: update its driver "
                                "and firmware"));
}

}  // namespace

ControlChannel::ControlChannel(verbs::Verbs* verbs, ControlSlots* slots)
    : verbs_(verbs), slots_(slots) {}

absl::Status ControlChannel::Attach(ibv_qp* qp, ibv_cq* cq,
                                    const ControlLimits& limits) {
  qp_ = qp;
  cq_ = cq;
  limits_ = limits;
  for (uint16_t slot = 0; slot < slots_->receives(); ++slot) {
    status_ = PostReceive(slot);
    if (!status_.ok()) return status_;
  }
  return absl::OkStatus();
}

void ControlChannel::SetPeer(bool source, uint16_t receives) {
  peer_is_source_ = source;
  peer_receives_ = credits_ = receives;
}

void ControlChannel::Open() {
  open_ = true;
  PostUnsent();
  TellSlots();
}

void ControlChannel::Fail(const absl::Status& why) {
  if (status_.ok()) status_ = why;
}

absl::Status ControlChannel::PostReceive(uint16_t slot) {
  ibv_sge sge = {};
  sge.addr = reinterpret_cast<uintptr_t>(slots_->receive(slot));
  sge.length = kSlotSize;
  sge.lkey = slots_->lkey();
  ibv_recv_wr wr = {};
  wr.wr_id = kControlReceive | slot;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int failure =
      verbs::ErrnoOfCall([&] { return ibv_post_recv(qp_, &wr, &bad); });
  if (failure != 0) {
    return verbs::StatusOfErrno(
        absl::StrCat("can't post receive ", slot, " of ", slots_->receives(),
                     " on the control queue pair"),
        failure);
  }
  ++receives_posted_;
  return absl::OkStatus();
}

absl::Status ControlChannel::Poll(FrameHandler* handler, int budget,
                                  int* count) {
  absl::Status refused;
  std::array<ibv_wc, 16> completions;
  *count = 0;
  while (*count < budget) {
    const int room =
        std::min<int>(budget - *count, static_cast<int>(completions.size()));
    const int got = ibv_poll_cq(cq_, room, completions.data());
    if (got < 0) {
      Fail(MakeError(MIG_E_DEVICE,
                     "the control completion queue can't be polled: see the "
                     "kernel's log for the device"));
    }
    if (got <= 0) break;
    *count += got;
    counts_.completions += static_cast<uint64_t>(got);
    for (int i = 0; i < got; ++i) {
      const absl::Status status =
          OnCompletion(completions[static_cast<size_t>(i)], handler);
      if (refused.ok()) refused = status;
    }
  }
  PostUnsent();
  TellSlots();
  // Once the device failed nothing is handed on: what was refused came before,
  // and says why.
  return refused.ok() ? status_ : refused;
}

// The wr_id is one of the few fields of a failed completion that are valid.
absl::Status ControlChannel::OnCompletion(const ibv_wc& wc,
                                          FrameHandler* handler) {
  const bool receive = (wc.wr_id & kControlKinds) == kControlReceive;
  if (receive) {
    if (receives_posted_ > 0) --receives_posted_;
  } else {
    const absl::Status retired = RetireSends((wc.wr_id & ~kControlKinds) + 1);
    if (!retired.ok()) Fail(retired);
  }
  if (wc.status != IBV_WC_SUCCESS) {
    Fail(CompletionError(verbs_, wc,
                         receive ? "a control receive" : "a control message"));
    return absl::OkStatus();
  }
  return receive ? OnReceive(wc, handler) : absl::OkStatus();
}

absl::Status ControlChannel::RetireSends(uint64_t end) {
  if (end <= retired_ || end > posted_) {
    return Impossible(absl::StrCat("send ", end - 1, ", where ", retired_,
                                   " to ", posted_, " were under way"));
  }
  while (retired_ < end) {
    const int32_t held = held_.front();
    held_.pop_front();
    if (held == kLastSlot) last_slot_busy_ = false;
    if (held >= 0) slots_->GiveBack(held);
    ++retired_;
  }
  return absl::OkStatus();
}

absl::Status ControlChannel::OnReceive(const ibv_wc& wc,
                                       FrameHandler* handler) {
  const uint64_t slot = wc.wr_id & ~kControlKinds;
  if (slot >= slots_->receives() || wc.byte_len > kSlotSize) {
    Fail(Impossible(
        absl::StrCat("receive ", slot, " of ", wc.byte_len, " bytes")));
  }
  if (!status_.ok()) return absl::OkStatus();
  const auto number = static_cast<uint16_t>(slot);
  absl::Status taken = TakeFrame(
      std::span<const uint8_t>(slots_->receive(number), wc.byte_len), handler);
  if (!taken.ok()) reading_ = false;
  // What the frame was does not matter: the peer must get its receive back, or
  // a last word could not be said.
  const absl::Status posted = PostReceive(number);
  if (!posted.ok()) Fail(posted);
  ++owed_;
  return taken;
}

absl::Status ControlChannel::TakeFrame(std::span<const uint8_t> send,
                                       FrameHandler* handler) {
  const auto header = DecodeHeader(send, peer_is_source_, max_message_);
  if (!header.ok()) return reading_ ? header.status() : absl::OkStatus();
  const absl::Status credits = TakeCredits(*header);
  if (!reading_) return absl::OkStatus();
  MIG_RETURN_IF_ERROR(credits);
  ++counts_.receives;
  if (header->type == FrameType::kSlots) return absl::OkStatus();
  const std::span<const uint8_t> payload = send.subspan(kHeaderSize);
  if (!IsLong(header->type)) {
    ++counts_.frames_received;
    return handler->OnFrame(*header, payload, nullptr);
  }
  std::vector<uint8_t> whole;
  const auto done = parts_.Add(*header, payload, &whole);
  if (!done.ok()) return done.status();
  if (!*done) return absl::OkStatus();
  ++counts_.frames_received;
  return handler->OnFrame(*header, whole, &whole);
}

absl::Status ControlChannel::TakeCredits(const FrameHeader& header) {
  if (header.slots > peer_receives_ - credits_) {
    return PeerBroke(absl::StrCat("word of ", header.slots,
                                  " receives posted again, where ",
                                  peer_receives_ - credits_, " were used"));
  }
  credits_ += header.slots;
  return absl::OkStatus();
}

}  // namespace mig::rdma
