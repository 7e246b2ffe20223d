// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the modelled devices have in common with the real ones: their limits,
// and the rule by which they answer a request for queue-pair caps.
#ifndef PLUGIN_SOFT_VERBS_MODELS_H_
#define PLUGIN_SOFT_VERBS_MODELS_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/strings/string_view.h"

namespace mig::soft {

enum class ModelKind { kMlx5, kMlx4, kIrdma, kRxe, kSiw };

// Limits of a device; every one can be set by an option (config.h).
struct Limits {
  uint64_t max_msg_size = 0;
  uint64_t max_mr_size = 0;
  uint64_t max_mr = 0;
  uint64_t max_qp = 0;
  uint64_t max_qp_wr = 0;
  uint64_t max_sge = 0;
  uint64_t max_cq = 0;
  uint64_t max_cqe = 0;
  uint64_t max_inline = 0;
  uint64_t max_pd = 0;
};

struct Model {
  ModelKind kind = ModelKind::kMlx5;
  bool iwarp =
      false;  // connects by rdma_cm only, no immediate data with a write
  bool has_create_ex = false;  // create_qp_ex with send_ops_flags
  const char* name = "";       // "mlx5"
  const char* device = "";     // name of the first device: "mlx5_0"
  Limits limits;
};

// By name; null if there is none.
const Model* FindModel(absl::string_view name);

// What a queue pair was asked for.
struct CapsRequest {
  ibv_qp_cap cap = {};
  bool extended = false;  // through create_qp_ex with send_ops_flags ...
  uint64_t send_ops = 0;  // ... of these
};

// Turns cap into what the device grants. Returns 0, or the errno with which
// the real provider refuses.
int GrantCaps(const Model& model, const Limits& limits, CapsRequest* request);

// Bytes of the send queue that those caps take.
uint64_t SendQueueBytes(const Model& model, const ibv_qp_cap& granted,
                        bool extended);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_MODELS_H_
