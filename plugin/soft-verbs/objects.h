// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The objects that a user of the soft device holds: each begins with the
// struct of the verbs header that the user sees.
#ifndef PLUGIN_SOFT_VERBS_OBJECTS_H_
#define PLUGIN_SOFT_VERBS_OBJECTS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "soft-verbs/event_fd.h"
#include "soft-verbs/qp_share.h"
#include "soft-verbs/remote_end.h"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace mig::soft {

class Fabric;
struct CmId;
struct Device;
struct Node;

struct Context : verbs_context {
  Device* device = nullptr;
  EventFd async;
  std::deque<ibv_async_event> events;
  uint32_t references = 0;  // PDs, CQs and channels
  uint32_t unacked = 0;     // port and device events
  bool dead = false;        // its device died; a new context works
};

struct Pd : ibv_pd {
  uint32_t references = 0;  // MRs and QPs
};

struct Mr : ibv_mr {
  uint32_t slot = 0;
  uint64_t pinned = 0;
};

struct Cq;

struct CompChannel : ibv_comp_channel {
  EventFd event;
  std::vector<Cq*> events;  // a few at most
};

struct Qp;

// A completion as it waits to be polled, and what polling it frees.
struct Completion {
  ibv_wc wc = {};
  Qp* qp = nullptr;
  bool receive = false;
  uint64_t upto = 0;  // send slots before this index are free then
};

struct Cq : ibv_cq {
  enum class Armed { kNo, kSolicited, kNext };

  std::vector<Completion> ring;
  size_t head = 0;
  // Also read without the lock, so that polling an empty queue costs nothing.
  std::atomic<size_t> count{0};
  Armed armed = Armed::kNo;
  bool overrun = false;
  uint32_t references = 0;  // QPs
  uint32_t unacked = 0;     // events of its channel
  uint32_t unacked_async = 0;
};

struct SendRequest {
  uint64_t wr_id = 0;
  uint64_t number = 0;  // over all queue pairs of the node, from 1
  uint64_t remote = 0;
  uint64_t length = 0;
  uint64_t due_ns = 0;     // when its answer can be here
  uint64_t report_ns = 0;  // when its completion shows
  uint64_t losses = 0;     // by a fault
  uint32_t rkey = 0;
  uint32_t sges = 0;
  uint32_t flags = 0;
  __be32 imm = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  ibv_wc_status status = IBV_WC_SUCCESS;
};

struct RecvRequest {
  uint64_t wr_id = 0;
  uint32_t sges = 0;
};

// A write that is acknowledged, and whose bytes have not landed (landing.h).
struct PendingWrite {
  uint64_t request = 0;
  uint64_t remote = 0;
  uint32_t rkey = 0;
  uint64_t length = 0;
  std::vector<iovec> source;     // until captured
  std::vector<std::byte> bytes;  // once captured
  bool captured = false;
  bool relaxed = false;
};

struct Qp : ibv_qp {
  Device* device = nullptr;
  ibv_qp_cap cap = {};
  bool extended = false;
  bool signal_all = false;
  CmId* cm = nullptr;
  uint32_t unacked_async = 0;

  // Set by ModifyQp or by the connection manager.
  uint32_t dest_qp = 0;
  ibv_ah_attr path = {};
  uint32_t access = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t timeout = 14;
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  std::unique_ptr<RemoteEnd> remote;
  bool remote_process = false;     // the other end is in another process ...
  std::unique_ptr<QpShare> share;  // ... which works on this

  // The send queue: indices only grow; a slot is index % send.size().
  // freed <= reported <= executed <= posted.
  std::vector<SendRequest> send;
  std::vector<ibv_sge> send_sges;      // cap.max_send_sge a slot
  std::vector<std::byte> send_inline;  // cap.max_inline_data a slot
  uint64_t posted = 0;
  uint64_t executed = 0;
  uint64_t reported = 0;
  uint64_t freed = 0;
  uint64_t blocked_until_ns = 0;
  uint32_t attempts = 0;      // of the next request, unanswered
  uint32_t rnr_attempts = 0;  // of the next request, not ready
  uint64_t drive_left = 0;    // bytes that this Drive may still move
  uint64_t head_moved = 0;    // bytes of the next request that have landed
  std::vector<Placement> batch;
  std::vector<iovec> bytes;     // of the next request
  std::vector<iovec> receives;  // of the receive that is taken
  std::deque<PendingWrite> pending;
  uint64_t pending_bytes = 0;

  // The receive queue, in the same way: freed <= taken <= posted.
  std::vector<RecvRequest> recv;
  std::vector<ibv_sge> recv_sges;
  uint64_t recv_posted = 0;
  uint64_t recv_taken = 0;
  uint64_t recv_freed = 0;

  SendRequest& At(uint64_t index) { return send[index % send.size()]; }
  ibv_sge* SgesAt(uint64_t index) {
    return send_sges.data() + index % send.size() * cap.max_send_sge;
  }
  std::byte* InlineAt(uint64_t index) {
    return send_inline.data() + index % send.size() * cap.max_inline_data;
  }
};

// A context of the device, and its end. Null with errno without a file
// descriptor for it.
Context* MakeContext(Device* device);
void DestroyContext(Context* context);
// Events that the user has not retrieved go with what they are about.
void DropAsyncEvents(Context* context, const Qp* qp, const Cq* cq);

// Makes a queue pair, or answers an errno. `extended` with send_ops.
int NewQp(Pd* pd, ibv_qp_init_attr* attr, bool extended, uint64_t send_ops,
          Qp** qp);
// 0, or EBUSY while events of it are not acknowledged.
int DeleteQp(Qp* qp);

// The object behind what the user holds.
inline Context* ToContext(ibv_context* context) {
  return static_cast<Context*>(verbs_get_ctx(context));
}
inline Pd* ToPd(ibv_pd* pd) { return static_cast<Pd*>(pd); }
inline Mr* ToMr(ibv_mr* mr) { return static_cast<Mr*>(mr); }
inline CompChannel* ToChannel(ibv_comp_channel* channel) {
  return static_cast<CompChannel*>(channel);
}
inline Cq* ToCq(ibv_cq* cq) { return static_cast<Cq*>(cq); }
inline Qp* ToQp(ibv_qp* qp) { return static_cast<Qp*>(qp); }

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_OBJECTS_H_
