// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the wr_id of a control queue pair's work requests says, next to those of
// wr_id.h.
#ifndef PLUGIN_RDMA_CONTROL_WR_H_
#define PLUGIN_RDMA_CONTROL_WR_H_

#include <cstdint>

namespace mig::rdma {

inline constexpr uint64_t kControlKinds = uint64_t{0xf} << 60;
inline constexpr uint64_t kControlSend = uint64_t{0x1} << 60;     // | number
inline constexpr uint64_t kControlReceive = uint64_t{0x2} << 60;  // | slot

// What a SEND holds instead of a send slot.
inline constexpr int32_t kNoSlot = -1;
inline constexpr int32_t kLastSlot = -2;  // the one kept for SLOTS frames

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CONTROL_WR_H_
