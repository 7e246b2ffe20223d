// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::tcp {
namespace {

constexpr char kConnectingLabel[] = "migtransport tcp 1 connecting";
constexpr char kListeningLabel[] = "migtransport tcp 1 listening";

}  // namespace

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
  MIG_RETURN_IF_ERROR(CheckBothHaveKeys(ours_, *theirs_));
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
  return PeerRefusedUs(header.argument, payload);
}

}  // namespace mig::tcp
