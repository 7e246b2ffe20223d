// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_COUNTERS_H_
#define PLUGIN_RDMA_COUNTERS_H_

#include <array>
#include <atomic>
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

// Written by the session's caller, read by any thread.
class Counters {
 public:
  void Set(Counter counter, uint64_t value) {
    values_[static_cast<size_t>(counter)].store(value,
                                                std::memory_order_relaxed);
  }
  void Add(Counter counter, uint64_t value) {
    Set(counter, Get(counter) + value);
  }
  uint64_t Get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(
        std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kCounterCount> values_ = {};
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_COUNTERS_H_
