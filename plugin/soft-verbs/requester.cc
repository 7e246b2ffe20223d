// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The requester: work requests of a send queue, executed in order, answered by
// the other end, retried, completed, flushed.
#include <algorithm>
#include <iterator>

#include "soft-verbs/completion_queue.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/landing.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

using Kind = Fault::Kind;

bool IsWrite(const SendRequest& request) {
  return request.opcode == IBV_WR_RDMA_WRITE ||
         request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint64_t AckTimeoutNs(const Qp* qp) {
  // Zero means to wait for ever.
  if (qp->timeout == 0) return UINT64_MAX;
  return uint64_t{4096} << std::min<unsigned>(qp->timeout, 31);
}

uint64_t After(uint64_t now, uint64_t wait) {
  return wait > UINT64_MAX - now ? UINT64_MAX : now + wait;
}

// The request at the head ends with this status. Those behind it are flushed.
void Fail(Qp* qp, ibv_wc_status status, uint64_t now) {
  SendRequest& request = qp->At(qp->executed);
  request.status = status;
  request.report_ns = now;
  ++qp->executed;
  EnterError(qp);
}

// No answer. Returns false: the head waits, or has failed.
bool OnLost(Qp* qp, uint64_t now) {
  ++qp->attempts;
  qp->blocked_until_ns = After(now, AckTimeoutNs(qp));
  return false;
}

bool OnAnswer(Qp* qp, const Answer& answer, uint64_t now) {
  switch (answer.kind) {
    case Answer::Kind::kDone:
      return true;
    case Answer::Kind::kLost:
      return OnLost(qp, now);
    case Answer::Kind::kNotReady:
      ++qp->device->node->mishaps.not_ready;
      if (qp->rnr_retry != 7 && ++qp->rnr_attempts > qp->rnr_retry) {
        Fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, now);
      } else {
        qp->blocked_until_ns = After(now, answer.wait_ns);
      }
      return false;
    case Answer::Kind::kRefused:
      Fail(qp, answer.status, now);
      // Nothing else is refused in this way: iWARP, without a receive.
      if (answer.status == IBV_WC_WR_FLUSH_ERR) BreakConnection(qp);
      return false;
  }
  return false;
}

// The head is done; its completion shows at its time.
void Executed(Qp* qp, uint64_t now) {
  SendRequest& request = qp->At(qp->executed);
  request.report_ns = AcknowledgedNs(qp, request.due_ns, now);
  const Faults& faults = qp->device->node->faults;
  if (!faults.empty()) {
    const Fault* hold = faults.ForRequest(Kind::kHold, request.number);
    if (hold != nullptr) request.report_ns = After(now, hold->value);
  }
  ++qp->executed;
  qp->attempts = 0;
  qp->rnr_attempts = 0;
  qp->head_moved = 0;
}

// Places what is batched. False: one of them failed, and is the head again.
bool Flush(Qp* qp, uint64_t now) {
  Answer answer;
  const uint64_t first_bad = PlaceBatch(qp, &answer);
  if (first_bad == qp->executed) return true;
  qp->executed = first_bad;
  qp->head_moved = 0;
  return OnAnswer(qp, answer, now);
}

// Where the bytes of the head are, into qp->bytes.
bool LocateHead(Qp* qp) {
  const uint64_t index = qp->executed;
  const SendRequest& request = qp->At(index);
  if ((request.flags & IBV_SEND_INLINE) == 0) {
    return Locate(qp, qp->SgesAt(index), request.sges,
                  request.opcode == IBV_WR_RDMA_READ, &qp->bytes);
  }
  qp->bytes.clear();
  if (request.length > 0) {
    qp->bytes.push_back({qp->InlineAt(index), request.length});
  }
  return true;
}

Message MessageOf(const Qp* qp, const SendRequest& request) {
  Message message;
  message.length = request.length;
  message.written = IsWrite(request);
  message.with_imm = request.opcode == IBV_WR_SEND_WITH_IMM ||
                     request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  message.solicited = (request.flags & IBV_SEND_SOLICITED) != 0;
  message.imm = request.imm;
  message.source_qp = qp->qp_num;
  return message;
}

// What takes a receive is a fence: all writes before it land first.
bool Deliver(Qp* qp, uint64_t now) {
  if (!Flush(qp, now)) return false;
  LandAll(qp);
  Message message = MessageOf(qp, qp->At(qp->executed));
  if (!message.written) message.payload = qp->bytes;
  return OnAnswer(qp, qp->remote->Deliver(message), now);
}

// Places what is batched, part of the head included: it must be known as done
// meanwhile, and is put back. False: one of them failed.
bool FlushWithHead(Qp* qp, uint64_t now) {
  ++qp->executed;
  const bool placed = Flush(qp, now);
  if (placed) --qp->executed;
  return placed;
}

bool MayMoveInParts(const Qp* qp, const SendRequest& request) {
  return qp->device->node->config.landing == Landing::kEarliest &&
         request.opcode == IBV_WR_RDMA_WRITE;
}

