// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/counters.h"

namespace mig::rdma {
namespace {

constexpr mig_counter Total(const char* name, const char* unit,
                            const char* help) {
  return mig_counter{name, unit, help, MIG_COUNTER_TOTAL, 0};
}
constexpr mig_counter Gauge(const char* name, const char* unit,
                            const char* help) {
  return mig_counter{name, unit, help, MIG_COUNTER_GAUGE, 0};
}
constexpr mig_counter Peak(const char* name, const char* unit,
                           const char* help) {
  return mig_counter{name, unit, help, MIG_COUNTER_PEAK, 0};
}

constexpr std::array<mig_counter, kCounterCount> kTable = {
    Total("bytes-accepted", "B", "guest memory taken by write"),
    Total("bytes-sent", "B", "guest memory posted to the device"),
    Total("bytes-received", "B", "guest memory that arrived"),
    Total("rounds-done", "1", "rounds that are visible at the destination"),
    Total("zero-bytes-accepted", "B", "of bytes-accepted: zero"),
    Total("zero-bytes-found", "B", "of those: found by find-zero"),
    Total("zero-bytes-sent", "B", "of those: told to the peer"),
    Total("zero-bytes-received", "B", "zero runs that arrived"),
    Total("zero-bytes-written", "B", "of those: written"),
    Total("writes", "1", "RDMA WRITE work requests posted"),
    Total("fences", "1", "SENDs behind the writes of a round"),
    Total("doorbells", "1", "lists of work requests posted on data queues"),
    Total("completions", "1", "completions taken from data queues"),
    Total("merges", "1", "ranges that went into the write before"),
    Total("splits", "1", "further writes since a message may not be longer"),
    Gauge("in-flight", "1", "work requests posted and not retired"),
    Peak("in-flight-peak", "1", "work requests posted and not retired"),
    Peak("in-flight-chunk-peak", "1", "the same, to one chunk"),
    Total("chunks-asked", "1", "chunks whose keys were asked for"),
    Total("ranges-aside", "1", "ranges that waited for keys"),
    Peak("ranges-aside-peak", "1", "ranges that waited for keys at a time"),
    Total("registrations", "1", "of the device, by all sessions"),
    Total("registrations-reused", "1", "found registered by a session before"),
    Gauge("registered-bytes", "B", "of the device, by all sessions"),
    Total("register-time", "ns", "in registration calls, over all threads"),
    Total("control-frames-sent", "1", "on the control queue pair"),
    Total("control-frames-received", "1", "on the control queue pair"),
    Total("control-inline", "1", "SENDs that were not copied"),
    Total("control-stalls", "1", "frames that had to wait"),
    Total("messages-sent", "1", "control messages of the host"),
    Total("messages-received", "1", "control messages of the host"),
    Total("write-stalls", "1", "writes that took less than all"),
    Total("stalls-round", "1", "of those: the round before was not done"),
    Total("stalls-send-queue", "1", "of those: every send queue was full"),
    Total("stalls-keys", "1", "of those: keys were missing"),
    Total("stalls-bandwidth", "1", "of those: max-bandwidth"),
    Total("stalls-zero-list", "1", "of those: zero runs were not sent yet"),
    Total("stalls-chunk-busy", "1", "of those: writes-per-chunk=1"),
    Total("stalls-drain", "1", "of those: drain=iterate"),
    Total("send-stalls", "1", "sends that were answered AGAIN"),
    Total("peers-refused", "1", "connections refused while listening"),
};

}  // namespace

std::span<const struct mig_counter> CounterTable() { return kTable; }

}  // namespace mig::rdma
