// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The other end of a connection inside this process.
#include <cstring>

#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

class LocalEnd final : public RemoteEnd {
 public:
  LocalEnd(Fabric* fabric, Node* node, uint32_t dest_qp)
      : fabric_(fabric), node_(node), dest_qp_(dest_qp) {}

  Answer CheckWrite(uint64_t address, uint32_t rkey, uint64_t length) override {
    Qp* qp = Listening();
    if (qp == nullptr) return Answer::Lost();
    return CheckRemoteAccess(qp, address, rkey, length,
                             IBV_ACCESS_REMOTE_WRITE);
  }

  size_t Place(std::span<const Placement> placements, Answer*) override {
    // Acknowledged: what became of the queue pair since then matters no more.
    const Qp* qp = fabric_->FindQp(dest_qp_);
    if (qp == nullptr) return placements.size();
    for (const Placement& placement : placements) {
      const std::optional<MemoryRegion> region =
          qp->device->memory->FindRemote(placement.rkey);
      if (!region.has_value() ||
          !region->Contains(placement.to, placement.length)) {
        continue;
      }
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      std::memmove(reinterpret_cast<void*>(placement.to), placement.from,
                   placement.length);
    }
    return placements.size();
  }

  Answer Deliver(const Message& message) override {
    Qp* qp = Listening();
    return qp == nullptr ? Answer::Lost() : TakeMessage(qp, message);
  }

  Answer Fetch(uint64_t address, uint32_t rkey, uint64_t length,
               std::span<const iovec> to) override {
    Qp* qp = Listening();
    if (qp == nullptr) return Answer::Lost();
    const Answer answer =
        CheckRemoteAccess(qp, address, rkey, length, IBV_ACCESS_REMOTE_READ);
    if (!answer.done()) return answer;
    for (const iovec& part : to) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      std::memmove(part.iov_base, reinterpret_cast<const void*>(address),
                   part.iov_len);
      address += part.iov_len;
    }
    return answer;
  }

 private:
  // The queue pair, if it would answer.
  Qp* Listening() const {
    Qp* qp = fabric_->FindQp(dest_qp_);
    if (qp == nullptr || ToContext(qp->context)->dead ||
        (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS)) {
      return nullptr;
    }
    const Node* there = qp->device->node;
    const uint64_t now = node_->host->NowNs();
    return node_->Silent(now) || there->Silent(now) ? nullptr : qp;
  }

  Fabric* fabric_;
  Node* node_;
  uint32_t dest_qp_;
};

}  // namespace

std::unique_ptr<RemoteEnd> MakeLocalEnd(Fabric* fabric, Node* node,
                                        uint32_t dest_qp) {
  return std::make_unique<LocalEnd>(fabric, node, dest_qp);
}

}  // namespace mig::soft
