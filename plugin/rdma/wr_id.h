// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the wr_id of a data queue pair's work requests says, so that queue
// pairs may share a completion queue. On a failed completion the wr_id is one
// of the few fields that are valid, so everything needed is in it.
#ifndef PLUGIN_RDMA_WR_ID_H_
#define PLUGIN_RDMA_WR_ID_H_

#include <cstdint>

namespace mig::rdma {

// Bits 63..60. Other units choose other kinds for theirs.
enum class WrKind : uint8_t {
  kDataSend = 0xd,     // a write or fence, of WriteQueue
  kFenceReceive = 0xf  // of FenceReceiver
};

// `queue` is the index of the data queue pair in its session, `number` counts
// that queue pair's work requests (52 bits do not wrap in a migration).
constexpr uint64_t MakeWrId(WrKind kind, uint8_t queue, uint64_t number) {
  return static_cast<uint64_t>(kind) << 60 |
         static_cast<uint64_t>(queue) << 52 |
         (number & ((uint64_t{1} << 52) - 1));
}
constexpr bool WrIdIs(uint64_t wr_id, WrKind kind) {
  return wr_id >> 60 == static_cast<uint64_t>(kind);
}
constexpr uint8_t WrIdQueue(uint64_t wr_id) {
  return static_cast<uint8_t>(wr_id >> 52);
}
constexpr uint64_t WrIdNumber(uint64_t wr_id) {
  return wr_id & ((uint64_t{1} << 52) - 1);
}

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WR_ID_H_
