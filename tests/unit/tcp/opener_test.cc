// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Getting the one right connection: addresses, strangers, keys, socket files.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "raw_peer.h"
#include "tcp/socket.h"

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

std::string Folder() {
  std::string path = ::testing::TempDir() + "migXXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

// A blocking connection to where a session listens.
RawPeer Dial(const std::string& uri) {
  const auto parsed = ParseUri(uri);
  EXPECT_TRUE(parsed.ok());
  SocketAddress address =
      parsed->kind == Uri::Kind::kUnix
          ? UnixAddress(parsed->path)
          : Resolve(parsed->host, parsed->port, false, true)->front();
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(
      connect(fd.get(), reinterpret_cast<struct sockaddr*>(&address.storage),
              address.size),
      0);
  return RawPeer(std::move(fd));
}

void StepBoth(Side* a, Side* b, uint32_t type = MIG_EVENT_CONNECTED) {
  for (int i = 0; i < 20000 && !(a->Has(type) && b->Has(type)); ++i) {
    a->Step();
    b->Step();
    if (i > 100) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// A listener that nobody accepts from, with its queue full, drops SYNs.
struct SilentAddress {
  SilentAddress() : listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address = Resolve("127.0.0.1", "0", true, true)->front();
    EXPECT_EQ(bind(listener.get(),
                   reinterpret_cast<struct sockaddr*>(&address.storage),
                   address.size),
              0);
    EXPECT_EQ(listen(listener.get(), 0), 0);
    address = LocalAddress(listener.get());
    for (int i = 0; i < 4; ++i) {
      int error = 0;
      queue.push_back(*StartConnect(address, &error));
    }
  }
  UniqueFd listener;
  SocketAddress address;
  std::vector<UniqueFd> queue;
};

class ListenerTest : public ::testing::TestWithParam<std::string> {
 protected:
  void Listen(const std::string& key = "") {
    destination =
        std::make_unique<Side>(&host, SettingsOf(MIG_ROLE_DESTINATION, key));
    const std::string uri =
        GetParam() == "unix" ? "unix:" + folder + "/s" : GetParam();
    ASSERT_TRUE((*destination)->Listen(uri).ok());
    address = *(*destination)->LocalAddress();
  }
  // The right peer is served, whatever came before.
  void ExpectServed(const std::string& key = "") {
    Side source(&host, SettingsOf(MIG_ROLE_SOURCE, key));
    ASSERT_TRUE(source->Connect(address).ok());
    StepBoth(&source, destination.get());
    EXPECT_TRUE(source.Has(MIG_EVENT_CONNECTED)) << source.ErrorText();
    EXPECT_TRUE(destination->Has(MIG_EVENT_CONNECTED))
        << destination->ErrorText();
  }
  // Steps the listener until the stranger was shown the door.
  void ExpectRefused(RawPeer* stranger) {
    for (int i = 0; i < 5000 && !stranger->ended; ++i) {
      destination->Step();
      char byte = 0;
      const ssize_t got = recv(stranger->fd(), &byte, 1, MSG_DONTWAIT);
      if (got == 1) stranger->received += byte;
      stranger->ended = got == 0 || (got < 0 && errno == ECONNRESET);
      if (i > 1000) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    EXPECT_TRUE(stranger->ended);
    EXPECT_FALSE(destination->Has(MIG_EVENT_ERROR));
  }

  FakeHost host;
  const std::string folder = Folder();
  std::string address;
  std::unique_ptr<Side> destination;
};

Hello SourceHello(uint32_t auth) {
  Hello hello = SettingsOf(MIG_ROLE_SOURCE).opener.hello;
  hello.auth = auth;
  hello.nonce.fill(0x33);
  return hello;
}

TEST_P(ListenerTest, C37StrangersAreRefusedAndTheRealPeerIsServed) {
  Listen("secret");
  Hello other = SourceHello(1);
  other.uuid[0] = 9;
  const std::string hello =
      FrameOf(FrameType::kHello, 0, Text(EncodeHello(SourceHello(1))));
  const std::string kStrange[] = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string(3000, '\0'),
      std::string(3000, '\xff'),
      FrameOf(FrameType::kAuth, 0, std::string(32, 'm')),
      FrameOf(FrameType::kMessage, 0, "hello"),
      hello + hello,
      hello + FrameOf(FrameType::kAuth),
      hello + FrameOf(FrameType::kAuth, 0, std::string(32, 'm')),
      FrameOf(FrameType::kHello, 0, Text(EncodeHello(SourceHello(0)))) +
          FrameOf(FrameType::kAuth),
      FrameOf(FrameType::kHello, 0, Text(EncodeHello(other))) +
          FrameOf(FrameType::kAuth, 0, std::string(32, 'm')),
      FrameOf(FrameType::kAbort, 0, "go away")};
  for (const std::string& bytes : kStrange) {
    RawPeer stranger = Dial(address);
    stranger.Send(bytes);
    ExpectRefused(&stranger);
  }
  // One that leaves in the middle, and one that says nothing.
  RawPeer half = Dial(address);
  half.Send(hello.substr(0, 20));
  destination->Step();
  half.Close();
  RawPeer silent = Dial(address);
  destination->Step();
  host.Advance(5 * kSecond);
  ExpectRefused(&silent);
  ExpectServed("secret");
  uint64_t values[kCounterCount];
  (*destination)->GetStats(values, kCounterCount);
  EXPECT_EQ(values[static_cast<size_t>(Counter::kPeersRefused)], 13u);
}

TEST_P(ListenerTest, C37TooManySilentPeersDoNotKeepTheRealOneOut) {
  Listen();
  std::vector<RawPeer> crowd;
  for (int i = 0; i < 60; ++i) {
    crowd.push_back(Dial(address));
    destination->Step();
  }
  // Those have a second to speak; the real one waits in the backlog meanwhile.
  host.Advance(kSecond);
  ExpectServed();
}

// What a connecting peer with `key` proves it by.
std::string ProofText(const char* key, const std::vector<uint8_t>& hello,
                      const std::vector<uint8_t>& theirs) {
  const auto mac =
      HelloMac(key, "migtransport tcp 1 connecting", hello, theirs);
  return mac.ok() ? Text(*mac) : "";
}

// What the real one has begun no crowd can end, silent or not.
TEST_P(ListenerTest, C37AFloodDoesNotPushOutWhoIsInTheHandshake) {
  Listen("secret");
  RawPeer peer = Dial(address);
  const std::vector<uint8_t> hello = EncodeHello(SourceHello(1));
  peer.Send(FrameOf(FrameType::kHello, 0, Text(hello)));
  std::vector<std::pair<FrameHeader, std::string>> frames;
  std::vector<RawPeer> crowd;
  for (int i = 0; i < 60; ++i) {
    crowd.push_back(Dial(address));
    if (i % 2 == 0) {
      crowd.back().Send(FrameOf(FrameType::kHello, 0, Text(hello)));
    }
    destination->Step();
    if (i == 50) host.Advance(2 * kSecond);
    if (frames.empty()) frames = peer.Frames();
  }
  ASSERT_FALSE(frames.empty());
  const std::vector<uint8_t> theirs(frames[0].second.begin(),
                                    frames[0].second.end());
  peer.Send(FrameOf(FrameType::kAuth, 0, ProofText("secret", hello, theirs)));
  for (int i = 0; i < 1000 && !destination->Has(MIG_EVENT_CONNECTED); ++i) {
    destination->Step();
  }
  EXPECT_TRUE(destination->Has(MIG_EVENT_CONNECTED)) << "it was pushed out";
}

// The bytes of a whole good handshake, said again to a new session.
TEST_P(ListenerTest, C37ARecordedHandshakeDoesNotWorkTwice) {
  Listen("secret");
  RawPeer peer = Dial(address);
  const std::vector<uint8_t> hello = EncodeHello(SourceHello(1));
  peer.Send(FrameOf(FrameType::kHello, 0, Text(hello)));
  std::vector<std::pair<FrameHeader, std::string>> frames;
  for (int i = 0; i < 1000 && frames.empty(); ++i) {
    destination->Step();
    frames = peer.Frames();
  }
  ASSERT_FALSE(frames.empty());
  const std::vector<uint8_t> theirs(frames[0].second.begin(),
                                    frames[0].second.end());
  const std::string auth =
      FrameOf(FrameType::kAuth, 0, ProofText("secret", hello, theirs));
  // Said on another connection, whose nonce is another.
  RawPeer replay = Dial(address);
  replay.Send(FrameOf(FrameType::kHello, 0, Text(hello)) + auth);
  ExpectRefused(&replay);
  // The original is good: the MAC is what WIRE.md says.
  peer.Send(auth);
  for (int i = 0; i < 1000 && !destination->Has(MIG_EVENT_CONNECTED); ++i) {
    destination->Step();
  }
  EXPECT_TRUE(destination->Has(MIG_EVENT_CONNECTED));
}

// Rules 14.1 and 14.2.
TEST_P(ListenerTest, AnotherGuestOrAttemptIsRefusedAndToldWhy) {
  Listen();
  for (const bool attempt : {false, true}) {
    SessionSettings settings = SettingsOf(MIG_ROLE_SOURCE);
    if (attempt) {
      settings.opener.hello.attempt = 2;
    } else {
      settings.opener.hello.uuid[0] = 9;
      settings.opener.hello.wire_min = settings.opener.hello.wire_max = 7;
    }
    Side source(&host, settings);
    ASSERT_TRUE(source->Connect(address).ok());
    for (int i = 0; i < 5000 && !source.Has(MIG_EVENT_ERROR); ++i) {
      source.Step();
      destination->Step();
    }
    EXPECT_EQ(source.FailureCode(), MIG_E_PEER_MISMATCH);
    EXPECT_THAT(source.ErrorText(),
                HasSubstr(attempt ? "attempt is 1" : "the VM is 42424242"));
    EXPECT_FALSE(destination->Has(MIG_EVENT_ERROR));
  }
  ExpectServed();
}

TEST_P(ListenerTest, TheRightPeersOtherVersionEndsBothNamingBoth) {  // C27
  Listen();
  SessionSettings settings = SettingsOf(MIG_ROLE_SOURCE);
  settings.opener.hello.wire_min = settings.opener.hello.wire_max = 7;
  Side source(&host, settings);
  ASSERT_TRUE(source->Connect(address).ok());
  StepBoth(&source, destination.get(), MIG_EVENT_ERROR);
  for (Side* side : {&source, destination.get()}) {
    EXPECT_EQ(side->FailureCode(), MIG_E_PEER_MISMATCH);
    EXPECT_THAT(side->ErrorText(), HasSubstr("1..1"));
    EXPECT_THAT(side->ErrorText(), HasSubstr("7..7"));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ListenerTest,
                         ::testing::Values("tcp://127.0.0.1:0", "tcp://[::1]:0",
                                           "tcp://localhost:0", "tcp://:0",
                                           "unix"),
                         [](const auto& info) {
                           return absl::StrCat("Form", info.index);
                         });

TEST(KeyTest, C30AKeyOnOneSideOnlyIsSaidOnBoth) {
  for (const bool source_has : {false, true}) {
    Pair pair(1, {}, source_has ? "k" : "", source_has ? "" : "k");
    pair.Settle();
    for (Side* side : {&pair.s(), &pair.d()}) {
      EXPECT_EQ(side->FailureCode(), MIG_E_PEER_AUTH);
      EXPECT_THAT(side->ErrorText(), HasSubstr("key"));
    }
  }
  Pair other(1, {}, "one", "two");
  other.Settle();
  EXPECT_EQ(other.s().FailureCode(), MIG_E_PEER_AUTH);
  EXPECT_EQ(other.d().FailureCode(), MIG_E_PEER_AUTH);
  Pair same(1, {}, "one", "one");
  same.Ready();
}

TEST(UnixTest, AStaleSocketIsReplacedAndAServedOneIsNot) {
  FakeHost host;
  const std::string path = Folder() + "/s";
  {
    // Left behind by a process that died.
    const UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    const SocketAddress address = UnixAddress(path);
    ASSERT_EQ(bind(dead.get(),
                   reinterpret_cast<const struct sockaddr*>(&address.storage),
                   address.size),
              0);
  }
  Side first(&host, SettingsOf(MIG_ROLE_DESTINATION));
  ASSERT_TRUE(first->Listen("unix:" + path).ok());
  Side second(&host, SettingsOf(MIG_ROLE_DESTINATION));
  const absl::Status used = second->Listen("unix:" + path);
  EXPECT_EQ(ErrorCode(used), MIG_E_ADDRESS);
  EXPECT_EQ(ErrorErrno(used), EADDRINUSE);
  EXPECT_THAT(std::string(used.message()), HasSubstr(path));
  Side source(&host, SettingsOf(MIG_ROLE_SOURCE));
  ASSERT_TRUE(source->Connect("unix:" + path).ok());
  StepBoth(&source, &first);
  EXPECT_TRUE(first.Has(MIG_EVENT_CONNECTED));
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "nothing is left behind";
}

TEST(UnixTest, AFileThatIsNoSocketIsNeverDeleted) {
  FakeHost host;
  const std::string folder = Folder();
  const std::string file = folder + "/precious";
  UniqueFd(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).Reset();
  const std::string link = folder + "/link";
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  for (const std::string& path : {file, link, folder}) {
    Side side(&host, SettingsOf(MIG_ROLE_DESTINATION));
    EXPECT_EQ(ErrorCode(side->Listen("unix:" + path)), MIG_E_ADDRESS);
    EXPECT_EQ(access(path.c_str(), F_OK), 0) << path;
  }
}

TEST(ListenTest, APortInUseIsNamed) {
  FakeHost host;
  Side first(&host, SettingsOf(MIG_ROLE_DESTINATION));
  ASSERT_TRUE(first->Listen("tcp://127.0.0.1:0").ok());
  const std::string uri = *first->LocalAddress();
  Side second(&host, SettingsOf(MIG_ROLE_DESTINATION));
  const absl::Status used = second->Listen(uri);
  EXPECT_EQ(ErrorCode(used), MIG_E_ADDRESS);
  EXPECT_THAT(std::string(used.message()), HasSubstr(uri));
  EXPECT_EQ(ErrorCode(second->Listen("tcp://192.0.2.1:0")), MIG_E_ADDRESS);
  EXPECT_EQ(ErrorCode(second->Listen("tcp://example.org:0")), MIG_E_URI);
  EXPECT_TRUE(second->Listen("tcp://127.0.0.1:0").ok()) << "still new";
}

// A handed-over listener may be blocking; progress may not (rule 3, C28).
TEST(ListenTest, AHandedOverBlockingListenerServes) {
  FakeHost host;
  auto listener = Listen(Resolve("127.0.0.1", "0", true, true)->front());
  ASSERT_TRUE(listener.ok());
  fcntl(listener->get(), F_SETFL, 0);
  Side side(&host, SettingsOf(MIG_ROLE_DESTINATION));
  ASSERT_TRUE(side->Listen(absl::StrCat("fd:", listener->get())).ok());
  side.Step();
  EXPECT_FALSE(side.Busy());
  EXPECT_THAT(*side->LocalAddress(), HasSubstr("tcp://127.0.0.1:"));
  Side source(&host, SettingsOf(MIG_ROLE_SOURCE));
  ASSERT_TRUE(source->Connect(*side->LocalAddress()).ok());
  StepBoth(&source, &side);
  EXPECT_TRUE(source.Has(MIG_EVENT_CONNECTED));
}

TEST(ListenTest, OutOfDescriptorsItWaitsWithoutSpinningAndGoesOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs descriptors to look at objects";
#endif
  FakeHost host;
  Side side(&host, SettingsOf(MIG_ROLE_DESTINATION));
  ASSERT_TRUE(side->Listen("tcp://127.0.0.1:0").ok());
  Side source(&host, SettingsOf(MIG_ROLE_SOURCE));
  ASSERT_TRUE(source->Connect(*side->LocalAddress()).ok());
  source.Step();
  struct rlimit old = {};
  getrlimit(RLIMIT_NOFILE, &old);
  struct rlimit none = old;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 100 && host.log.empty(); ++i) side.Step();
  EXPECT_FALSE(side.Busy());
  EXPECT_EQ(host.log.size(), 1u) << "one line, not one a step";
  EXPECT_LE(side.Deadline(), host.now_ns() + kSecond);
  setrlimit(RLIMIT_NOFILE, &old);
  host.Advance(kSecond);
  StepBoth(&source, &side);
  EXPECT_TRUE(side.Has(MIG_EVENT_CONNECTED));
}

TEST(AdoptTest, OnlyAStreamSocketIsTaken) {
  FakeHost host;
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd datagram(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const int fd : {file.get(), datagram.get(), 999}) {
    Side side(&host, SettingsOf(MIG_ROLE_SOURCE));
    EXPECT_EQ(ErrorCode(side->Connect(absl::StrCat("fd:", fd))), MIG_E_URI);
  }
  auto listener = Listen(Resolve("127.0.0.1", "0", true, true)->front());
  Side side(&host, SettingsOf(MIG_ROLE_SOURCE));
  EXPECT_EQ(ErrorCode(side->Connect(absl::StrCat("fd:", listener->get()))),
            MIG_E_URI);
}

TEST(ConnectTest, ARefusedConnectionNamesTheAddressAndTheReason) {
  FakeHost host;
  std::string free;
  {
    Side side(&host, SettingsOf(MIG_ROLE_DESTINATION));
    ASSERT_TRUE(side->Listen("tcp://127.0.0.1:0").ok());
    free = *side->LocalAddress();
  }
  Side source(&host, SettingsOf(MIG_ROLE_SOURCE));
  ASSERT_TRUE(source->Connect(free).ok());
  for (int i = 0; i < 1000 && !source.Has(MIG_EVENT_ERROR); ++i) source.Step();
  EXPECT_EQ(source.FailureCode(), MIG_E_PEER_UNREACHABLE);
  EXPECT_THAT(source.ErrorText(), HasSubstr(free + " Connection refused"));
  for (const char* uri : {"tcp://:1", "tcp://h:0"}) {
    Side fresh(&host, SettingsOf(MIG_ROLE_SOURCE));
    EXPECT_EQ(ErrorCode(fresh->Connect(uri)), MIG_E_URI) << uri;
  }
}

// A name with a refusing address, a silent one and a good one.
TEST(ConnectTest, C31ANameWhoseFirstAddressesFailConnectsToTheNext) {
  FakeHost host;
  SocketAddress refusing = Resolve("127.0.0.1", "0", true, true)->front();
  {
    auto free = Listen(refusing);
    ASSERT_TRUE(free.ok());
    refusing = LocalAddress(free->get());
  }
  auto listener = Listen(Resolve("127.0.0.1", "0", true, true)->front());
  ASSERT_TRUE(listener.ok());
  Side side(&host, SettingsOf(MIG_ROLE_DESTINATION));
  ASSERT_TRUE(side->Listen(absl::StrCat("fd:", listener->get())).ok());
  const SilentAddress silent;
  auto poller = Poller::Create();
  ASSERT_TRUE(poller.ok());
  Uri uri = *ParseUri("tcp://name:1");
  const auto opener = StartConnectorTo(
      {refusing, silent.address, LocalAddress(listener->get())}, uri,
      SettingsOf(MIG_ROLE_SOURCE).opener, &host.host(), poller->get());
  Opened opened;
  bool done = false;
  const uint64_t start = host.now_ns();
  for (int i = 0; i < 20000 && !done; ++i) {
    (*poller)->Wait(0);
    const auto stepped = opener->Step(host.now_ns(), &opened);
    ASSERT_TRUE(stepped.ok()) << stepped.status();
    done = *stepped;
    side.Step();
    // The silent one has a share of the time, not all of it.
    if (!done && !opener->HasWork() && i % 100 == 0 &&
        host.now_ns() < start + 9 * kSecond) {
      host.Advance(kSecond);
    }
  }
  EXPECT_TRUE(done);
  EXPECT_LE(host.now_ns(), start + 9 * kSecond);
}

TEST(ConnectTest, AnAddressThatIsSilentIsGivenUpInTime) {
  FakeHost host;
  const SilentAddress silent;
  Side source(&host, SettingsOf(MIG_ROLE_SOURCE));
  ASSERT_TRUE(source->Connect(FormatAddress(silent.address)).ok());
  for (int i = 0; i < 10; ++i) source.Step();
  ASSERT_FALSE(source.Has(MIG_EVENT_ERROR));
  EXPECT_FALSE(source.Busy());
  EXPECT_EQ(source.Deadline(), host.now_ns() + 10 * kSecond);
  host.Advance(10 * kSecond);
  source.Step();
  EXPECT_EQ(source.FailureCode(), MIG_E_PEER_UNREACHABLE);
  EXPECT_THAT(source.ErrorText(), HasSubstr("timed out"));
}

TEST(ConnectTest, AFailedLookUpIsAnEventAlsoWithoutThreads) {
  for (const bool threads : {false, true}) {
    FakeHost host;
    SessionSettings settings = SettingsOf(MIG_ROLE_SOURCE);
    settings.opener.threads = threads;
    Side source(&host, settings);
    ASSERT_TRUE(source->Connect("tcp://no-such-host.invalid:1").ok());
    for (int i = 0; i < 20000 && !source.Has(MIG_EVENT_ERROR); ++i) {
      source.Step();
      if (threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(source.FailureCode(), MIG_E_PEER_UNREACHABLE);
    EXPECT_THAT(source.ErrorText(), HasSubstr("no-such-host.invalid"));
  }
}

// C36: Linux counts a full window as silence towards TCP_USER_TIMEOUT.
TEST(ConnectTest, C36ABusyDestinationKeepsItsLinkThoughItsWindowIsFull) {
  FakeHost host;
  SessionSettings d = SettingsOf(MIG_ROLE_DESTINATION);
  SessionSettings s = SettingsOf(MIG_ROLE_SOURCE);
  for (SessionSettings* settings : {&d, &s}) {
    settings->opener.tuning = {kSecond / 5, 64 << 10};
    settings->opener.hello.peer_timeout_ns = kSecond / 5;
  }
  Side side(&host, d);
  Side source(&host, s);
  ASSERT_TRUE(side->Listen("tcp://127.0.0.1:0").ok());
  ASSERT_TRUE(source->Connect(*side->LocalAddress()).ok());
  StepBoth(&source, &side);
  ASSERT_TRUE(side->HostBusy(60 * kSecond).ok());
  const std::string text(1u << 20, 'm');
  const struct mig_iov iov = {text.data(), text.size()};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(*source->Send(0, 1, &iov, 1, sizeof(iov)));
  }
  // Real time, in which the destination reads nothing.
  for (int i = 0; i < 20; ++i) {
    source.Step();
    std::this_thread::sleep_for(std::chrono::milliseconds(75));
  }
  for (int i = 0; i < 20000 && side.messages.size() < 3; ++i) {
    source.Step();
    side.Step();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_EQ(side.messages.size(), 3u) << source.ErrorText();
}

}  // namespace
}  // namespace mig::tcp
