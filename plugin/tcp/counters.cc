// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/counters.h"

namespace mig::tcp {
namespace {

constexpr struct mig_counter Total(const char* name, const char* unit,
                                   const char* help) {
  return {name, unit, help, MIG_COUNTER_TOTAL, 0};
}

constexpr std::array<struct mig_counter, kCounterCount> kTable = {
    Total("bytes-accepted", "B", "guest memory taken by write, zeros included"),
    Total("bytes-sent", "B", "guest memory handed to the system"),
    Total("bytes-received", "B", "guest memory that arrived"),
    Total("rounds-done", "1", "rounds that are visible at the destination"),
    Total("zero-bytes-accepted", "B", "of bytes-accepted: marked zero"),
    Total("zero-bytes-received", "B", "zero ranges that arrived"),
    Total("zero-bytes-written", "B", "of those: not known to be zero before"),
    Total("wire-bytes-sent", "B", "everything handed to the system"),
    Total("wire-bytes-received", "B", "everything that arrived"),
    Total("batches", "1", "data frames"),
    Total("ranges", "1", "ranges in data frames"),
    Total("ranges-merged", "1", "ranges that went into the one before"),
    Total("send-calls", "1", "sendmsg calls"),
    Total("receive-calls", "1", "recvmsg calls"),
    Total("messages-sent", "1", "control messages"),
    Total("messages-received", "1", "control messages"),
    Total("write-stalls", "1", "writes that took less than all"),
    Total("send-stalls", "1", "sends that were answered AGAIN"),
    Total("peers-refused", "1", "connections refused while listening"),
};

}  // namespace

std::span<const struct mig_counter> CounterTable() { return kTable; }

}  // namespace mig::tcp
