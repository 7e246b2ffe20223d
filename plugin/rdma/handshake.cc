// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/handshake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "mig_transport.h"

namespace mig::rdma {
namespace {

constexpr char kConnectingLabel[] = "migtransport rdma 1 connecting";
constexpr char kListeningLabel[] = "migtransport rdma 1 listening";

}  // namespace

Handshake::Handshake(ControlChannel* channel, Hello ours, std::string key,
                     bool connecting)
    : channel_(channel),
      ours_(std::move(ours)),
      our_payload_(EncodeHello(ours_)),
      key_(std::move(key)),
      connecting_(connecting) {}

void Handshake::Start() { channel_->Send(FrameType::kHello, 0, our_payload_); }

void Handshake::Fail(const absl::Status& why) {
  channel_->DropUnsent();
  if (peer_refused_) return;
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
      return OnHello(payload);
    case FrameType::kAuth:
      return OnAuth(payload);
    case FrameType::kAbort:
      return OnAbort(header, payload);
    default:
      return MakeError(MIG_E_PEER_PROTOCOL,
                       absl::StrCat("the peer sent ", FrameName(header.type),
                                    " before the handshake was over"));
  }
}

absl::Status Handshake::OnHello(std::span<const uint8_t> payload) {
  if (theirs_.has_value()) {
    return MakeError(MIG_E_PEER_PROTOCOL, "the peer sent two hellos");
  }
  absl::StatusOr<Hello> hello = DecodeHello(payload);
  if (!hello.ok()) return hello.status();
  theirs_ = *std::move(hello);
  their_payload_.assign(payload.begin(), payload.end());
  if (!connecting_) Start();
  MIG_RETURN_IF_ERROR(CheckBothHaveKeys(ours_, *theirs_));
  return connecting_ ? SendAuth() : absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> Handshake::SideMac(bool connecting) const {
  if (ours_.auth == 0) return std::vector<uint8_t>();
  const auto mac =
      HelloMac(key_, connecting ? kConnectingLabel : kListeningLabel,
               HelloOf(true), HelloOf(false));
  if (!mac.ok()) return mac.status();
  return std::vector<uint8_t>(mac->begin(), mac->end());
}

absl::Status Handshake::SendAuth() {
  const auto mac = SideMac(connecting_);
  if (!mac.ok()) return mac.status();
  channel_->Send(FrameType::kAuth, 0, *mac);
  return absl::OkStatus();
}

// Only a peer that has proved itself is told what does not fit, or may end a
// listening session by it.
absl::Status Handshake::OnAuth(std::span<const uint8_t> payload) {
  if (!theirs_.has_value() || agreed_) {
    return MakeError(MIG_E_PEER_PROTOCOL, "the peer sent a proof out of place");
  }
  const auto expected = SideMac(!connecting_);
  if (!expected.ok()) return expected.status();
  if (!SameMac(payload, *expected)) {
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
  return absl::OkStatus();
}

absl::Status Handshake::OnAbort(const FrameHeader& header,
                                std::span<const uint8_t> payload) {
  peer_refused_ = true;
  return PeerRefusedUs(header.argument, payload);
}

absl::StatusOr<std::array<uint8_t, kShortMacSize>> Handshake::DataMac(
    bool connecting, uint16_t index) const {
  const auto role =
      static_cast<uint8_t>(connecting ? MIG_ROLE_SOURCE : MIG_ROLE_DESTINATION);
  return DataQpMac(key_, HelloOf(true), HelloOf(false), role, index);
}

}  // namespace mig::rdma
