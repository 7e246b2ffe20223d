// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/error.h"

namespace mig::tcp {
namespace {

constexpr char kConnectingLabel[] = "migtransport tcp 1 connecting";
constexpr char kListeningLabel[] = "migtransport tcp 1 listening";
// A window must hold the largest message with its overhead, and no more than
// what a receiver can be made to keep.
constexpr uint64_t kMaxMessageLimit = 64u << 20;
constexpr uint64_t kMaxWindow = 4 * kMaxMessageLimit;

absl::Status Differs(absl::string_view what, absl::string_view ours,
                     absl::string_view theirs) {
  return MakeError(MIG_E_PEER_MISMATCH,
                   absl::StrCat(what, " is ", ours, " here and ", theirs,
                                " at the peer: make both sides agree"));
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

}  // namespace

absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm) {
  *other_vm = false;
  // First who it is: only the right peer may end a session by what it lacks.
  if (ours.uuid != theirs.uuid) {
    *other_vm = true;
    return Differs("the VM", FormatUuid(ours.uuid), FormatUuid(theirs.uuid));
  }
  if (ours.attempt != theirs.attempt) {
    *other_vm = true;
    return Differs("the attempt", absl::StrCat(ours.attempt),
                   absl::StrCat(theirs.attempt));
  }
  const uint32_t version = std::min(ours.wire_max, theirs.wire_max);
  if (version < std::max(ours.wire_min, theirs.wire_min)) {
    return Differs("the wire version",
                   absl::StrCat(ours.wire_min, "..", ours.wire_max),
                   absl::StrCat(theirs.wire_min, "..", theirs.wire_max));
  }
  if (ours.role + theirs.role != MIG_ROLE_SOURCE + MIG_ROLE_DESTINATION) {
    return Differs("the role", RoleName(ours.role), RoleName(theirs.role));
  }
  if (ours.connections != theirs.connections ||
      theirs.connection_index >= theirs.connections) {
    return Differs("the number of connections", absl::StrCat(ours.connections),
                   absl::StrCat(theirs.connections));
  }
  MIG_RETURN_IF_ERROR(CheckExtensions(theirs));
  Agreement agreement;
  agreement.wire_version = version;
  agreement.max_message = std::min(ours.max_message, theirs.max_message);
  // A window without bound would let this side's queue grow without one.
  agreement.peer_window = std::min(theirs.window, kMaxWindow);
  agreement.peer_timeout_ns =
      std::min(ours.peer_timeout_ns, theirs.peer_timeout_ns);
  if (theirs.max_message < MIG_MIN_MESSAGE_MAX ||
      theirs.max_message > kMaxMessageLimit ||
      theirs.window < theirs.max_message ||
      agreement.peer_timeout_ns < 1'000'000) {
    return MakeError(
        MIG_E_PEER_MISMATCH,
        absl::StrCat("the peer offers messages of ", theirs.max_message,
                     " bytes, a window of ", theirs.window,
                     " and a peer timeout of ", theirs.peer_timeout_ns,
                     " ns: version 1 asks for 524288 to 67108864, a window "
                     "that holds one, and 1 ms or more"));
  }
  return agreement;
}

absl::StatusOr<std::vector<uint8_t>> Mac(absl::string_view key,
                                         absl::string_view label,
                                         std::span<const uint8_t> connecting,
                                         std::span<const uint8_t> listening) {
  std::vector<uint8_t> text(label.begin(), label.end());
  text.insert(text.end(), connecting.begin(), connecting.end());
  text.insert(text.end(), listening.begin(), listening.end());
  std::vector<uint8_t> mac(kMacSize);
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(),
           text.size(), mac.data(), &size) == nullptr ||
      size != kMacSize) {
    return MakeError(MIG_E_INTERNAL, "libcrypto can't compute HMAC-SHA256");
  }
  return mac;
}

Handshake::Handshake(std::unique_ptr<Connection> connection, Hello ours,
                     std::string key, bool connecting, uint64_t deadline_ns)
    : connection_(std::move(connection)),
      peer_(connection_->peer()),
      ours_(std::move(ours)),
      our_payload_(EncodeHello(ours_)),
      key_(std::move(key)),
      connecting_(connecting),
      deadline_ns_(deadline_ns) {}

