// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// HELLO and AUTH over a control channel: who the peer is, that it has the key,
// and what both agree on, before anything of the guest is told.
#ifndef PLUGIN_RDMA_HANDSHAKE_H_
#define PLUGIN_RDMA_HANDSHAKE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma/control_channel.h"
#include "rdma/hello.h"
#include "rdma/private_data.h"

namespace mig::rdma {

// One side of it. Not thread-safe; the channel must outlive it.
class Handshake final : public FrameHandler {
 public:
  // `ours` needs a fresh nonce. `key` is empty for none; it is copied.
  Handshake(ControlChannel* channel, Hello ours, std::string key,
            bool connecting);

  // The connecting side's first word.
  void Start();
  bool agreed() const { return agreed_; }
  const Agreement& agreement() const { return agreement_; }
  // An error in it, to be called with what Poll answered. Tells the peer unless
  // it was the peer that said so. `fatal()`: the right peer, which can't be
  // agreed with, so that a listening session ends too.
  void Fail(const absl::Status& why);
  bool fatal() const { return fatal_; }
  // The peer has said a valid hello.
  bool spoke() const { return theirs_.has_value(); }

  // The proof for data queue pair `index`, of the side that connects or not.
  absl::StatusOr<std::array<uint8_t, kShortMacSize>> DataMac(
      bool connecting, uint16_t index) const;

  absl::Status OnFrame(const FrameHeader& header,
                       std::span<const uint8_t> payload,
                       std::vector<uint8_t>* whole) override;

 private:
  absl::Status OnHello(std::span<const uint8_t> payload);
  absl::Status OnAuth(std::span<const uint8_t> payload);
  absl::Status OnAbort(const FrameHeader& header,
                       std::span<const uint8_t> payload);
  absl::Status SendAuth();
  absl::StatusOr<std::vector<uint8_t>> SideMac(bool connecting) const;
  const std::vector<uint8_t>& HelloOf(bool connecting) const {
    return connecting == connecting_ ? our_payload_ : their_payload_;
  }

  ControlChannel* const channel_;
  const Hello ours_;
  const std::vector<uint8_t> our_payload_;
  const std::string key_;
  const bool connecting_;
  std::optional<Hello> theirs_;
  std::vector<uint8_t> their_payload_;
  Agreement agreement_;
  bool agreed_ = false;
  bool fatal_ = false;
  bool peer_refused_ = false;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_HANDSHAKE_H_
