// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/hello.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig {
namespace {

constexpr uint64_t kLeastPeerTimeoutNs = 1'000'000;

const char* RoleName(uint32_t role) {
  switch (role) {
    case MIG_ROLE_SOURCE:
      return "source";
    case MIG_ROLE_DESTINATION:
      return "destination";
    default:
      return "unknown";
  }
}

absl::Status CheckExtensions(const CommonHello& theirs) {
  for (absl::string_view id :
       absl::StrSplit(theirs.extensions, ',', absl::SkipEmpty())) {
    // Version 1 knows none; optional ones are simply not used.
    if (!absl::EndsWith(id, "?")) {
      return MakeError(MIG_E_PEER_MISMATCH,
                       absl::StrCat("the peer requires extension '", id,
                                    "', which this side does not have: do "
                                    "without it, or use a newer plugin"));
    }
  }
  return absl::OkStatus();
}

// What no right peer of version 1 offers.
absl::Status CheckLimits(const CommonHello& theirs) {
  if (theirs.max_message >= MIG_MIN_MESSAGE_MAX &&
      theirs.max_message <= kMostMaxMessage &&
      theirs.window >= theirs.max_message &&
      theirs.peer_timeout_ns >= kLeastPeerTimeoutNs) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_PEER_MISMATCH,
      absl::StrCat("the peer offers messages of ", theirs.max_message,
                   " bytes, a window of ", theirs.window,
                   " and a peer timeout of ", theirs.peer_timeout_ns,
                   " ns: version 1 asks for 524288 to 67108864, a window "
                   "that holds one, and 1 ms or more"));
}

}  // namespace

std::vector<uint8_t> EncodeCommonHello(const CommonHello& hello,
                                       const HelloLayout& layout) {
  std::vector<uint8_t> bytes(layout.fixed_size + hello.extensions.size());
  uint8_t* const to = bytes.data();
  std::copy(layout.magic.begin(), layout.magic.end(), to);
  Put<uint32_t>(to + 8, hello.wire_min);
  Put<uint32_t>(to + 12, hello.wire_max);
  Put<uint32_t>(to + 16, hello.role);
  Put<uint32_t>(to + 20, hello.auth);
  std::copy(hello.uuid.begin(), hello.uuid.end(), to + 24);
  Put<uint64_t>(to + 40, hello.attempt);
  std::copy(hello.nonce.begin(), hello.nonce.end(), to + 48);
  Put<uint64_t>(to + 80, hello.max_message);
  Put<uint64_t>(to + 88, hello.window);
  Put<uint64_t>(to + 96, hello.peer_timeout_ns);
  Put<uint64_t>(to + 112, hello.features);
  Put<uint32_t>(to + layout.extensions_length_at,
                static_cast<uint32_t>(hello.extensions.size()));
  std::copy(hello.extensions.begin(), hello.extensions.end(),
            to + layout.fixed_size);
  return bytes;
}

absl::Status DecodeCommonHello(std::span<const uint8_t> payload,
                               const HelloLayout& layout, CommonHello* hello) {
  if (payload.size() < layout.fixed_size ||
      !std::equal(layout.magic.begin(), layout.magic.end(), payload.begin())) {
    return NoSuchPeer("no hello of this protocol first");
  }
  const uint8_t* const from = payload.data();
  hello->wire_min = Get<uint32_t>(from + 8);
  hello->wire_max = Get<uint32_t>(from + 12);
  hello->role = Get<uint32_t>(from + 16);
  hello->auth = Get<uint32_t>(from + 20);
  std::copy_n(from + 24, MIG_UUID_SIZE, hello->uuid.begin());
  hello->attempt = Get<uint64_t>(from + 40);
  std::copy_n(from + 48, kNonceSize, hello->nonce.begin());
  hello->max_message = Get<uint64_t>(from + 80);
  hello->window = Get<uint64_t>(from + 88);
  hello->peer_timeout_ns = Get<uint64_t>(from + 96);
  hello->features = Get<uint64_t>(from + 112);
  const uint32_t extensions = Get<uint32_t>(from + layout.extensions_length_at);
  if (extensions > kMaxExtensions ||
      extensions != payload.size() - layout.fixed_size) {
    return NoSuchPeer(absl::StrCat("a hello of ", payload.size(),
                                   " bytes with extensions of ", extensions));
  }
  hello->extensions.assign(
      reinterpret_cast<const char*>(from) + layout.fixed_size, extensions);
  if (!std::all_of(hello->extensions.begin(), hello->extensions.end(),
                   [](char c) { return c > 0x20 && c < 0x7f; })) {
    return NoSuchPeer("a hello with unprintable extensions");
  }
  return absl::OkStatus();
}

absl::Status CheckBothHaveKeys(const CommonHello& ours,
                               const CommonHello& theirs) {
  if (ours.auth == theirs.auth) return absl::OkStatus();
  return MakeError(
      MIG_E_PEER_AUTH,
      ours.auth != 0
          ? "this side has a key and the peer has none: give the peer the "
            "same key"
          : "the peer has a key and this side has none: give this side the "
            "same key");
}

absl::Status CheckIdentity(const CommonHello& ours, const CommonHello& theirs,
                           bool* other_vm) {
  *other_vm = true;
  if (ours.uuid != theirs.uuid) {
    return PeerDiffers("the VM", FormatUuid(ours.uuid),
                       FormatUuid(theirs.uuid));
  }
  if (ours.attempt != theirs.attempt) {
    return PeerDiffers("the attempt", absl::StrCat(ours.attempt),
                       absl::StrCat(theirs.attempt));
  }
  *other_vm = false;
  if (std::min(ours.wire_max, theirs.wire_max) <
      std::max(ours.wire_min, theirs.wire_min)) {
    return PeerDiffers("the wire version",
                       absl::StrCat(ours.wire_min, "..", ours.wire_max),
                       absl::StrCat(theirs.wire_min, "..", theirs.wire_max));
  }
  if (theirs.role !=
      (ours.role == MIG_ROLE_SOURCE ? MIG_ROLE_DESTINATION : MIG_ROLE_SOURCE)) {
    return PeerDiffers("the role", RoleName(ours.role), RoleName(theirs.role));
  }
  return absl::OkStatus();
}

absl::StatusOr<CommonAgreement> AgreeOnCommon(const CommonHello& ours,
                                              const CommonHello& theirs) {
  MIG_RETURN_IF_ERROR(CheckExtensions(theirs));
  MIG_RETURN_IF_ERROR(CheckLimits(theirs));
  CommonAgreement agreement;
  agreement.wire_version = std::min(ours.wire_max, theirs.wire_max);
  agreement.max_message = std::min(ours.max_message, theirs.max_message);
  // A window without bound would let this side's queue grow without one.
  agreement.peer_window = std::min(theirs.window, kMostWindow);
  agreement.peer_timeout_ns =
      std::min(ours.peer_timeout_ns, theirs.peer_timeout_ns);
  return agreement;
}

}  // namespace mig
