// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// When a write's bytes are read and when they land. A device reads its source
// at any moment before the completion that retires the write, perhaps twice,
// and its bytes may land as late as the completion of a receive that a later
// message on the same queue pair takes (the fence). Here that freedom is used:
// `latest` reads and lands at the last moment, `random` at seeded ones.
#ifndef PLUGIN_SOFT_VERBS_LANDING_H_
#define PLUGIN_SOFT_VERBS_LANDING_H_

#include <cstdint>
#include <vector>

#include "soft-verbs/objects.h"

namespace mig::soft {

// A write that the other end accepted, or its part from byte `from` on: lands
// it, or keeps it for later (whole ones only). `relaxed`: the memory there was
// registered with relaxed ordering.
void LandWrite(Qp* qp, uint64_t index, uint64_t from, bool relaxed,
               const std::vector<iovec>& source);
// Places what is batched. Returns the index of the first request that could
// not be placed, with *answer; qp->executed if there was none.
uint64_t PlaceBatch(Qp* qp, Answer* answer);
// Requests before `index` are about to be retired: their sources are read now.
void CapturePending(Qp* qp, uint64_t index);
// A fence, or the end of the queue pair: everything lands.
void LandAll(Qp* qp);
// `random`: lands some, now and then.
void LandSome(Qp* qp);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_LANDING_H_
