// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// HELLO and AUTH: who the peer is, that it has the key, and what both agree on,
// before anything of the guest is told.
#ifndef PLUGIN_TCP_HANDSHAKE_H_
#define PLUGIN_TCP_HANDSHAKE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tcp/connection.h"
#include "tcp/wire.h"

namespace mig::tcp {

using Agreement = CommonAgreement;

// Holds the hellos against each other; both sides come to the same answer.
// Errors: MISMATCH naming both values. *other_vm: it is another VM or attempt,
// which the real peer may still come after.
absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm);

// HMAC-SHA256 over `label` and both hello payloads, in the order connecting
// side, listening side. Errors: INTERNAL.
absl::StatusOr<std::vector<uint8_t>> Mac(absl::string_view key,
                                         absl::string_view label,
                                         std::span<const uint8_t> connecting,
                                         std::span<const uint8_t> listening);

// One side of it over one connection. Not thread-safe.
class Handshake final : public FrameHandler {
 public:
  enum class Result { kRunning, kAgreed, kFailed };

  // `ours` needs a fresh nonce. `key` is empty for none; it is copied.
  Handshake(std::unique_ptr<Connection> connection, Hello ours, std::string key,
            bool connecting, uint64_t deadline_ns);

  // Goes on as far as it can; never waits.
  Result Step(uint64_t now_ns);

  // After kAgreed: the connection, with nothing read past the handshake.
  std::unique_ptr<Connection> TakeConnection() {
    return std::move(connection_);
  }
  const Agreement& agreement() const { return agreement_; }
  // After kFailed. `fatal`: the right peer, which can't be agreed with, so that
  // a listening session ends too.
  const absl::Status& failure() const { return failure_; }
  bool fatal() const { return fatal_; }
  // The peer has said a valid hello.
  bool spoke() const { return theirs_.has_value(); }

  bool HasWork() const { return connection_->HasWork(); }
  uint64_t deadline_ns() const { return deadline_ns_; }
  const std::string& peer() const { return peer_; }

  absl::StatusOr<uint32_t> PayloadLimit(FrameType type) override;
  absl::Status OnFrame(const FrameHeader& header,
                       std::vector<uint8_t>* payload) override;
  absl::Status OnData(const FrameHeader& header,
                      std::span<const uint8_t> ranges, DataPlan* plan) override;

 private:
  absl::Status OnHello(std::vector<uint8_t>* payload);
  absl::Status OnAuth(std::span<const uint8_t> payload);
  absl::Status OnAbort(const FrameHeader& header,
                       std::span<const uint8_t> payload);
  absl::Status SendAuth();
  absl::StatusOr<std::vector<uint8_t>> SideMac(bool connecting) const;
  Result Failed(const absl::Status& why, uint64_t now_ns);

  std::unique_ptr<Connection> connection_;
  const std::string peer_;
  const Hello ours_;
  const std::vector<uint8_t> our_payload_;
  const std::string key_;
  const bool connecting_;
  const uint64_t deadline_ns_;
  std::optional<Hello> theirs_;
  std::vector<uint8_t> their_payload_;
  Agreement agreement_;
  bool started_ = false;
  bool agreed_ = false;
  bool fatal_ = false;
  bool peer_refused_ = false;
  absl::Status failure_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_HANDSHAKE_H_
