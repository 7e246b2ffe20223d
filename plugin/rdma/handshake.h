// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// HELLO and AUTH over a control channel: who the peer is, that it has the key,
// and what both agree on, before anything of the guest is told.
#ifndef PLUGIN_RDMA_HANDSHAKE_H_
#define PLUGIN_RDMA_HANDSHAKE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/greeting.h"
#include "rdma/control_channel.h"
#include "rdma/hello.h"
#include "rdma/private_data.h"

namespace mig::rdma {

struct RdmaGreeting {
  using Hello = rdma::Hello;
  using Agreement = rdma::Agreement;
  static constexpr auto Encode = EncodeHello;
  static constexpr auto Decode = DecodeHello;
  static constexpr auto Negotiate = rdma::Negotiate;
  static constexpr char kConnecting[] = "migtransport rdma 1 connecting";
  static constexpr char kListening[] = "migtransport rdma 1 listening";
};

// One side of it. Not thread-safe; the channel must outlive it.
class Handshake final : public FrameHandler {
 public:
  // `ours` needs a fresh nonce. `key` is empty for none; it is copied.
  Handshake(ControlChannel* channel, Hello ours, std::string key,
            bool connecting);

  // The connecting side's first word.
  void Start() { greeting_.Start(); }
  bool agreed() const { return greeting_.agreed(); }
  const Agreement& agreement() const { return greeting_.agreement(); }
  // An error in it, to be called with what Poll answered. Tells the peer unless
  // it was the peer that said so. `fatal()`: the right peer, which can't be
  // agreed with, so that a listening session ends too.
  void Fail(const absl::Status& why);
  bool fatal() const { return greeting_.fatal(); }
  // The peer has said a valid hello.
  bool spoke() const { return greeting_.spoke(); }

  // The proof for data queue pair `index`, of the side that connects or not.
  absl::StatusOr<std::array<uint8_t, kShortMacSize>> DataMac(
      bool connecting, uint16_t index) const;

  absl::Status OnFrame(const FrameHeader& header,
                       std::span<const uint8_t> payload,
                       std::vector<uint8_t>* whole) override;

 private:
  void Send(GreetingFrame frame, std::span<const uint8_t> payload);

  ControlChannel* const channel_;
  Greeting<RdmaGreeting> greeting_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_HANDSHAKE_H_
