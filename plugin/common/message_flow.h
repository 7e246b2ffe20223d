// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Control messages of a session, both ways: what the peer's credit allows to
// send, and what the host has received and not released yet (rule 11).
#ifndef PLUGIN_COMMON_MESSAGE_FLOW_H_
#define PLUGIN_COMMON_MESSAGE_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/message_credit.h"
#include "mig_transport.h"

namespace mig {

// Not thread-safe (rule 2). Payloads that are not released live as long as it.
class MessageFlow {
 public:
  // `window`: what the peer may have under way to this side.
  explicit MessageFlow(uint64_t window) { incoming_.Open(window); }
  // What was agreed: the peer's window, and the largest message.
  void Open(uint64_t window, uint64_t max_message) {
    outgoing_.Open(window);
    max_message_ = max_message;
  }

  // Sending. The pieces of a message that may be sent. Errors: ARGUMENT.
  absl::StatusOr<std::vector<struct mig_iov>> Pieces(const struct mig_iov* iov,
                                                     size_t count,
                                                     size_t element_size) const;
  // Takes credit for a message. False: there is none, and SEND_READY is due
  // when there is.
  bool TakeCredit(uint64_t length);
  bool SendReadyDue() const {
    return send_waits_ && outgoing_.Fits(max_message_);
  }
  void StopWaiting() { send_waits_ = false; }
  // The peer gives `charge` back. Errors: PROTOCOL.
  absl::Status OnCredit(uint64_t charge);

  // Receiving. A message came. Errors: PROTOCOL when it is beyond its credit.
  absl::Status OnMessage(uint64_t length);
  // Keeps it until Release; the event that hands it to the host.
  struct mig_event Keep(uint32_t type, std::vector<uint8_t> payload);
  // False for what is not a message of this session.
  bool Release(const struct mig_message* message);
  // Whether what was released is worth a frame: in few frames, but never so
  // late that the peer stands still.
  bool CreditDue() const {
    return released_ > 0 && (released_ >= incoming_.window() / 4 ||
                             released_ == incoming_.used());
  }
  // The charge to tell the peer.
  uint64_t GiveCredit();

 private:
  struct Message {
    std::vector<uint8_t> payload;
  };

  CreditWindow outgoing_;
  CreditWindow incoming_;
  uint64_t max_message_ = 0;
  uint64_t released_ = 0;  // charge to be given back
  bool send_waits_ = false;
  absl::flat_hash_map<const void*, std::unique_ptr<Message>> messages_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_MESSAGE_FLOW_H_
