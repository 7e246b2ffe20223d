// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A peer that is no session: it sends whatever bytes a test wants to.
#ifndef TESTS_UNIT_TCP_RAW_PEER_H_
#define TESTS_UNIT_TCP_RAW_PEER_H_

#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "tcp/handshake.h"
#include "tcp/wire.h"
#include "test_sessions.h"

namespace mig::tcp {

inline std::string FrameOf(FrameType type, uint64_t argument = 0,
                           const std::string& payload = "", uint8_t flags = 0) {
  FrameHeader header{.type = type};
  header.length = static_cast<uint32_t>(payload.size());
  header.argument = argument;
  header.flags = flags;
  std::array<uint8_t, kHeaderSize> bytes;
  EncodeHeader(header, bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()),
                     bytes.size()) +
         payload;
}

template <typename Bytes>
std::string Text(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(std::data(bytes)),
                     std::size(bytes));
}

inline std::string RangeText(const WireRange& range) {
  std::array<uint8_t, kWireRangeSize> bytes;
  EncodeRange(range, bytes);
  return Text(bytes);
}

inline std::string SumsText(uint64_t data, uint64_t zero) {
  return Text(EncodeSums({data, zero}));
}

class RawPeer {
 public:
  explicit RawPeer(UniqueFd fd = UniqueFd()) : fd_(std::move(fd)) {}

  // False once the other side has gone.
  bool Send(const std::string& bytes) {
    return send(fd_.get(), bytes.data(), bytes.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(bytes.size());
  }
  // What has come by now.
  void Receive() {
    std::array<char, 65536> buffer;
    ssize_t got = 0;
    while ((got = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) >
           0) {
      received.append(buffer.data(), static_cast<size_t>(got));
    }
    if (got == 0) ended = true;
  }
  // The whole frames that have come, which are taken off.
  std::vector<std::pair<FrameHeader, std::string>> Frames() {
    Receive();
    std::vector<std::pair<FrameHeader, std::string>> frames;
    while (received.size() >= kHeaderSize) {
      const auto header = DecodeHeader(std::span<const uint8_t, kHeaderSize>(
          reinterpret_cast<const uint8_t*>(received.data()), kHeaderSize));
      EXPECT_TRUE(header.ok());
      if (!header.ok() || received.size() < kHeaderSize + header->length) break;
      frames.emplace_back(*header,
                          received.substr(kHeaderSize, header->length));
      received.erase(0, kHeaderSize + header->length);
    }
    return frames;
  }
  void Close() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

  std::string received;
  bool ended = false;

 private:
  UniqueFd fd_;
};

// A session of `role` under test whose peer is raw, after a good handshake.
class RawPair {
 public:
  explicit RawPair(uint32_t role, uint64_t pages = 16)
      : memory(pages * kPage, 2), side(&host, SettingsOf(role)) {
    std::array<int, 2> fds;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()),
              0);
    const UniqueFd ours(fds[0]);
    peer = RawPeer(UniqueFd(fds[1]));
    const std::string uri = absl::StrCat("fd:", fds[0]);
    const bool source = role == MIG_ROLE_SOURCE;
    EXPECT_TRUE((source ? side->Connect(uri) : side->Listen(uri)).ok());
    Hello hello = SettingsOf(source ? MIG_ROLE_DESTINATION : MIG_ROLE_SOURCE)
                      .opener.hello;
    hello.nonce.fill(0x77);
    Say(FrameOf(FrameType::kHello, 0, Text(EncodeHello(hello))));
    Say(FrameOf(FrameType::kAuth));
    EXPECT_TRUE(side.Has(MIG_EVENT_CONNECTED)) << side.ErrorText();
    peer.Frames();
  }
  void Say(const std::string& bytes) {
    peer.Send(bytes);
    Settle();
  }
  void Settle() {
    int steps = 0;
    do {
      side.Step();
      peer.Receive();
      ASSERT_LT(++steps, 10000) << "the session never comes to rest";
    } while (side.Busy());
  }
  std::string Table() const {
    return Text(EncodeBlocks(
        std::vector<BlockDescription>{{5, 0, memory.size(), kPage, "ram"}}));
  }
  void Ready() {
    EXPECT_TRUE(side->AddBlock(BlockOf(memory, 9)).ok());
    EXPECT_TRUE(side->Exchange().ok());
    Say(FrameOf(FrameType::kBlocks, 0, Table()));
    EXPECT_TRUE(side.Has(MIG_EVENT_BLOCKS_READY)) << side.ErrorText();
  }
  // One page of round `number` at `page`, without the round's end.
  std::string PageOf(uint64_t number, uint64_t page) const {
    return FrameOf(FrameType::kData, number,
                   RangeText({5, 0, page * kPage, kPage})) +
           std::string(kPage, 'p');
  }
  void OneRound() {
    Ready();
    if (side->error().ok() && is_source()) {
      EXPECT_TRUE(side->RoundBegin(1, 0).ok());
      EXPECT_TRUE(side->RoundEnd(1).ok());
      Say(FrameOf(FrameType::kRoundAck, 1));
    } else {
      Say(PageOf(1, 0) + FrameOf(FrameType::kRoundEnd, 1, SumsText(kPage, 0)));
    }
    EXPECT_TRUE(side.Has(MIG_EVENT_ROUND_DONE)) << side.ErrorText();
  }
  void Offered() {
    OneRound();
    if (is_source()) {
      EXPECT_TRUE(side->Handover().ok());
      Settle();
    } else {
      Say(FrameOf(FrameType::kOffer));
      EXPECT_TRUE(side.Has(MIG_EVENT_HANDOVER));
    }
  }
  bool is_source() {
    return side->LocalAddress().status().code() != absl::StatusCode::kOk;
  }

  FakeHost host;
  GuardedMemory memory;
  Side side;
  RawPeer peer;
};

}  // namespace mig::tcp

#endif  // TESTS_UNIT_TCP_RAW_PEER_H_
