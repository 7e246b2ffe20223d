// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/fabric.h"

#include <algorithm>

#include "soft-verbs/queue_pair.h"

namespace mig::soft {

std::shared_ptr<Fabric> Fabric::Named(absl::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Fabric>, std::less<>> fabrics;
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Fabric>& known = fabrics[std::string(name)];
  std::shared_ptr<Fabric> fabric = known.lock();
  if (fabric == nullptr) {
    fabric = std::make_shared<Fabric>();
    known = fabric;
  }
  return fabric;
}

void Fabric::Join(Node* node, uint64_t seed) {
  // The first one's seed orders them all.
  if (nodes_.empty()) random_ = Random(seed);
  nodes_.push_back(node);
}

void Fabric::Leave(Node* node) { std::erase(nodes_, node); }

uint32_t Fabric::Add(Qp* qp) {
  while (qps_.contains(next_qp_)) ++next_qp_;
  qps_[next_qp_] = qp;
  // Numbers have 24 bits, and 0 and 1 are special.
  const uint32_t number = next_qp_;
  next_qp_ = next_qp_ == 0xffffff ? 0x11 : next_qp_ + 1;
  return number;
}

void Fabric::Remove(Qp* qp) { qps_.erase(qp->qp_num); }

Qp* Fabric::FindQp(uint32_t number) const {
  const auto found = qps_.find(number);
  return found == qps_.end() ? nullptr : found->second;
}

uint32_t Fabric::Add(CmId* id) {
  ids_[next_id_] = id;
  return next_id_++;
}

void Fabric::Remove(CmId* id) { ids_.erase(id->number); }

CmId* Fabric::FindId(uint32_t number) const {
  const auto found = ids_.find(number);
  return found == ids_.end() ? nullptr : found->second;
}

void Fabric::Schedule(uint64_t due_ns, uint32_t to, CmMessage message) {
  messages_.emplace(std::make_pair(due_ns, sequence_++),
                    std::make_pair(to, std::move(message)));
}

void Fabric::Forget(uint32_t id) {
  std::erase_if(messages_, [id](const auto& scheduled) {
    const auto& [to, message] = scheduled.second;
    return to == id && message.kind <= CmMessage::Kind::kTimeout;
  });
}

void Fabric::DeliverMessages(uint64_t now) {
  while (!messages_.empty() && messages_.begin()->first.first <= now) {
    const auto [to, message] = std::move(messages_.begin()->second);
    messages_.erase(messages_.begin());
    // Whoever it was for may be gone.
    CmId* id = FindId(to);
    if (id != nullptr) {
      OnMessage(id, message);
    } else {
      OnStray(this, message, now);
    }
  }
}

void Fabric::Drive(uint64_t now) {
  for (Node* node : nodes_) ApplyDueFaults(node, 0, now);
  DeliverMessages(now);
  std::vector<Qp*> order;
  for (const auto& [number, qp] : qps_) {
    if (soft::NextDueNs(qp, now) == 0 || !qp->pending.empty()) {
      order.push_back(qp);
    }
  }
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_.Below(i)]);
  }
  bool executed = false;
  for (Qp* qp : order) {
    // With random landing a queue pair may also fall behind the others.
    const bool some = qp->device->node->config.landing == Landing::kRandom;
    const uint64_t most =
        some ? random_.Below(qp->posted - qp->executed + 1) : UINT64_MAX;
    executed |= DriveQp(qp, now, most);
  }
  if (executed) return;
  for (Qp* qp : order) DriveQp(qp, now, UINT64_MAX);
}

uint64_t Fabric::NextDueNs(uint64_t now) const {
  uint64_t due = UINT64_MAX;
  if (!messages_.empty()) due = messages_.begin()->first.first;
  for (const auto& [number, qp] : qps_) {
    due = std::min(due, soft::NextDueNs(qp, now));
  }
  for (const Node* node : nodes_) {
    const uint64_t fault = node->faults.NextNs();
    if (fault != UINT64_MAX) due = std::min(due, node->start_ns + fault);
  }
  return due <= now ? 0 : due;
}

}  // namespace mig::soft
