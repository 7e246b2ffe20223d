// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A recorded good conversation, replayed with mutations into a session. The
// seeds are fixed: what fails once fails again.
#include <random>

#include "raw_peer.h"

namespace mig::tcp {
namespace {

constexpr int kConversations = 10000;  // for each role
constexpr uint64_t kPages = 8;

// What a good peer of a destination says, frame by frame; the host's own moves
// come between.
std::vector<std::string> SourceScript() {
  Hello hello = SettingsOf(MIG_ROLE_SOURCE).opener.hello;
  hello.nonce.fill(0x77);
  const std::string table = Text(EncodeBlocks(
      std::vector<BlockDescription>{{5, 0, kPages * kPage, kPage, "ram"}}));
  return {FrameOf(FrameType::kHello, 0, Text(EncodeHello(hello))),
          FrameOf(FrameType::kAuth),
          FrameOf(FrameType::kBlocks, 0, table),
          FrameOf(FrameType::kData, 1,
                  RangeText({5, 0, kPage, 2 * kPage}) +
                      RangeText({5, MIG_RANGE_ZERO, 4 * kPage, kPage})) +
              std::string(2 * kPage, 'a'),
          FrameOf(FrameType::kMessage, 3, std::string(300, 'm')),
          FrameOf(FrameType::kRoundEnd, 1, SumsText(2 * kPage, kPage)),
          FrameOf(FrameType::kHeartbeat),
          FrameOf(FrameType::kBusy, kSecond),
          FrameOf(FrameType::kData, 2, RangeText({5, 0, 0, kPage})) +
              std::string(kPage, 'b'),
          FrameOf(FrameType::kRoundEnd, 2, SumsText(kPage, 0)),
          FrameOf(FrameType::kMessage, 4, ""),
          FrameOf(FrameType::kOffer),
          FrameOf(FrameType::kBye)};
}

std::vector<std::string> DestinationScript() {
  Hello hello = SettingsOf(MIG_ROLE_DESTINATION).opener.hello;
  hello.nonce.fill(0x77);
  const std::string table = Text(EncodeBlocks(
      std::vector<BlockDescription>{{5, 0, kPages * kPage, kPage, "ram"}}));
  return {FrameOf(FrameType::kHello, 0, Text(EncodeHello(hello))),
          FrameOf(FrameType::kAuth),
          FrameOf(FrameType::kBlocks, 0, table),
          FrameOf(FrameType::kMessage, 3, std::string(300, 'm')),
          FrameOf(FrameType::kRoundAck, 1),
          FrameOf(FrameType::kHeartbeat),
          FrameOf(FrameType::kCredit, 256 + 5),
          FrameOf(FrameType::kRoundAck, 2),
          FrameOf(FrameType::kCommitted),
          FrameOf(FrameType::kBye)};
}

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed) : random_(seed) {}

  std::vector<std::string> Mutate(std::vector<std::string> script) {
    const int changes = 1 + Below(3);
    for (int i = 0; i < changes; ++i) {
      // Mostly past the handshake, or few would get anywhere.
      const size_t first = Below(10) == 0 ? 0 : 2;
      const size_t at = first + Below(script.size() - first);
      std::string& frame = script[at];
      switch (Below(9)) {
        case 0:
          frame[Below(frame.size())] ^= static_cast<char>(1 << Below(8));
          break;
        case 1:
          frame[Below(std::min<size_t>(frame.size(), 64))] =
              static_cast<char>(Below(2) == 0 ? 0xff : Below(256));
          break;
        case 2:
          frame.resize(Below(frame.size()) + 1);
          break;
        case 3:
          frame.insert(Below(frame.size()), Below(40) + 1, 'z');
          break;
        case 4:
          frame[4] = static_cast<char>(1 + Below(kMaxFrameType));
          break;
        case 5:
          frame[15] = static_cast<char>(Below(4));  // the argument
          break;
        case 6:
          script.insert(script.begin() + static_cast<long>(at), frame);
          break;
        case 7:
          std::swap(frame, script[first + Below(script.size() - first)]);
          break;
        default:
          script.erase(script.begin() + static_cast<long>(at));
          if (script.size() < 4) return script;
      }
    }
    return script;
  }
  size_t Below(size_t end) { return random_() % end; }

 private:
  std::mt19937_64 random_;
};

