// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Moves a queue pair that is not attached to its id. librdmacm moves those that
// are, and lets nobody change the path it takes from the system: so one whose
// service level is chosen is moved here, with what rdma_init_qp_attr says and
// that level (rdma_establish(3) has this way too).
#ifndef PLUGIN_RDMA_QP_MOVER_H_
#define PLUGIN_RDMA_QP_MOVER_H_

#include <cstdint>

#include "verbs/verbs.h"

namespace mig::rdma {

// These answer 0 or a positive errno; EOPNOTSUPP where rdma-core is too old.
// To INIT: receives may be posted.
int MoveToInit(verbs::Verbs* verbs, rdma_cm_id* id, ibv_qp* qp);
// From INIT by RTR to RTS: the id knows its peer, by a request or a response.
int MoveToRts(verbs::Verbs* verbs, rdma_cm_id* id, ibv_qp* qp,
              uint8_t service_level);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_QP_MOVER_H_
