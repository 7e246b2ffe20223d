// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// HELLO and AUTH: who the peer is, that it has the key, and what both agree on,
// before anything of the guest is told. How frames travel is the transport's.
#ifndef PLUGIN_COMMON_GREETING_H_
#define PLUGIN_COMMON_GREETING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/error.h"
#include "common/hello.h"
#include "common/hello_mac.h"
#include "common/peer_error.h"

namespace mig {

enum class GreetingFrame { kHello, kAuth };

// One side of it. `Protocol` has the types Hello and Agreement, the functions
// Encode, Decode and Negotiate of the transport's hello, and the labels
// kConnecting and kListening of the two sides' proofs. Not thread-safe.
template <typename Protocol>
class Greeting {
 public:
  using Hello = typename Protocol::Hello;
  using Agreement = typename Protocol::Agreement;
  // Copies the payload.
  using Send = std::function<void(GreetingFrame, std::span<const uint8_t>)>;

  // `ours` needs a fresh nonce. `key` is empty for none.
  Greeting(Hello ours, std::string key, bool connecting, Send send)
      : ours_(std::move(ours)),
        our_payload_(Protocol::Encode(ours_)),
        key_(std::move(key)),
        connecting_(connecting),
        send_(std::move(send)) {}

  // The connecting side's first word.
  void Start() { send_(GreetingFrame::kHello, our_payload_); }
  // The peer's words. Errors: PROTOCOL, AUTH, MISMATCH naming both values.
  absl::Status OnHello(std::span<const uint8_t> payload);
  absl::Status OnAuth(std::span<const uint8_t> payload);
  absl::Status OnAbort(uint64_t argument, std::span<const uint8_t> text) {
    peer_refused_ = true;
    return PeerRefusedUs(argument, text);
  }

  bool agreed() const { return agreed_; }
  const Agreement& agreement() const { return agreement_; }
  // After an error: the right peer, which can't be agreed with, so that a
  // listening session ends too.
  bool fatal() const { return fatal_; }
  // After an error: the peer knows, since it said so.
  bool peer_refused() const { return peer_refused_; }
  // The peer has said a valid hello.
  bool spoke() const { return theirs_.has_value(); }
  // The hello of the side that connects, or of the other, as it was sent.
  const std::vector<uint8_t>& HelloOf(bool connecting) const {
    return connecting == connecting_ ? our_payload_ : their_payload_;
  }
  const std::string& key() const { return key_; }

 private:
  // Empty without a key.
  absl::StatusOr<std::vector<uint8_t>> ProofOf(bool connecting) const;
  absl::Status SendProof();

  const Hello ours_;
  const std::vector<uint8_t> our_payload_;
  const std::string key_;
  const bool connecting_;
  const Send send_;
  std::optional<Hello> theirs_;
  std::vector<uint8_t> their_payload_;
  Agreement agreement_;
  bool agreed_ = false;
  bool fatal_ = false;
  bool peer_refused_ = false;
};

template <typename Protocol>
absl::Status Greeting<Protocol>::OnHello(std::span<const uint8_t> payload) {
  if (theirs_.has_value()) return PeerBroke("a second hello");
  absl::StatusOr<Hello> hello = Protocol::Decode(payload);
  if (!hello.ok()) return hello.status();
  theirs_ = *std::move(hello);
  their_payload_.assign(payload.begin(), payload.end());
  if (!connecting_) Start();
  MIG_RETURN_IF_ERROR(CheckBothHaveKeys(ours_, *theirs_));
  return connecting_ ? SendProof() : absl::OkStatus();
}

template <typename Protocol>
absl::StatusOr<std::vector<uint8_t>> Greeting<Protocol>::ProofOf(
    bool connecting) const {
  if (ours_.auth == 0) return std::vector<uint8_t>();
  const auto mac =
      HelloMac(key_, connecting ? Protocol::kConnecting : Protocol::kListening,
               HelloOf(true), HelloOf(false));
  if (!mac.ok()) return mac.status();
  return std::vector<uint8_t>(mac->begin(), mac->end());
}

template <typename Protocol>
absl::Status Greeting<Protocol>::SendProof() {
  const auto proof = ProofOf(connecting_);
  if (!proof.ok()) return proof.status();
  send_(GreetingFrame::kAuth, *proof);
  return absl::OkStatus();
}

// Only a peer that has proved itself is told what does not fit, or may end a
// listening session by it.
template <typename Protocol>
absl::Status Greeting<Protocol>::OnAuth(std::span<const uint8_t> payload) {
  if (!theirs_.has_value() || agreed_) {
    return PeerBroke("a proof out of place");
  }
  const auto expected = ProofOf(!connecting_);
  if (!expected.ok()) return expected.status();
  if (!SameMac(payload, *expected)) {
    return MakeError(MIG_E_PEER_AUTH,
                     "the peer does not have the same key: give both sides one "
                     "key");
  }
  bool other_vm = false;
  const auto agreement = Protocol::Negotiate(ours_, *theirs_, &other_vm);
  if (!agreement.ok()) {
    fatal_ = !other_vm;
    return agreement.status();
  }
  agreement_ = *agreement;
  agreement_.authenticated = ours_.auth != 0;
  if (!connecting_) MIG_RETURN_IF_ERROR(SendProof());
  agreed_ = true;
  return absl::OkStatus();
}

}  // namespace mig

#endif  // PLUGIN_COMMON_GREETING_H_
