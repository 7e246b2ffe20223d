// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A peer of a TCP session that says whatever it is told to: it knows the good
// frames of either role, and any others.
#ifndef TESTS_FUZZ_TCP_PEER_H_
#define TESTS_FUZZ_TCP_PEER_H_

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "raw_peer.h"
#include "script.h"
#include "tcp/network.h"

namespace mig::tcp {

// One connection of it.
class HostileLink {
 public:
  explicit HostileLink(std::unique_ptr<ByteStream> stream)
      : stream_(std::move(stream)) {}

  void Say(const std::string& bytes) { unsent_ += bytes; }
  // Moves what can be moved; what came is not looked at.
  void Pump() {
    while (!unsent_.empty()) {
      const struct iovec from = {unsent_.data(), unsent_.size()};
      const ssize_t sent = stream_->Write({&from, 1});
      if (sent <= 0) break;
      unsent_.erase(0, static_cast<size_t>(sent));
    }
    std::array<char, 16384> buffer;
    const struct iovec to = {buffer.data(), buffer.size()};
    while (!deaf && stream_->Read({&to, 1}) > 0) {
    }
  }
  void End() { stream_->ShutdownWrite(); }

  bool deaf = false;  // reads nothing

 private:
  std::unique_ptr<ByteStream> stream_;
  std::string unsent_;
};

// Makes frames that a peer of role `role` may send, of a guest with one block
// "ram" that it calls 5, and keeps count of what they add up to.
class GoodFrames {
 public:
  GoodFrames(uint32_t role, uint64_t block_bytes)
      : role_(role), block_bytes_(block_bytes) {}

  std::string Make(FrameType type, fuzz::Script* script) {
    switch (type) {
      case FrameType::kHello: {
        Hello hello = SettingsOf(role_).opener.hello;
        hello.nonce.fill(0x77);
        return FrameOf(type, 0, Text(EncodeHello(hello)));
      }
      case FrameType::kBlocks: {
        const std::array<BlockDescription, 1> blocks = {
            {{5, 0, block_bytes_, kPage, "ram"}}};
        return FrameOf(type, 0, Text(EncodeBlocks(blocks)));
      }
      case FrameType::kData:
        return Data(script);
      case FrameType::kRoundEnd: {
        std::string frame =
            FrameOf(type, round_, SumsText(data_bytes_, zero_bytes_));
        ++round_;
        data_bytes_ = zero_bytes_ = 0;
        return frame;
      }
      case FrameType::kRoundAck:
        return FrameOf(type, acked_++);
      case FrameType::kMessage:
        return FrameOf(type, 3, script->Bytes());
      case FrameType::kCredit:
        return FrameOf(type, 256 + script->Byte());
      case FrameType::kBusy:
        return FrameOf(type, script->Byte() * kSecond);
      case FrameType::kBlockRemoved:
        return FrameOf(type, 5);
      case FrameType::kAbort: {
        const auto code = script->Take<uint64_t>();
        const std::string text = script->Bytes();
        return FrameOf(type, code, text, script->Byte() & 1);
      }
      default:
        return FrameOf(type);
    }
  }

 private:
  // A run of pages with bytes, and one of zeros, in this round.
  std::string Data(fuzz::Script* script) {
    const uint64_t pages = block_bytes_ / kPage;
    const uint64_t at = script->Below(pages);
    const uint64_t data = script->Below(3) * kPage;
    const uint64_t zeros = script->Below(3) * kPage;
    std::string ranges;
    if (data > 0) ranges += RangeText({5, 0, at * kPage, data});
    if (zeros > 0) {
      ranges += RangeText({5, MIG_RANGE_ZERO, (at + 2) % pages * kPage, zeros});
    }
    data_bytes_ += data;
    zero_bytes_ += zeros;
    return FrameOf(FrameType::kData, round_, ranges) + std::string(data, 'd');
  }

  const uint32_t role_;
  const uint64_t block_bytes_;
  uint64_t round_ = 1;
  uint64_t acked_ = 1;
  uint64_t data_bytes_ = 0;
  uint64_t zero_bytes_ = 0;
};

}  // namespace mig::tcp

#endif  // TESTS_FUZZ_TCP_PEER_H_