Handshake::Result Handshake::Step(uint64_t now_ns) {
  if (!failure_.ok()) return Result::kFailed;
  if (connecting_ && !started_) {
    connection_->writer().Queue({.type = FrameType::kHello}, our_payload_);
    started_ = true;
  }
  bool ended = false;
  absl::Status status =
      connection_->PumpIn(this, kMaxHandshakePayload * 16, now_ns, &ended);
  if (status.ok()) status = connection_->PumpOut(now_ns);
  if (status.ok() && agreed_) return Result::kAgreed;
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
  if (!peer_refused_) {
    FrameHeader header{.type = FrameType::kAbort};
    header.flags = kAbortGuestNotTaken;
    header.argument = static_cast<uint64_t>(int64_t{ErrorCode(why)});
    const absl::string_view text = why.message().substr(0, kMaxAbortPayload);
    connection_->writer().Queue(
        header,
        std::span<const uint8_t>(reinterpret_cast<const uint8_t*>(text.data()),
                                 text.size()));
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
  return MakeError(
      MIG_E_PEER_PROTOCOL,
      absl::StrCat("the peer sent a frame of type ", static_cast<int>(type),
                   " before the handshake was over"));
}

absl::Status Handshake::OnFrame(const FrameHeader& header,
                                std::vector<uint8_t>* payload) {
  switch (header.type) {
    case FrameType::kHello:
      return OnHello(payload);
    case FrameType::kAuth:
      return OnAuth(*payload);
    default:
      return OnAbort(header, *payload);
  }
}

absl::Status Handshake::OnData(const FrameHeader&, std::span<const uint8_t>,
                               DataPlan*) {
  return MakeError(MIG_E_PEER_PROTOCOL, "the peer sent data first");
}

absl::Status Handshake::OnHello(std::vector<uint8_t>* payload) {
  if (theirs_.has_value()) {
    return MakeError(MIG_E_PEER_PROTOCOL, "the peer sent two hellos");
  }
  absl::StatusOr<Hello> hello = DecodeHello(*payload);
  if (!hello.ok()) return hello.status();
  theirs_ = *std::move(hello);
  their_payload_ = std::move(*payload);
  if (!connecting_) {
    connection_->writer().Queue({.type = FrameType::kHello}, our_payload_);
  }
  if (theirs_->auth != ours_.auth) {
    return MakeError(
        MIG_E_PEER_AUTH,
        ours_.auth != 0
            ? "this side has a key and the peer has none: give the peer the "
              "same key"
            : "the peer has a key and this side has none: give this side the "
              "same key");
  }
  return connecting_ ? SendAuth() : absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> Handshake::SideMac(bool connecting) const {
  if (ours_.auth == 0) return std::vector<uint8_t>();
  return Mac(key_, connecting ? kConnectingLabel : kListeningLabel,
             connecting_ ? our_payload_ : their_payload_,
             connecting_ ? their_payload_ : our_payload_);
}

absl::Status Handshake::SendAuth() {
  const auto mac = SideMac(connecting_);
  if (!mac.ok()) return mac.status();
  connection_->writer().Queue({.type = FrameType::kAuth}, *mac);
  return absl::OkStatus();
}

// Only a peer that has proved itself is told what does not fit, or may end a
// listening session by it.
absl::Status Handshake::OnAuth(std::span<const uint8_t> payload) {
  if (!theirs_.has_value()) {
    return MakeError(MIG_E_PEER_PROTOCOL, "the peer sent no hello first");
  }
  const auto expected = SideMac(!connecting_);
  if (!expected.ok()) return expected.status();
  if (payload.size() != expected->size() ||
      CRYPTO_memcmp(payload.data(), expected->data(), expected->size()) != 0) {
    return MakeError(MIG_E_PEER_AUTH,
                     "the peer does not have the same key: give both sides one "
                     "key");
  }
  bool other_vm = false;
  const auto agreement = Negotiate(ours_, *theirs_, &other_vm);
  if (!agreement.ok()) {
    fatal_ = !other_vm;
    return agreement.status();
  }
  agreement_ = *agreement;
  agreement_.authenticated = ours_.auth != 0;
  if (!connecting_) MIG_RETURN_IF_ERROR(SendAuth());
  agreed_ = true;
  connection_->reader().Hold();
  return absl::OkStatus();
}

absl::Status Handshake::OnAbort(const FrameHeader& header,
                                std::span<const uint8_t> payload) {
  peer_refused_ = true;
  const auto code = static_cast<int32_t>(static_cast<int64_t>(header.argument));
  const bool about_us = code == MIG_E_PEER_AUTH || code == MIG_E_PEER_MISMATCH;
  return MakeError(
      about_us ? code : MIG_E_PEER_FAILED,
      absl::StrCat(
          "the peer refused: ",
          absl::string_view(reinterpret_cast<const char*>(payload.data()),
                            payload.size())));
}

}  // namespace mig::tcp
