// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a session tells about itself.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/session.h"

namespace mig::rdma {

// Asked for, granted, and every attempt that was made.
void Session::AddQpCaps(const char* name, const CmQp& qp) {
  const QpGrant& grant = qp.grant();
  const ibv_qp_cap cap = qp.cap();
  const ibv_qp_cap& wish =
      grant.attempts.empty() ? grant.asked : grant.attempts[0].asked;
  capability_texts_.push_back(FormatAttempts(grant.attempts));
  const auto add = [this, name](const char* what, const char* unit,
                                uint64_t asked, uint64_t granted,
                                const char* text) {
    capability_texts_.push_back(absl::StrCat(name, "-", what));
    capabilities_.push_back({capability_texts_.back().c_str(), unit, asked,
                             granted, granted, text});
  };
  const char* const attempts = capability_texts_.back().c_str();
  add("send-depth", "1", wish.max_send_wr, cap.max_send_wr, attempts);
  add("send-sges", "1", wish.max_send_sge, cap.max_send_sge, "");
  add("inline", "B", wish.max_inline_data, cap.max_inline_data, "");
  add("receives", "1", wish.max_recv_wr, cap.max_recv_wr, "");
  const uint64_t bytes =
      pool_->verbs()->SendQueueBytes(grant.granted, grant.extended);
  add("send-queue-bytes", "B", bytes, bytes,
      grant.extended ? "made with SEND and RDMA_WRITE only" : "made plain");
}

void Session::GetCaps(struct mig_caps* caps) {
  const Hello& hello = settings_.opener.hello;
  const Agreement& agreement = opened_.agreement;
  capabilities_.clear();
  capability_texts_.clear();
  // Texts must not move while capabilities point to them.
  capability_texts_.reserve(32);
  const auto add = [this](const char* name, const char* unit, uint64_t asked,
                          uint64_t negotiated) {
    capabilities_.push_back({name, unit, asked, asked, negotiated, ""});
  };
  add("wire-version", "1", hello.wire_max, agreement.wire_version);
  add("data-qps", "1", hello.data_qps, agreement.data_qps);
  add("chunk-size", "B", hello.chunk_size, agreement.chunk_size);
  add("max-message", "B", hello.max_message, agreement.max_message);
  add("message-window", "B", hello.window, agreement.peer_window);
  add("peer-timeout", "ns", hello.peer_timeout_ns, agreement.peer_timeout_ns);
  add("authentication", "1", hello.auth, agreement.authenticated ? 1 : 0);
  if (linked()) {
    AddQpCaps("control", opened_.control->qp());
    if (!opened_.data.empty()) AddQpCaps("data", *opened_.data[0]);
  }
  // As for blocks: what is paged on demand may be discarded.
  caps->flags = pool_->settings().on_demand ? 0 : MIG_CAP_PINS_MEMORY;
  FillCaps(hello, caps);
  caps->details = capabilities_.data();
  caps->detail_count = capabilities_.size();
  caps->detail_size = sizeof(struct mig_capability);
}

void Session::PublishCounters() {
  counters_.Set(Counter::kPeersRefused, refused_);
  counters_.Set(Counter::kRoundsDone, rules_.done_round());
  counters_.Set(Counter::kZeroBytesWritten, zeros_.bytes_written());
  const DataWriterStats& w = writer_stats_;
  counters_.Set(Counter::kBytesAccepted, w.bytes_accepted);
  counters_.Set(Counter::kBytesSent, w.writes.bytes + w.zero_bytes_told);
  counters_.Set(Counter::kZeroBytesAccepted, w.zero_bytes_accepted);
  counters_.Set(Counter::kZeroBytesFound, w.zero_bytes_found);
  counters_.Set(Counter::kZeroBytesSent, w.zero_bytes_told);
  counters_.Set(Counter::kWrites, w.writes.writes);
  counters_.Set(Counter::kFences, w.writes.fences);
  counters_.Set(Counter::kDoorbells, w.writes.doorbells);
  counters_.Set(Counter::kCompletions, w.writes.cqes);
  counters_.Set(Counter::kMerges, w.writes.merges);
  counters_.Set(Counter::kSplits, w.writes.splits);
  counters_.Set(Counter::kInFlight, w.writes.in_flight);
  counters_.Set(Counter::kPeakInFlight, w.writes.peak_in_flight);
  counters_.Set(Counter::kPeakPerChunk, w.writes.peak_per_chunk);
  counters_.Set(Counter::kChunksAsked, w.chunks_asked);
  counters_.Set(Counter::kRangesAside, w.ranges_aside);
  counters_.Set(Counter::kPeakAside, w.peak_aside);
  for (size_t i = 1; i < kStalls; ++i) {
    counters_.Set(
        static_cast<Counter>(static_cast<size_t>(Counter::kStallRound) + i - 1),
        w.stalls[i]);
  }
  if (!rails_.empty()) {
    const RegistrationStats r = rails_.stats();
    counters_.Set(Counter::kRegistrations, r.registrations);
    counters_.Set(Counter::kRegistrationsReused, r.reused);
    counters_.Set(Counter::kRegisteredBytes, r.bytes);
    counters_.Set(Counter::kRegisterNs, r.register_ns);
  }
  if (!linked()) return;
  const ControlCounts& c = channel().counts();
  counters_.Set(Counter::kControlFramesSent, c.frames_sent);
  counters_.Set(Counter::kControlFramesReceived, c.frames_received);
  counters_.Set(Counter::kControlInline, c.inline_sends);
  counters_.Set(Counter::kControlStalls, c.send_stalls);
}

}  // namespace mig::rdma
