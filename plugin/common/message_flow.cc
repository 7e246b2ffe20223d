// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/message_flow.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"

namespace mig {

absl::StatusOr<std::vector<struct mig_iov>> MessageFlow::Pieces(
    const struct mig_iov* iov, size_t count, size_t element_size) const {
  std::vector<struct mig_iov> pieces;
  pieces.reserve(count);
  uint64_t length = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& piece = *reinterpret_cast<const struct mig_iov*>(
        reinterpret_cast<const unsigned char*>(iov) + i * element_size);
    if ((piece.base == nullptr && piece.length > 0) ||
        piece.length > max_message_ - length) {
      return MakeError(
          MIG_E_ARGUMENT,
          absl::StrCat("a message has a null piece or more than the ",
                       max_message_,
                       " bytes agreed: send it in several messages"));
    }
    length += piece.length;
    pieces.push_back(piece);
  }
  return pieces;
}

bool MessageFlow::TakeCredit(uint64_t length) {
  if (!outgoing_.Fits(length)) {
    send_waits_ = true;
    return false;
  }
  outgoing_.Take(length);
  return true;
}

absl::Status MessageFlow::OnCredit(uint64_t charge) {
  if (outgoing_.GiveBack(charge)) return absl::OkStatus();
  return PeerBroke(absl::StrCat("credit of ", charge, " bytes, where ",
                                outgoing_.used(), " are under way"));
}

absl::Status MessageFlow::OnMessage(uint64_t length) {
  if (!incoming_.Fits(length)) {
    return PeerBroke(
        absl::StrCat("a message of ", length, " bytes beyond its credit"));
  }
  incoming_.Take(length);
  return absl::OkStatus();
}

struct mig_event MessageFlow::Keep(uint32_t type,
                                   std::vector<uint8_t> payload) {
  auto message = std::make_unique<Message>();
  message->payload = std::move(payload);
  struct mig_event event = {};
  event.type = MIG_EVENT_MESSAGE;
  event.message = reinterpret_cast<struct mig_message*>(message.get());
  event.length = message->payload.size();
  event.data = event.length == 0 ? nullptr : message->payload.data();
  event.message_type = type;
  messages_[message.get()] = std::move(message);
  return event;
}

bool MessageFlow::Release(const struct mig_message* message) {
  const auto found = messages_.find(message);
  if (found == messages_.end()) return false;
  released_ += MessageCharge(found->second->payload.size());
  messages_.erase(found);
  return true;
}

uint64_t MessageFlow::GiveCredit() {
  incoming_.GiveBack(released_);
  return std::exchange(released_, 0);
}

}  // namespace mig
