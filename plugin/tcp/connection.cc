// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/connection.h"

#include <algorithm>

#include "common/error.h"

namespace mig::tcp {

absl::StatusOr<std::unique_ptr<Connection>> Connection::Create(
    std::unique_ptr<ByteStream> stream, std::string peer, Poller* poller,
    uint64_t now_ns) {
  std::unique_ptr<Connection> connection(
      new Connection(std::move(stream), std::move(peer), poller, now_ns));
  if (poller != nullptr && connection->polled_) {
    MIG_RETURN_IF_ERROR(
        poller->Watch(connection->stream_->fd(), &connection->readiness_));
  }
  return connection;
}

Connection::~Connection() {
  if (poller_ != nullptr && polled_) poller_->Unwatch(stream_->fd());
}

uint64_t Connection::DueNs(bool reading) const {
  uint64_t due_ns = MIG_NO_DEADLINE;
  if (polled_) return due_ns;
  const StreamDue due = stream_->Due();
  if (reading && !ended_ && due.read_ns != 0) due_ns = due.read_ns;
  if (!writer_.empty() && due.write_ns != 0) {
    due_ns = std::min(due_ns, due.write_ns);
  }
  return due_ns;
}

absl::Status Connection::PumpIn(FrameHandler* handler, uint64_t budget,
                                uint64_t now_ns, bool* ended) {
  *ended = ended_;
  if (!CanReceive()) return absl::OkStatus();
  const uint64_t before = reader_.counts().wire_bytes;
  const auto outcome = reader_.Pump(stream_.get(), handler, budget);
  // A peer is not silent while what it sent, such as zeros, is still worked on.
  if (reader_.counts().wire_bytes != before ||
      (outcome.ok() && *outcome == ReadOutcome::kYield)) {
    last_received_ns_ = now_ns;
  }
  if (!outcome.ok()) return outcome.status();
  if (*outcome == ReadOutcome::kDry) readiness_.readable = false;
  if (*outcome == ReadOutcome::kEnd) *ended = ended_ = true;
  return absl::OkStatus();
}

absl::Status Connection::PumpOut(uint64_t now_ns) {
  if (!CanSend()) return absl::OkStatus();
  const uint64_t before = writer_.counts().wire_bytes;
  bool blocked = false;
  absl::Status status = writer_.Pump(stream_.get(), &blocked);
  if (writer_.counts().wire_bytes != before) last_sent_ns_ = now_ns;
  if (blocked) readiness_.writable = false;
  return status;
}

}  // namespace mig::tcp
