// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/hello.h"

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/error.h"
#include "common/wire_bytes.h"

namespace mig::rdma {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {'M', 'I', 'G',  'R',
                                           'D', 'M', '\r', '\n'};
constexpr uint64_t kLeastPeerTimeoutNs = 1'000'000;

absl::Status Broken(absl::string_view what) {
  return MakeError(MIG_E_PEER_PROTOCOL,
                   absl::StrCat("the peer sent ", what,
                                ": it is no migtransport peer, faulty, or "
                                "hostile"));
}

absl::Status Differs(absl::string_view what, absl::string_view ours,
                     absl::string_view theirs) {
  return MakeError(MIG_E_PEER_MISMATCH,
                   absl::StrCat(what, " is ", ours, " here and ", theirs,
                                " at the peer: make both sides agree"));
}

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

absl::Status CheckExtensions(const Hello& theirs) {
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
absl::Status CheckLimits(const Hello& theirs) {
  if (theirs.max_message < MIG_MIN_MESSAGE_MAX ||
      theirs.max_message > kMostMaxMessage ||
      theirs.window < theirs.max_message ||
      theirs.peer_timeout_ns < kLeastPeerTimeoutNs) {
    return MakeError(
        MIG_E_PEER_MISMATCH,
        absl::StrCat("the peer offers messages of ", theirs.max_message,
                     " bytes, a window of ", theirs.window,
                     " and a peer timeout of ", theirs.peer_timeout_ns,
                     " ns: version 1 asks for 524288 to 67108864, a window "
                     "that holds one, and 1 ms or more"));
  }
  if (theirs.chunk_size < kLeastChunkSize ||
      theirs.chunk_size > kMostChunkSize ||
      !std::has_single_bit(theirs.chunk_size)) {
    return MakeError(
        MIG_E_PEER_MISMATCH,
        absl::StrCat("the peer offers chunks of ", theirs.chunk_size,
                     " bytes: version 1 asks for a power of two from 1 MiB to "
                     "1 GiB"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<uint8_t> EncodeHello(const Hello& hello) {
  std::vector<uint8_t> bytes(kHelloFixedSize + hello.extensions.size());
  uint8_t* const to = bytes.data();
  std::copy(kMagic.begin(), kMagic.end(), to);
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
  Put<uint64_t>(to + 104, hello.chunk_size);
  Put<uint64_t>(to + 112, hello.features);
  Put<uint32_t>(to + 120, hello.data_qps);
  Put<uint32_t>(to + 124, static_cast<uint32_t>(hello.extensions.size()));
  std::copy(hello.extensions.begin(), hello.extensions.end(),
            to + kHelloFixedSize);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload) {
  if (payload.size() < kHelloFixedSize ||
      !std::equal(kMagic.begin(), kMagic.end(), payload.begin())) {
    return Broken("no hello of this protocol first");
  }
  const uint8_t* const from = payload.data();
  Hello hello;
  hello.wire_min = Get<uint32_t>(from + 8);
  hello.wire_max = Get<uint32_t>(from + 12);
  hello.role = Get<uint32_t>(from + 16);
  hello.auth = Get<uint32_t>(from + 20);
  std::copy_n(from + 24, MIG_UUID_SIZE, hello.uuid.begin());
  hello.attempt = Get<uint64_t>(from + 40);
  std::copy_n(from + 48, kNonceSize, hello.nonce.begin());
  hello.max_message = Get<uint64_t>(from + 80);
  hello.window = Get<uint64_t>(from + 88);
  hello.peer_timeout_ns = Get<uint64_t>(from + 96);
  hello.chunk_size = Get<uint64_t>(from + 104);
  hello.features = Get<uint64_t>(from + 112);
  hello.data_qps = Get<uint32_t>(from + 120);
  const uint32_t extensions = Get<uint32_t>(from + 124);
  if (extensions > kMaxExtensions ||
      extensions != payload.size() - kHelloFixedSize) {
    return Broken(absl::StrCat("a hello of ", payload.size(),
                               " bytes with extensions of ", extensions));
  }
  hello.extensions.assign(reinterpret_cast<const char*>(from) + kHelloFixedSize,
                          extensions);
  if (!std::all_of(hello.extensions.begin(), hello.extensions.end(),
                   [](char c) { return c > 0x20 && c < 0x7f; })) {
    return Broken("a hello with unprintable extensions");
  }
  return hello;
}

absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm) {
  *other_vm = true;
  // First who it is: only the right peer may end a session by what it lacks.
  if (ours.uuid != theirs.uuid) {
    return Differs("the VM", FormatUuid(ours.uuid), FormatUuid(theirs.uuid));
  }
  if (ours.attempt != theirs.attempt) {
    return Differs("the attempt", absl::StrCat(ours.attempt),
                   absl::StrCat(theirs.attempt));
  }
  *other_vm = false;
  const uint32_t version = std::min(ours.wire_max, theirs.wire_max);
  if (version < std::max(ours.wire_min, theirs.wire_min)) {
    return Differs("the wire version",
                   absl::StrCat(ours.wire_min, "..", ours.wire_max),
                   absl::StrCat(theirs.wire_min, "..", theirs.wire_max));
  }
  // Not by their sum: two strange numbers may have the right one.
  if (theirs.role !=
      (ours.role == MIG_ROLE_SOURCE ? MIG_ROLE_DESTINATION : MIG_ROLE_SOURCE)) {
    return Differs("the role", RoleName(ours.role), RoleName(theirs.role));
  }
  if (ours.data_qps != theirs.data_qps) {
    return Differs("data-qps", absl::StrCat(ours.data_qps),
                   absl::StrCat(theirs.data_qps));
  }
  MIG_RETURN_IF_ERROR(CheckExtensions(theirs));
  MIG_RETURN_IF_ERROR(CheckLimits(theirs));
  Agreement agreement;
  agreement.wire_version = version;
  agreement.max_message = std::min(ours.max_message, theirs.max_message);
  // A window without bound would let this side's queue grow without one.
  agreement.peer_window = std::min(theirs.window, kMostWindow);
  agreement.peer_timeout_ns =
      std::min(ours.peer_timeout_ns, theirs.peer_timeout_ns);
  agreement.chunk_size = std::min(ours.chunk_size, theirs.chunk_size);
  agreement.data_qps = ours.data_qps;
  return agreement;
}

}  // namespace mig::rdma