// Leaves of the head's bytes those that this Drive may move, after those that
// were moved. Returns how many these are.
uint64_t CutHead(Qp* qp, uint64_t length) {
  const uint64_t part = std::min(length - qp->head_moved, qp->drive_left);
  uint64_t skip = qp->head_moved;
  uint64_t left = part;
  std::erase_if(qp->bytes, [&](iovec& piece) {
    const uint64_t before = std::min<uint64_t>(skip, piece.iov_len);
    const uint64_t taken = std::min<uint64_t>(left, piece.iov_len - before);
    skip -= before;
    left -= taken;
    piece = {static_cast<std::byte*>(piece.iov_base) + before, taken};
    return taken == 0;
  });
  return part;
}

bool Write(Qp* qp, uint64_t now) {
  const Landing landing = qp->device->node->config.landing;
  const SendRequest& request = qp->At(qp->executed);
  const Answer answer =
      qp->remote->CheckWrite(request.remote, request.rkey, request.length);
  if (!answer.done()) return Flush(qp, now) && OnAnswer(qp, answer, now);
  uint64_t part = request.length;
  if (MayMoveInParts(qp, request)) part = CutHead(qp, request.length);
  if (part > 0) {
    LandWrite(qp, qp->executed, qp->head_moved, answer.relaxed, qp->bytes);
  }
  // Nothing takes time where nothing is moved.
  if (landing != Landing::kNone) {
    qp->drive_left -= std::min(part, qp->drive_left);
  }
  if (MayMoveInParts(qp, request) && qp->head_moved + part < request.length) {
    if (FlushWithHead(qp, now)) qp->head_moved += part;
    return false;
  }
  if (request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    return FlushWithHead(qp, now) && Deliver(qp, now);
  }
  return true;
}

bool Read(Qp* qp, uint64_t now) {
  if (!Flush(qp, now)) return false;
  LandAll(qp);
  const SendRequest& request = qp->At(qp->executed);
  if (request.length == 0) return true;
  return OnAnswer(qp,
                  qp->remote->Fetch(request.remote, request.rkey,
                                    request.length, qp->bytes),
                  now);
}

// What the schedule has for the head. False: it goes no further for now.
bool PassFaults(Qp* qp, uint64_t now) {
  SendRequest& request = qp->At(qp->executed);
  Node* node = qp->device->node;
  ApplyDueFaults(node, request.number, now);
  if (qp->state != IBV_QPS_RTS) return false;
  const Faults& faults = node->faults;
  if (const Fault* wc = faults.ForRequest(Kind::kStatus, request.number)) {
    if (Flush(qp, now)) Fail(qp, static_cast<ibv_wc_status>(wc->error), now);
    return false;
  }
  if (faults.ForRequest(Kind::kQpFatal, request.number) != nullptr) {
    if (Flush(qp, now)) {
      PostQpEvent(qp, IBV_EVENT_QP_FATAL);
      EnterError(qp);
    }
    return false;
  }
  if (faults.ForRequest(Kind::kDisconnect, request.number) != nullptr) {
    if (Flush(qp, now)) BreakConnection(qp);
    return false;
  }
  if (node->port_down) return Flush(qp, now) && OnLost(qp, now);
  const Fault* drop = faults.ForRequest(Kind::kDrop, request.number);
  if (drop != nullptr && request.losses < drop->value) {
    if (!Flush(qp, now)) return false;
    ++request.losses;
    return OnLost(qp, now);
  }
  return true;
}

// Executes the head. False: nothing more can be done now.
bool ExecuteHead(Qp* qp, uint64_t now) {
  if (!qp->device->node->faults.empty() && !PassFaults(qp, now)) return false;
  SendRequest& request = qp->At(qp->executed);
  const bool located = LocateHead(qp);
  if (!located ||
      request.length > qp->device->node->config.limits.max_msg_size) {
    if (Flush(qp, now)) {
      Fail(qp, located ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR, now);
    }
    return false;
  }
  bool done = false;
  if (IsWrite(request)) {
    done = Write(qp, now);
  } else if (request.opcode == IBV_WR_RDMA_READ) {
    done = Read(qp, now);
  } else {
    done = Deliver(qp, now);
  }
  if (!done) return false;
  Executed(qp, now);
  // Only writes in place may wait for company: the others' order is theirs.
  return qp->device->node->config.landing == Landing::kEarliest ||
         Flush(qp, now);
}

uint64_t HeadDueNs(Qp* qp) {
  const SendRequest& request = qp->At(qp->executed);
  const uint64_t silent = qp->device->node->silent_until_ns;
  const uint64_t blocked = std::max(qp->blocked_until_ns, silent);
  // In place means when the doorbell is driven; its completion takes longer.
  const bool early = qp->device->node->config.landing == Landing::kEarliest &&
                     request.opcode == IBV_WR_RDMA_WRITE;
  return early ? blocked : std::max(blocked, request.due_ns);
}

