// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The capabilities of a queue pair, found by creating it. No query tells how
// much inline data one may have: that depends on the whole combination, and
// each provider has a rule of its own. So what is wished for is tried first,
// and on any failure a little less.
#ifndef PLUGIN_RDMA_CAPS_LADDER_H_
#define PLUGIN_RDMA_CAPS_LADDER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mig::rdma {

// What is wished for, and the least that can be worked with. Inline data may
// always come down to 0, and SGEs of a send to 1.
struct QpWants {
  ibv_qp_cap most = {};
  uint32_t least_send_depth = 1;
  uint32_t least_receive_depth = 0;
};

// One call of a creation function and what came of it.
struct QpAttempt {
  bool extended = false;  // with the operations named, which costs less room
  ibv_qp_cap asked = {};
  ibv_qp_cap granted = {};  // where failure is 0
  int failure = 0;          // errno, 0: made
  bool too_little = false;  // made, but under the least, and destroyed again
};

// What came of all: `granted` rules every later post, whether it is more or
// less than what was asked for (C02).
struct QpGrant {
  bool extended = false;
  ibv_qp_cap asked = {};
  ibv_qp_cap granted = {};
  std::vector<QpAttempt> attempts;
};

// Makes one queue pair; what else it needs is the maker's own affair.
class QpMaker {
 public:
  virtual ~QpMaker() = default;
  // Makes it by the extended call, for SEND and RDMA_WRITE only, or by the
  // plain one. Attributes are set anew each time, since a failed call may have
  // changed them. Writes what was granted to *cap. 0, or a positive errno.
  virtual int Make(bool extended, ibv_qp_cap* cap) = 0;
  // Destroys what the last Make made.
  virtual void Unmake() = 0;
};

// Goes down until a queue pair is made. On each rung the extended call is first
// and the plain one second, whatever the failure was, since providers refuse
// what they do not know in many ways; one that says that it has no extended
// call is not asked again. Rungs: inline down to 0 with all else fixed, then
// SGEs, then depths down to the least. Fills *grant, its attempts also on an
// error. Errors: DEVICE, with every attempt in the message.
absl::Status ClimbDown(const QpWants& wants, QpMaker* maker, QpGrant* grant);

// "ex EINVAL, plain EINVAL at depth/sges/inline 32/2/56 32/2/48; ..."
std::string FormatAttempts(const std::vector<QpAttempt>& attempts);

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CAPS_LADDER_H_
