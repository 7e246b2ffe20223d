// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The fault schedule of a device: what goes wrong, and when. Text, one entry a
// line or separated by ';', '#' starts a comment:
//
//   call NAME K ERRNO [minus-one]   the K-th call of Verbs::NAME ("RegMr",
//                                   "CmConnect") fails with ERRNO, in the way
//                                   that this call reports errors; with
//                                   minus-one as -1 and errno, where it would
//                                   have answered an errno
//   post K ERRNO [minus-one]        ibv_post_send stops at work request K,
//                                   which bad_wr names
//   wc K STATUS                     work request K ends with STATUS, as in
//                                   IBV_WC_RETRY_EXC_ERR without IBV_WC_
//   delay K NS                      work request K takes NS longer
//   hold K NS                       its completion is reported NS later than
//                                   it happened; other QPs go on
//   drop K [N]                      its first N transmissions are lost;
//                                   for ever without N
//   disconnect K                    the connection breaks at work request K
//   fatal WHEN                      the device dies: IBV_EVENT_DEVICE_FATAL
//   removal WHEN                    the same, and RDMA_CM_EVENT_DEVICE_REMOVAL
//   qp-fatal K                      IBV_EVENT_QP_FATAL on K's queue pair
//   port-down WHEN                  IBV_EVENT_PORT_ERR; packets are lost
//   port-up WHEN                    IBV_EVENT_PORT_ACTIVE; they no longer are
//   stop WHEN NS                    the device is silent for NS (0: for ever)
//   no-device K                     the K-th CmResolveAddr finds an address
//                                   that belongs to no device
//   addr-error K | route-error K    the K-th CmResolveAddr or CmResolveRoute
//                                   ends in its error event
//   reject K                        the K-th CmConnect is rejected by the
//                                   peer's stack (status 8)
//   connect-error K                 the K-th CmConnect is accepted, but fails
//
// K counts from 1. Work requests are counted over all queue pairs of one
// SoftVerbs, in the order of posting; calls each by name. WHEN is a work
// request's number, or "@NS", nanoseconds after the SoftVerbs was made.
#ifndef PLUGIN_SOFT_VERBS_FAULTS_H_
#define PLUGIN_SOFT_VERBS_FAULTS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::soft {

struct Fault {
  enum class Kind {
    kCall,
    kPost,
    kStatus,
    kDelay,
    kHold,
    kDrop,
    kDisconnect,
    kFatal,
    kRemoval,
    kQpFatal,
    kPortDown,
    kPortUp,
    kStop,
    kNoDevice,
    kAddrError,
    kRouteError,
    kReject,
    kConnectError
  };
  Kind kind = Kind::kCall;
  std::string name;     // kCall
  uint64_t number = 0;  // K; of a timed one 0
  uint64_t at_ns = 0;   // "@NS"
  bool timed = false;
  int error = 0;  // errno, or ibv_wc_status
  bool minus_one = false;
  uint64_t value = 0;  // NS or N
};

// Errors: OPTION, naming the line and what is allowed there.
absl::StatusOr<std::vector<Fault>> ParseFaults(absl::string_view text);

// Keeps the counts. Not thread-safe.
class Faults {
 public:
  using Kind = Fault::Kind;

  Faults() = default;
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  bool empty() const { return faults_.empty(); }
  // Counts a call of this name; the fault that hits it, or null.
  const Fault* OnCall(absl::string_view name);
  // Counts one of what a numbered kind counts, e.g. kReject counts connects.
  bool Hits(Kind kind);
  // The fault of this kind for work request `number`, or null.
  const Fault* ForRequest(Kind kind, uint64_t number) const;
  // The faults of the device as a whole (fatal, removal, ports, stop) that
  // become due with work request `number`, or by `ns` after the start; each
  // once. At most one a call: call until null.
  const Fault* TakeDue(uint64_t number, uint64_t ns);
  // When the next timed fault is due after the start, UINT64_MAX if none.
  uint64_t NextNs() const;

 private:
  std::vector<Fault> faults_;
  std::vector<bool> taken_;
  std::map<std::string, uint64_t, std::less<>> calls_;
  std::map<Kind, uint64_t> counts_;
};

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_FAULTS_H_