// A queue pair moves as much in one Drive, and the rest in the next: its user
// must not wait for gigabytes that a real device would move by itself, nor a
// message on another queue pair.
constexpr uint64_t kDriveBytes = 2u << 20;

bool Execute(Qp* qp, uint64_t now, uint64_t most) {
  if (qp->state != IBV_QPS_RTS || qp->remote == nullptr) return false;
  const uint64_t before = qp->executed;
  const uint64_t moved = qp->head_moved;
  qp->drive_left = kDriveBytes;
  for (; most > 0 && qp->executed < qp->posted; --most) {
    if (now < HeadDueNs(qp) || qp->drive_left == 0) break;
    // The last retransmission has got no answer either.
    if (qp->attempts > qp->retry_count) {
      if (Flush(qp, now)) Fail(qp, IBV_WC_RETRY_EXC_ERR, now);
      break;
    }
    if (!ExecuteHead(qp, now) || qp->state != IBV_QPS_RTS) break;
  }
  Flush(qp, now);
  return qp->executed != before || qp->head_moved != moved;
}

ibv_wc_opcode OpcodeOf(const SendRequest& request) {
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    default:
      return IBV_WC_SEND;
  }
}

void ReportSend(Qp* qp) {
  const SendRequest& request = qp->At(qp->reported);
  ++qp->reported;
  const bool shows = qp->signal_all || request.status != IBV_WC_SUCCESS ||
                     (request.flags & IBV_SEND_SIGNALED) != 0;
  if (!shows) return;
  CapturePending(qp, qp->reported);
  Completion completion;
  completion.wc.wr_id = request.wr_id;
  completion.wc.status = request.status;
  completion.wc.opcode = OpcodeOf(request);
  completion.wc.qp_num = qp->qp_num;
  completion.wc.byte_len = static_cast<uint32_t>(request.length);
  completion.qp = qp;
  completion.upto = qp->reported;
  PushCompletion(ToCq(qp->send_cq), completion, false);
}

// Both queues of a queue pair in error: what is left ends flushed.
void FlushQueues(Qp* qp) {
  while (qp->reported < qp->posted) {
    if (qp->reported >= qp->executed) {
      qp->At(qp->reported).status = IBV_WC_WR_FLUSH_ERR;
    }
    ReportSend(qp);
  }
  qp->executed = qp->posted;
  LandAll(qp);
  if (qp->remote_process && qp->recv_taken < qp->recv_posted) {
    // The peer may be filling one at this moment; it takes no other.
    qp->share->WaitIdle();
    Harvest(qp, true);
  }
  for (; qp->recv_taken < qp->recv_posted; ++qp->recv_taken) {
    Completion completion;
    completion.wc.wr_id = qp->recv[qp->recv_taken % qp->recv.size()].wr_id;
    completion.wc.status = IBV_WC_WR_FLUSH_ERR;
    completion.wc.opcode = IBV_WC_RECV;
    completion.wc.qp_num = qp->qp_num;
    completion.qp = qp;
    completion.receive = true;
    PushCompletion(ToCq(qp->recv_cq), completion, false);
  }
}

}  // namespace

bool DriveQp(Qp* qp, uint64_t now, uint64_t most) {
  const bool executed = Execute(qp, now, most);
  while (qp->reported < qp->executed && qp->At(qp->reported).report_ns <= now) {
    ReportSend(qp);
  }
  if (qp->state == IBV_QPS_ERR) FlushQueues(qp);
  if (!qp->pending.empty() &&
      qp->device->node->config.landing == Landing::kRandom) {
    LandSome(qp);
  }
  return executed;
}

namespace {

// Before then nobody would notice what the queue pair does: writes that touch
// no memory and have no completion are done when those behind them are.
uint64_t SeenNs(const Qp* qp) {
  const Node& node = *qp->device->node;
  if (node.config.landing != Landing::kNone || !node.faults.empty()) return 0;
  uint64_t due = 0;
  for (uint64_t i = qp->executed; i < qp->posted; ++i) {
    const SendRequest& request = const_cast<Qp*>(qp)->At(i);
    due = request.due_ns;
    if (!IsWrite(request) || (request.flags & IBV_SEND_SIGNALED) != 0) break;
  }
  return due;
}

}  // namespace

uint64_t NextDueNs(const Qp* qp, uint64_t now) {
  uint64_t due = UINT64_MAX;
  if (HasArrivals(qp)) return 0;
  if (qp->state == IBV_QPS_ERR) {
    const bool flushed =
        qp->reported == qp->posted && qp->recv_taken == qp->recv_posted;
    return flushed ? UINT64_MAX : 0;
  }
  if (qp->state == IBV_QPS_RTS && qp->remote != nullptr &&
      qp->executed < qp->posted) {
    due = std::max(HeadDueNs(const_cast<Qp*>(qp)), SeenNs(qp));
  }
  if (qp->reported < qp->executed) {
    due = std::min(due, const_cast<Qp*>(qp)->At(qp->reported).report_ns);
  }
  return due <= now ? 0 : due;
}

}  // namespace mig::soft
