// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_COUNTERS_H_
#define PLUGIN_RDMA_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mig_transport.h"

namespace mig::rdma {

// In the order of CounterTable().
enum class Counter : size_t {
  kBytesAccepted,
  kBytesSent,
  kBytesReceived,
  kRoundsDone,
  kZeroBytesAccepted,
  kZeroBytesFound,
  kZeroBytesSent,
  kZeroBytesReceived,
  kZeroBytesWritten,
  kWrites,
  kFences,
  kDoorbells,
  kCompletions,
  kMerges,
  kSplits,
  kInFlight,
  kPeakInFlight,
  kPeakPerChunk,
  kChunksAsked,
  kRangesAside,
  kPeakAside,
  kRegistrations,
  kRegistrationsReused,
  kRegisteredBytes,
  kRegisterNs,
  kControlFramesSent,
  kControlFramesReceived,
  kControlInline,
  kControlStalls,
  kMessagesSent,
  kMessagesReceived,
  kWriteStalls,
  kStallRound,
  kStallSendQueue,
  kStallKeys,
  kStallBandwidth,
  kStallZeroList,
  kStallChunkBusy,
  kStallDrain,
  kSendStalls,
  kPeersRefused,
  kCount
};
inline constexpr size_t kCounterCount = static_cast<size_t>(Counter::kCount);

std::span<const struct mig_counter> CounterTable();

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_COUNTERS_H_
