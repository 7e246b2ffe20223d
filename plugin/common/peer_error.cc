// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/peer_error.h"

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig {
namespace {

int32_t AbortCode(uint64_t argument) {
  return static_cast<int32_t>(static_cast<int64_t>(argument));
}

absl::string_view AsText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::Status PeerBroke(absl::string_view what) {
  return MakeError(
      MIG_E_PEER_PROTOCOL,
      absl::StrCat("the peer sent ", what, ": it is faulty or hostile"));
}

absl::Status NoSuchPeer(absl::string_view what) {
  return MakeError(MIG_E_PEER_PROTOCOL,
                   absl::StrCat("the peer sent ", what,
                                ": it is no migtransport peer, faulty, or "
                                "hostile"));
}

absl::Status PeerDiffers(absl::string_view what, absl::string_view ours,
                         absl::string_view theirs) {
  return MakeError(MIG_E_PEER_MISMATCH,
                   absl::StrCat(what, " is ", ours, " here and ", theirs,
                                " at the peer: make both sides agree"));
}

Abort MakeAbort(const absl::Status& why, bool guest_not_taken) {
  Abort abort;
  if (guest_not_taken) abort.flags = kAbortGuestNotTaken;
  abort.argument = static_cast<uint64_t>(int64_t{ErrorCode(why)});
  const absl::string_view text = why.message().substr(0, kMaxAbortPayload);
  abort.text = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  return abort;
}

absl::Status PeerGaveUp(uint64_t argument, std::span<const uint8_t> text) {
  const int32_t code = AbortCode(argument);
  int32_t ours = MIG_E_PEER_FAILED;
  if (code == MIG_E_CANCELLED) ours = MIG_E_PEER_CANCELLED;
  if (code == MIG_E_PEER_MISMATCH) ours = MIG_E_PEER_MISMATCH;
  return MakeError(ours, absl::StrCat("the peer gave up: ", AsText(text)));
}

absl::Status PeerRefusedUs(uint64_t argument, std::span<const uint8_t> text) {
  const int32_t code = AbortCode(argument);
  const bool about_us = code == MIG_E_PEER_AUTH || code == MIG_E_PEER_MISMATCH;
  return MakeError(about_us ? code : MIG_E_PEER_FAILED,
                   absl::StrCat("the peer refused: ", AsText(text)));
}

}  // namespace mig
