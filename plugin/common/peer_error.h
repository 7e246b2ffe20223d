// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Errors by what the peer did: one text for each kind, whatever the transport.
#ifndef PLUGIN_COMMON_PEER_ERROR_H_
#define PLUGIN_COMMON_PEER_ERROR_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mig {

// The peer sent `what`, which the protocol does not allow. PEER_PROTOCOL.
absl::Status PeerBroke(absl::string_view what);
// The same of bytes that make no sense: it may not be a migtransport peer.
absl::Status NoSuchPeer(absl::string_view what);
// A value that both sides must share is another one there. PEER_MISMATCH.
absl::Status PeerDiffers(absl::string_view what, absl::string_view ours,
                         absl::string_view theirs);

// In the flags of an ABORT: the sender can no longer take an offered guest.
inline constexpr uint8_t kAbortGuestNotTaken = 1u << 0;
inline constexpr uint32_t kMaxAbortPayload = 512;

// The last frame of a side that fails.
struct Abort {
  uint8_t flags = 0;
  uint64_t argument = 0;          // the sender's error code, sign-extended
  std::span<const uint8_t> text;  // of the status that it was made from
};
Abort MakeAbort(const absl::Status& why, bool guest_not_taken);

// What a received ABORT means for a session, and for a handshake.
absl::Status PeerGaveUp(uint64_t argument, std::span<const uint8_t> text);
absl::Status PeerRefusedUs(uint64_t argument, std::span<const uint8_t> text);

}  // namespace mig

#endif  // PLUGIN_COMMON_PEER_ERROR_H_
