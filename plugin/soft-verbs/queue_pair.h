// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Queue pairs: posting to them, driving them, and their states.
#ifndef PLUGIN_SOFT_VERBS_QUEUE_PAIR_H_
#define PLUGIN_SOFT_VERBS_QUEUE_PAIR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "soft-verbs/objects.h"

namespace mig::soft {

// The hot calls of ibv_context_ops; they take the fabric's lock.
int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int PostRecv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// Does what is due on the send queue, and flushes both queues of one in error.
// `most` work requests at most are executed; returns whether any was.
bool DriveQp(Qp* qp, uint64_t now, uint64_t most);
// When DriveQp next has something to do: 0 at once, UINT64_MAX never.
uint64_t NextDueNs(const Qp* qp, uint64_t now);

// Where a work request's bytes are. nullopt: an lkey, a bound, a right or a
// protection domain is wrong.
std::optional<std::vector<iovec>> Locate(const Qp* qp, const ibv_sge* sges,
                                         size_t count, bool to_write);

// ibv_modify_qp and ibv_query_qp, without the lock.
int ModifyQpState(Qp* qp, const ibv_qp_attr& attr, int mask);
void QueryQpState(const Qp* qp, ibv_qp_attr* attr);
void EnterError(Qp* qp);
// The connection under it breaks: both ends fail, and hear of it.
void BreakConnection(Qp* qp);

// The responder's side (responder.cc).
Answer CheckRemoteAccess(Qp* qp, uint64_t address, uint32_t rkey,
                         uint64_t length, uint32_t right);
Answer TakeMessage(Qp* qp, const Message& message);
uint64_t RnrTimerNs(uint8_t code);

// The other end, in the same process.
std::unique_ptr<RemoteEnd> MakeLocalEnd(Fabric* fabric, Node* node,
                                        uint32_t dest_qp);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_QUEUE_PAIR_H_
