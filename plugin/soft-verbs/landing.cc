// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/landing.h"

#include <cstring>

#include "soft-verbs/device.h"

namespace mig::soft {
namespace {

// More than this is landed early: it would take too much memory.
constexpr uint64_t kMaxPendingBytes = uint64_t{64} << 20;

void Capture(PendingWrite* write) {
  if (write->captured) return;
  write->captured = true;
  write->bytes.resize(write->length);
  std::byte* to = write->bytes.data();
  for (const iovec& part : write->source) {
    std::memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
}

// Lands one of the pending ones and forgets it.
void LandOne(Qp* qp, size_t at) {
  PendingWrite& write = qp->pending[at];
  Capture(&write);
  const Placement placement = {write.bytes.data(), write.remote, write.length,
                               write.rkey, write.request};
  Answer answer;
  // Acknowledged long ago: there is nobody left to tell of a failure.
  if (qp->remote != nullptr) qp->remote->Place({&placement, 1}, &answer);
  qp->pending_bytes -= write.length;
  qp->pending.erase(qp->pending.begin() + static_cast<std::ptrdiff_t>(at));
}

void Batch(Qp* qp, uint64_t index, uint64_t from,
           const std::vector<iovec>& source) {
  const SendRequest& request = qp->At(index);
  uint64_t to = request.remote + from;
  for (const iovec& part : source) {
    qp->batch.push_back({part.iov_base, to, part.iov_len, request.rkey, index});
    to += part.iov_len;
  }
}

void Keep(Qp* qp, uint64_t index, bool relaxed, bool capture,
          const std::vector<iovec>& source) {
  const SendRequest& request = qp->At(index);
  PendingWrite write;
  write.request = index;
  write.remote = request.remote;
  write.rkey = request.rkey;
  write.length = request.length;
  write.relaxed = relaxed;
  write.source = source;
  // Inline data lies in a slot that is reused.
  if (capture || (request.flags & IBV_SEND_INLINE) != 0) Capture(&write);
  qp->pending_bytes += write.length;
  qp->pending.push_back(std::move(write));
  while (qp->pending_bytes > kMaxPendingBytes) LandOne(qp, 0);
}

}  // namespace

void LandWrite(Qp* qp, uint64_t index, uint64_t from, bool relaxed,
               const std::vector<iovec>& source) {
  Node* node = qp->device->node;
  switch (node->config.landing) {
    case Landing::kEarliest:
      Batch(qp, index, from, source);
      return;
    case Landing::kLatest:
      Keep(qp, index, relaxed, /*capture=*/false, source);
      return;
    case Landing::kNone:
      return;
    case Landing::kRandom:
      break;
  }
  switch (node->random.Below(4)) {
    case 0:  // now; writes of one queue pair land in order
      LandAll(qp);
      Batch(qp, index, from, source);
      return;
    case 1:  // now, and read and written once more later
      LandAll(qp);
      Batch(qp, index, from, source);
      Keep(qp, index, relaxed, /*capture=*/false, source);
      return;
    case 2:  // read now, lands later
      Keep(qp, index, relaxed, /*capture=*/true, source);
      return;
    default:
      Keep(qp, index, relaxed, /*capture=*/false, source);
      return;
  }
}

uint64_t PlaceBatch(Qp* qp, Answer* answer) {
  if (qp->batch.empty()) return qp->executed;
  const size_t placed = qp->remote->Place(qp->batch, answer);
  const uint64_t first_bad =
      placed == qp->batch.size() ? qp->executed : qp->batch[placed].request;
  qp->batch.clear();
  return first_bad;
}

void CapturePending(Qp* qp, uint64_t index) {
  for (PendingWrite& write : qp->pending) {
    if (write.request < index) Capture(&write);
  }
}

void LandAll(Qp* qp) {
  while (!qp->pending.empty()) LandOne(qp, 0);
}

void LandSome(Qp* qp) {
  Random& random = qp->device->node->random;
  uint64_t count = random.Below(qp->pending.size() + 1);
  for (; count > 0 && !qp->pending.empty(); --count) {
    // Writes to memory with relaxed ordering pass each other.
    const size_t at = random.Below(qp->pending.size());
    LandOne(qp, qp->pending[at].relaxed ? at : 0);
  }
}

}  // namespace mig::soft
