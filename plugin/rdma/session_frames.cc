// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the peer sends on control. Everything in it is hostile until checked
// (H6).
#include <utility>

#include "common/error.h"
#include "common/peer_error.h"
#include "rdma/session.h"

namespace mig::rdma {

absl::Status Session::OnFrame(const FrameHeader& header,
                              std::span<const uint8_t> payload,
                              std::vector<uint8_t>* whole) {
  if (rules_.failed()) return absl::OkStatus();
  switch (header.type) {
    case FrameType::kAbort:
      return OnAbort(header.flags, header.argument, payload);
    case FrameType::kBlocks:
      return OnBlocks(payload);
    case FrameType::kPrepared:
      if (std::exchange(peer_prepared_, true) || !preparing_) {
        return PeerBroke("word that it is prepared out of place");
      }
      // A source begins its rounds at once: they may be right behind.
      StepPreparing();
      return absl::OkStatus();
    case FrameType::kAsk:
      return OnAsk(payload);
    case FrameType::kKeys:
      return OnKeys(payload);
    case FrameType::kZero:
      return OnZero(payload);
    case FrameType::kRoundEnd:
      return OnRoundEnd(header.argument, payload);
    case FrameType::kRoundAck:
      return OnRoundAck(header.argument);
    case FrameType::kMessage:
      return OnMessage(header, whole);
    case FrameType::kBlockRemoved:
      return OnBlockRemoved(header.argument);
    case FrameType::kHello:
    case FrameType::kAuth:
      return PeerBroke("a second handshake");
    default: {
      const auto shared = SharedFrameOf(kSharedTypes, header.type);
      return shared ? OnSharedFrame(*shared, header.argument)
                    : absl::OkStatus();
    }
  }
}

// One that comes while a round's data is on its way was sent after round_end,
// and is the host's after ROUND_DONE (C35).
absl::Status Session::OnMessage(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  MIG_RETURN_IF_ERROR(messages_.OnMessage(payload->size()));
  CountMessage(/*sent=*/false);
  if (rules_.closing()) return absl::OkStatus();
  const uint32_t type = LongValue(header.argument);
  if (round_end_) {
    undelivered_.push_back({type, std::move(*payload)});
  } else {
    Deliver(type, std::move(*payload));
  }
  return absl::OkStatus();
}

bool Session::InsideRoundOrExchange() const {
  return round_end_ || zero_bytes_ != 0 || their_table_ || preparing_;
}

}  // namespace mig::rdma
