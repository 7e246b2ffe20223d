// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What connects the soft devices of one process: queue pairs and connection
// identifiers by number, messages on their way, and the one lock over all.
#ifndef PLUGIN_SOFT_VERBS_FABRIC_H_
#define PLUGIN_SOFT_VERBS_FABRIC_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/random.h"
#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/objects.h"

namespace mig::soft {

// Thread-safe through mutex(): whoever calls anything else holds it. All nodes
// of a fabric must have the same clock. Nothing in it depends on addresses of
// objects: iteration is by number.
class Fabric {
 public:
  Fabric() : random_(0) {}

  // The one of this name in this process; made when it is first asked for, and
  // gone with the last who holds it.
  static std::shared_ptr<Fabric> Named(absl::string_view name);

  std::mutex& mutex() { return mutex_; }

  void Join(Node* node, uint64_t seed);
  void Leave(Node* node);

  // Queue pairs and ids get their number here.
  uint32_t Add(Qp* qp);
  void Remove(Qp* qp);
  Qp* FindQp(uint32_t number) const;
  uint32_t Add(CmId* id);
  void Remove(CmId* id);
  CmId* FindId(uint32_t number) const;
  const std::map<uint32_t, CmId*>& ids() const { return ids_; }
  const std::map<uint32_t, Qp*>& qps() const { return qps_; }

  // A message to an id in this process, delivered by Drive when due.
  void Schedule(uint64_t due_ns, uint32_t to, CmMessage message);

  // What an id sent itself is outdated, but for the end of its time-wait.
  void Forget(uint32_t id);

  void Drive(uint64_t now);
  uint64_t NextDueNs(uint64_t now) const;

 private:
  void DeliverMessages(uint64_t now);

  std::mutex mutex_;
  Random random_;
  std::vector<Node*> nodes_;
  std::map<uint32_t, Qp*> qps_;
  std::map<uint32_t, CmId*> ids_;
  std::map<std::pair<uint64_t, uint64_t>, std::pair<uint32_t, CmMessage>>
      messages_;  // by due time, then order of sending
  uint64_t sequence_ = 0;
  std::vector<Qp*> order_;  // Drive's own, kept for its room
  uint32_t next_qp_ = 0x11;
  uint32_t next_id_ = 1;
};

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_FABRIC_H_