// A host that goes on whenever an event lets it.
void Act(RawPeer* peer, Side* side, size_t* seen, int* taken) {
  side->Step();
  peer->Receive();
  peer->received.clear();
  Session& session = side->session();
  for (; *seen < side->events.size(); ++*seen) {
    switch (side->events[*seen].type) {
      case MIG_EVENT_CONNECTED:
        session.Exchange().IgnoreError();
        break;
      case MIG_EVENT_BLOCKS_READY:
      case MIG_EVENT_ROUND_DONE: {
        const uint64_t next = side->Count(MIG_EVENT_ROUND_DONE) + 1;
        if (next > 2) session.Handover().IgnoreError();
        if (!session.RoundBegin(next, 0).ok()) break;
        const struct mig_range range = {0, 2 * kPage, 9, 0, 0};
        size_t accepted = 0;
        uint64_t partial = 0;
        session.Write(&range, 1, sizeof(range), &accepted, &partial)
            .IgnoreError();
        const struct mig_iov iov = {"hello", 5};
        session.Send(0, 1, &iov, 1, sizeof(iov)).status().IgnoreError();
        session.RoundEnd(next).IgnoreError();
        break;
      }
      case MIG_EVENT_HANDOVER:
        if (session.Handover().ok()) ++*taken;
        break;
      default:
        break;
    }
  }
}

// Plays it all; the session must end in the time that its timeouts allow.
void Play(uint32_t role, const std::vector<std::string>& script,
          bool in_pieces) {
  FakeHost host;
  GuardedMemory memory(kPages * kPage, 2);
  Side side(&host, SettingsOf(role));
  std::array<int, 2> fds;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  const std::string uri = absl::StrCat("fd:", fds[0]);
  ASSERT_TRUE(
      (role == MIG_ROLE_SOURCE ? side->Connect(uri) : side->Listen(uri)).ok());
  UniqueFd(fds[0]).Reset();
  RawPeer peer{UniqueFd(fds[1])};
  ASSERT_TRUE(side->AddBlock(BlockOf(memory, 9)).ok());
  size_t seen = 0;
  int taken = 0;
  for (const std::string& frame : script) {
    const size_t half = in_pieces ? frame.size() / 2 : 0;
    peer.Send(frame.substr(0, half));
    if (half > 0) Act(&peer, &side, &seen, &taken);
    peer.Send(frame.substr(half));
    Act(&peer, &side, &seen, &taken);
    Act(&peer, &side, &seen, &taken);
  }
  host.Advance(6 * kSecond);  // the handshake's timeout, or a heartbeat's
  Act(&peer, &side, &seen, &taken);
  // A mutated busy time may be the longest.
  host.Advance(MIG_HOST_BUSY_MAX_NS);
  Act(&peer, &side, &seen, &taken);
  host.Advance(20 * kSecond);
  Act(&peer, &side, &seen, &taken);
  const bool source_has = side.Has(MIG_EVENT_COMMITTED);
  ASSERT_TRUE(side.Has(MIG_EVENT_ERROR) || side.Has(MIG_EVENT_IN_DOUBT) ||
              side.Has(MIG_EVENT_HANDOVER_REFUSED) ||
              side.Has(MIG_EVENT_PEER_CLOSED) || source_has || taken > 0)
      << "it waits for a peer that is silent";
  ASSERT_LE(side.Count(MIG_EVENT_ERROR) + side.Count(MIG_EVENT_IN_DOUBT) +
                side.Count(MIG_EVENT_HANDOVER_REFUSED),
            1u);
  side->Close();
  for (int i = 0; i < 3; ++i) {
    host.Advance(kSecond);
    Act(&peer, &side, &seen, &taken);
  }
  ASSERT_EQ(side.events.back().type, MIG_EVENT_CLOSED);
  ASSERT_FALSE(side.Busy());
}

void Fuzz(uint32_t role, const std::vector<std::string>& script) {
  Play(role, script, false);  // as it was recorded
  Play(role, script, true);
  for (int seed = 0; seed < kConversations; ++seed) {
    SCOPED_TRACE(absl::StrCat("role ", role, " seed ", seed));
    Fuzzer fuzzer(static_cast<uint64_t>(seed) * 2 + role);
    const bool in_pieces = fuzzer.Below(4) == 0;
    Play(role, fuzzer.Mutate(script), in_pieces);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(FuzzTest, MutatedSourcesEndADestinationCleanly) {
  Fuzz(MIG_ROLE_DESTINATION, SourceScript());
}

TEST(FuzzTest, MutatedDestinationsEndASourceCleanly) {
  Fuzz(MIG_ROLE_SOURCE, DestinationScript());
}

}  // namespace
}  // namespace mig::tcp
