// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_TCP_COUNTERS_H_
#define PLUGIN_TCP_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mig_transport.h"

namespace mig::tcp {

// In the order of CounterTable().
enum class Counter : size_t {
  kBytesAccepted,
  kBytesSent,
  kBytesReceived,
  kRoundsDone,
  kZeroBytesAccepted,
  kZeroBytesReceived,
  kZeroBytesWritten,
  kWireBytesSent,
  kWireBytesReceived,
  kBatches,
  kRanges,
  kRangesMerged,
  kSendCalls,
  kReceiveCalls,
  kMessagesSent,
  kMessagesReceived,
  kWriteStalls,
  kSendStalls,
  kPeersRefused,
  kCount
};
inline constexpr size_t kCounterCount = static_cast<size_t>(Counter::kCount);

std::span<const struct mig_counter> CounterTable();

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_COUNTERS_H_
