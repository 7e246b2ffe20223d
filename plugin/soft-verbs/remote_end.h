// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a requester sees of the queue pair at the other end: the same for one
// in this process and for one in another.
#ifndef PLUGIN_SOFT_VERBS_REMOTE_END_H_
#define PLUGIN_SOFT_VERBS_REMOTE_END_H_

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mig::soft {

// How the other end answers one request.
struct Answer {
  enum class Kind {
    kDone,      // acknowledged
    kLost,      // no answer at all
    kNotReady,  // no receive is posted: again after `wait_ns`
    kRefused    // a NAK: the work request ends with `status`
  };
  Kind kind = Kind::kDone;
  ibv_wc_status status = IBV_WC_SUCCESS;
  uint64_t wait_ns = 0;
  bool relaxed = false;  // of CheckWrite: the region allows relaxed ordering

  bool done() const { return kind == Kind::kDone; }
  static Answer Lost() { return {Kind::kLost, IBV_WC_RETRY_EXC_ERR, 0, false}; }
  static Answer NotReady(uint64_t ns) {
    return {Kind::kNotReady, IBV_WC_RNR_RETRY_EXC_ERR, ns, false};
  }
  static Answer Refused(ibv_wc_status status) {
    return {Kind::kRefused, status, 0, false};
  }
};

// Bytes on their way into the other end's memory.
struct Placement {
  const void* from = nullptr;
  uint64_t to = 0;
  size_t length = 0;
  uint32_t rkey = 0;
  uint64_t request = 0;  // the requester's own index of the work request
};

// What takes a receive: a SEND, or the end of a write with immediate data.
struct Message {
  std::span<const iovec> payload;
  uint64_t length = 0;  // of the payload, or of what was written
  bool written = false;
  bool with_imm = false;
  bool solicited = false;
  __be32 imm = 0;
  uint32_t source_qp = 0;
};

// Used under the fabric's lock.
class RemoteEnd {
 public:
  virtual ~RemoteEnd() = default;

  // Whether [address, address + length) may be written with this key.
  virtual Answer CheckWrite(uint64_t address, uint32_t rkey,
                            uint64_t length) = 0;
  // Places them in order, checked again: a region may be gone meanwhile, then
  // its bytes are dropped. Returns how many are done with; fewer than all
  // where the other end can't be written to, and *answer says why.
  virtual size_t Place(std::span<const Placement> placements,
                       Answer* answer) = 0;
  virtual Answer Deliver(const Message& message) = 0;
  // Reads [address, address + length) into `to`.
  virtual Answer Fetch(uint64_t address, uint32_t rkey, uint64_t length,
                       std::span<const iovec> to) = 0;
};

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_REMOTE_END_H_
