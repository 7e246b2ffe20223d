// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/handshake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer_error.h"
#include "mig_transport.h"

namespace mig::rdma {

Handshake::Handshake(ControlChannel* channel, Hello ours, std::string key,
                     bool connecting)
    : channel_(channel),
      greeting_(std::move(ours), std::move(key), connecting,
                [this](GreetingFrame frame, std::span<const uint8_t> payload) {
                  Send(frame, payload);
                }) {}

void Handshake::Send(GreetingFrame frame, std::span<const uint8_t> payload) {
  channel_->Send(
      frame == GreetingFrame::kHello ? FrameType::kHello : FrameType::kAuth, 0,
      payload);
}

void Handshake::Fail(const absl::Status& why) {
  channel_->DropUnsent();
  if (greeting_.peer_refused()) return;
  const Abort abort = MakeAbort(why, /*guest_not_taken=*/true);
  FrameHeader header{.type = FrameType::kAbort};
  header.flags = abort.flags;
  header.argument = abort.argument;
  const struct mig_iov piece = {abort.text.data(), abort.text.size()};
  channel_->Send(header, std::span<const struct mig_iov>(&piece, 1));
}

absl::Status Handshake::OnFrame(const FrameHeader& header,
                                std::span<const uint8_t> payload,
                                std::vector<uint8_t>*) {
  // What follows the agreement is the session's, which comes to it next.
  switch (header.type) {
    case FrameType::kHello:
      return greeting_.OnHello(payload);
    case FrameType::kAuth:
      return greeting_.OnAuth(payload);
    case FrameType::kAbort:
      return greeting_.OnAbort(header.argument, payload);
    default:
      return PeerBroke(absl::StrCat(FrameName(header.type),
                                    " before the handshake was over"));
  }
}

absl::StatusOr<std::array<uint8_t, kShortMacSize>> Handshake::DataMac(
    bool connecting, uint16_t index) const {
  const auto role =
      static_cast<uint8_t>(connecting ? MIG_ROLE_SOURCE : MIG_ROLE_DESTINATION);
  return DataQpMac(greeting_.key(), greeting_.HelloOf(true),
                   greeting_.HelloOf(false), role, index);
}

}  // namespace mig::rdma
