// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The responder: what a queue pair does with a request that reaches it.
#include <algorithm>
#include <cstring>

#include "soft-verbs/completion_queue.h"
#include "soft-verbs/device.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

void Refuse(Qp* qp, ibv_event_type event) {
  if (qp->state == IBV_QPS_ERR) return;
  PostQpEvent(qp, event);
  EnterError(qp);
}

// Copies as far as both reach. Returns the bytes copied.
void Scatter(std::span<const iovec> from, const std::vector<iovec>& to) {
  size_t at = 0;
  size_t offset = 0;
  for (const iovec& part : from) {
    size_t done = 0;
    while (done < part.iov_len && at < to.size()) {
      const size_t size =
          std::min(part.iov_len - done, to[at].iov_len - offset);
      std::memcpy(static_cast<std::byte*>(to[at].iov_base) + offset,
                  static_cast<const std::byte*>(part.iov_base) + done, size);
      done += size;
      offset += size;
      if (offset == to[at].iov_len) {
        ++at;
        offset = 0;
      }
    }
  }
}

uint64_t RoomOf(const ibv_sge* sges, uint32_t count) {
  uint64_t room = 0;
  for (uint32_t i = 0; i < count; ++i) room += sges[i].length;
  return room;
}

Completion ReceiveCompletion(Qp* qp, const Message& message, uint64_t wr_id) {
  Completion completion;
  completion.qp = qp;
  completion.receive = true;
  completion.wc.wr_id = wr_id;
  completion.wc.qp_num = qp->qp_num;
  completion.wc.src_qp = message.source_qp;
  completion.wc.opcode =
      message.written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  completion.wc.byte_len = static_cast<uint32_t>(message.length);
  if (message.with_imm) {
    completion.wc.wc_flags |= IBV_WC_WITH_IMM;
    completion.wc.imm_data = message.imm;
  }
  return completion;
}

// iWARP has no "receiver not ready": the connection ends.
Answer NoReceive(Qp* qp) {
  if (!qp->device->node->config.model->iwarp) {
    return Answer::NotReady(RnrTimerNs(qp->min_rnr_timer));
  }
  Refuse(qp, IBV_EVENT_QP_FATAL);
  BreakConnection(qp);
  return Answer::Refused(IBV_WC_WR_FLUSH_ERR);
}

}  // namespace

uint64_t RnrTimerNs(uint8_t code) {
  // Hundredths of a millisecond, from the InfiniBand specification.
  static constexpr uint32_t kTimers[32] = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return uint64_t{kTimers[code % 32]} * 10'000;
}

Answer CheckRemoteAccess(Qp* qp, uint64_t address, uint32_t rkey,
                         uint64_t length, uint32_t right) {
  const std::optional<MemoryRegion> region =
      qp->device->memory->FindRemote(rkey);
  if (!region.has_value() || region->pd != qp->pd->handle ||
      !region->Contains(address, length) || (region->access & right) == 0 ||
      (qp->access & right) == 0) {
    Refuse(qp, IBV_EVENT_QP_ACCESS_ERR);
    return Answer::Refused(IBV_WC_REM_ACCESS_ERR);
  }
  Answer answer;
  answer.relaxed = (region->access & IBV_ACCESS_RELAXED_ORDERING) != 0;
  return answer;
}

Answer TakeMessage(Qp* qp, const Message& message) {
  if (qp->recv_taken == qp->recv_posted) return NoReceive(qp);
  const uint64_t slot = qp->recv_taken % qp->recv.size();
  const RecvRequest& receive = qp->recv[slot];
  const ibv_sge* sges = qp->recv_sges.data() + slot * qp->cap.max_recv_sge;
  Completion completion = ReceiveCompletion(qp, message, receive.wr_id);
  ++qp->recv_taken;
  Answer answer;
  if (!message.written) {
    const auto room = Locate(qp, sges, receive.sges, true);
    if (message.length > RoomOf(sges, receive.sges)) {
      completion.wc.status = IBV_WC_LOC_LEN_ERR;
      answer = Answer::Refused(IBV_WC_REM_INV_REQ_ERR);
    } else if (!room.has_value()) {
      completion.wc.status = IBV_WC_LOC_PROT_ERR;
      answer = Answer::Refused(IBV_WC_REM_OP_ERR);
    } else {
      Scatter(message.payload, *room);
    }
  }
  PushCompletion(ToCq(qp->recv_cq), completion, message.solicited);
  if (!answer.done()) EnterError(qp);
  return answer;
}

}  // namespace mig::soft
