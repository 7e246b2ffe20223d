// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Completion queues and their events.
#ifndef PLUGIN_SOFT_VERBS_COMPLETION_QUEUE_H_
#define PLUGIN_SOFT_VERBS_COMPLETION_QUEUE_H_

#include "soft-verbs/objects.h"

namespace mig::soft {

// Adds a completion. A full queue is an overrun: the queue dies, and with it
// every queue pair on it. `solicited` is that of the sender.
void PushCompletion(Cq* cq, const Completion& completion, bool solicited);
// A queue pair that is destroyed takes its completions along.
void DropCompletions(Cq* cq, const Qp* qp);
void DropEvents(Cq* cq);

// The hot calls of ibv_context_ops; they take the fabric's lock.
int PollCq(ibv_cq* cq, int count, ibv_wc* wc);
int RequestNotify(ibv_cq* cq, int solicited_only);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_COMPLETION_QUEUE_H_
