// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/handshake.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::tcp {

absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm) {
  MIG_RETURN_IF_ERROR(CheckIdentity(ours, theirs, other_vm));
  if (ours.connections != theirs.connections ||
      theirs.connection_index >= theirs.connections) {
    return PeerDiffers("the number of connections",
                       absl::StrCat(ours.connections),
                       absl::StrCat(theirs.connections));
  }
  return AgreeOnCommon(ours, theirs);
}

Handshake::Handshake(std::unique_ptr<Connection> connection, Hello ours,
                     std::string key, bool connecting, uint64_t deadline_ns)
    : connection_(std::move(connection)),
      peer_(connection_->peer()),
      connecting_(connecting),
      deadline_ns_(deadline_ns),
      greeting_(std::move(ours), std::move(key), connecting,
                [this](GreetingFrame frame, std::span<const uint8_t> payload) {
                  Send(frame, payload);
                }) {}

void Handshake::Send(GreetingFrame frame, std::span<const uint8_t> payload) {
  const FrameType type =
      frame == GreetingFrame::kHello ? FrameType::kHello : FrameType::kAuth;
  connection_->writer().Queue({.type = type}, payload);
}

Handshake::Result Handshake::Step(uint64_t now_ns) {
  if (!failure_.ok()) return Result::kFailed;
  if (connecting_ && !started_) {
    greeting_.Start();
    started_ = true;
  }
  bool ended = false;
  absl::Status status =
      connection_->PumpIn(this, kMaxHandshakePayload * 16, now_ns, &ended);
  if (status.ok()) status = connection_->PumpOut(now_ns);
  if (status.ok() && greeting_.agreed()) return Result::kAgreed;
  if (status.ok() && ended) {
    status = MakeError(MIG_E_PEER_LOST,
                       "the peer closed the connection in the handshake");
  }
  if (status.ok() && now_ns >= deadline_ns_) {
    status = MakeError(MIG_E_PEER_TIMEOUT,
                       "the peer did not finish the handshake in time: is it a "
                       "migtransport destination?");
  }
  return status.ok() ? Result::kRunning : Failed(status, now_ns);
}

Handshake::Result Handshake::Failed(const absl::Status& why, uint64_t now_ns) {
  failure_ = Annotate(why, absl::StrCat("handshake with ", peer_, ": "));
  if (!greeting_.peer_refused()) {
    const Abort abort = MakeAbort(why, /*guest_not_taken=*/true);
    FrameHeader header{.type = FrameType::kAbort};
    header.flags = abort.flags;
    header.argument = abort.argument;
    connection_->writer().Queue(header, abort.text);
    // One try: a peer that does not read is not waited for.
    connection_->PumpOut(now_ns).IgnoreError();
    connection_->stream().ShutdownWrite();
  }
  return Result::kFailed;
}

absl::StatusOr<uint32_t> Handshake::PayloadLimit(FrameType type) {
  if (type == FrameType::kHello || type == FrameType::kAuth ||
      type == FrameType::kAbort) {
    return tcp::PayloadLimit(type, 0);
  }
  return PeerBroke(absl::StrCat("a frame of type ", static_cast<int>(type),
                                " before the handshake was over"));
}

absl::Status Handshake::OnFrame(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  switch (header.type) {
    case FrameType::kHello:
      return greeting_.OnHello(*payload);
    case FrameType::kAuth:
      MIG_RETURN_IF_ERROR(greeting_.OnAuth(*payload));
      // What follows is the session's.
      connection_->reader().Hold();
      return absl::OkStatus();
    default:
      return greeting_.OnAbort(header.argument, *payload);
  }
}

absl::Status Handshake::OnData(const FrameHeader&, std::span<const uint8_t>,
                               DataPlan*) {
  return PeerBroke("data before the handshake was over");
}

}  // namespace mig::tcp
