// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// HELLO and AUTH: who the peer is, that it has the key, and what both agree on,
// before anything of the guest is told.
#ifndef PLUGIN_TCP_HANDSHAKE_H_
#define PLUGIN_TCP_HANDSHAKE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/greeting.h"
#include "tcp/connection.h"
#include "tcp/wire.h"

namespace mig::tcp {

using Agreement = CommonAgreement;

// Holds the hellos against each other; both sides come to the same answer.
// Errors: MISMATCH naming both values. *other_vm: it is another VM or attempt,
// which the real peer may still come after.
absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm);

struct TcpGreeting {
  using Hello = tcp::Hello;
  using Agreement = tcp::Agreement;
  static constexpr auto Encode = EncodeHello;
  static constexpr auto Decode = DecodeHello;
  static constexpr auto Negotiate = tcp::Negotiate;
  static constexpr char kConnecting[] = "migtransport tcp 1 connecting";
  static constexpr char kListening[] = "migtransport tcp 1 listening";
};

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
  const Agreement& agreement() const { return greeting_.agreement(); }
  // After kFailed. `fatal`: the right peer, which can't be agreed with, so that
  // a listening session ends too.
  const absl::Status& failure() const { return failure_; }
  bool fatal() const { return greeting_.fatal(); }
  // The peer has said a valid hello.
  bool spoke() const { return greeting_.spoke(); }

  bool HasWork() const {
    return (connecting_ && !started_) || connection_->HasWork();
  }
  uint64_t deadline_ns() const { return deadline_ns_; }
  // When more work comes by time alone; not after its deadline.
  uint64_t DueNs() const {
    return std::min(deadline_ns_, connection_->DueNs(/*reading=*/true));
  }
  const std::string& peer() const { return peer_; }

  absl::StatusOr<uint32_t> PayloadLimit(FrameType type) override;
  absl::Status OnFrame(const FrameHeader& header,
                       std::vector<uint8_t>* payload) override;
  absl::Status OnData(const FrameHeader& header,
                      std::span<const uint8_t> ranges, DataPlan* plan) override;

 private:
  void Send(GreetingFrame frame, std::span<const uint8_t> payload);
  Result Failed(const absl::Status& why, uint64_t now_ns);

  std::unique_ptr<Connection> connection_;
  const std::string peer_;
  const bool connecting_;
  const uint64_t deadline_ns_;
  Greeting<TcpGreeting> greeting_;
  bool started_ = false;
  absl::Status failure_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_HANDSHAKE_H_
