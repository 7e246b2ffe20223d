// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The part of a queue pair that its peer in another process works on: the
// receives that are posted, what has arrived in them, and whether the queue
// pair answers at all. It lies in a shared file that the queue pair owns; the
// peer takes receives and writes into them itself, as a device would, whether
// this process runs at that moment or not.
#ifndef PLUGIN_SOFT_VERBS_QP_SHARE_H_
#define PLUGIN_SOFT_VERBS_QP_SHARE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "soft-verbs/shared_segment.h"

namespace mig::soft {

// What the peer found that the owner must act on.
enum class Violation : uint32_t {
  kNone,
  kAccess,     // a request for memory that it must not reach
  kConnection  // the connection broke
};

struct ShareHeader {
  uint32_t magic;
  uint32_t depth;  // receives
  uint32_t sges;   // of each
  uint32_t pd;
  std::atomic<uint32_t> state;    // ibv_qp_state
  std::atomic<uint32_t> access;   // of the queue pair
  std::atomic<uint32_t> min_rnr;  // code of the timer
  std::atomic<uint32_t> silent;   // a fault: no answers
  std::atomic<uint32_t> armed;    // the owner wants to be woken
  std::atomic<uint32_t> busy;     // the peer is at work on the owner's memory
  std::atomic<uint32_t> violation;
  std::atomic<uint64_t> posted;  // by the owner
  std::atomic<uint64_t> taken;   // by the peer
};

// One receive: what was posted (`sges`), then what arrived (the others).
struct ShareSlot {
  uint32_t sges;
  uint32_t status;
  uint64_t length;
  uint32_t source_qp;
  __be32 imm;
  uint32_t written;
  uint32_t with_imm;
  uint32_t solicited;
};

class QpShare {
 public:
  static constexpr uint32_t kMagic = 0x6d677132;

  // Of an owner; null if there is no memory.
  static std::unique_ptr<QpShare> Make(uint32_t depth, uint32_t sges,
                                       uint32_t pd);
  // Of a peer, from the file that the owner sent; null if it is not one.
  static std::unique_ptr<QpShare> Open(int fd);

  int fd() const { return file_.get(); }
  ShareHeader& header() { return *header_; }
  uint32_t depth() const { return depth_; }
  uint32_t max_sges() const { return sges_; }
  ShareSlot& SlotAt(uint64_t index) { return slots_[index % depth_]; }
  ibv_sge* SgesAt(uint64_t index) { return sge_list_ + index % depth_ * sges_; }

  // -- Owner --------------------------------------------------------------
  void Publish(uint64_t index, const ibv_sge* sges, uint32_t count);
  // Waits until the peer is not at work on this process's memory; a peer that
  // was stopped in the middle is not waited for longer than a moment.
  void WaitIdle();

 private:
  QpShare() = default;
  bool Lay(uint32_t depth, uint32_t sges);

  OwnedFd file_;
  SharedMapping mapping_;
  ShareHeader* header_ = nullptr;
  ShareSlot* slots_ = nullptr;
  ibv_sge* sge_list_ = nullptr;
  // Copies: what lies in the shared file may change under us.
  uint32_t depth_ = 0;
  uint32_t sges_ = 0;
  bool stuck_ = false;  // the peer was busy for too long; once is enough
};

// The peer's work on the owner's memory, between "busy" and "not".
class ShareGuard {
 public:
  explicit ShareGuard(QpShare* share) : share_(share) {
    share_->header().busy.store(1, std::memory_order_seq_cst);
  }
  ~ShareGuard() { share_->header().busy.store(0, std::memory_order_release); }
  ShareGuard(const ShareGuard&) = delete;
  ShareGuard& operator=(const ShareGuard&) = delete;

 private:
  QpShare* share_;
};

struct Qp;
// Takes over what the peer has done: completions, violations. Returns whether
// there was anything.
bool Harvest(Qp* qp, bool silent);
// Whether Harvest would find something.
bool HasArrivals(const Qp* qp);
// Shows the peer what it must know after a change of state or attributes.
void PublishState(Qp* qp);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_QP_SHARE_H_
