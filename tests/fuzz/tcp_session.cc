// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A whole TCP session of MIG_FUZZ_ROLE against a hostile peer, over the
// simulated network and under a clock that the script moves. It must end in its
// bounds, say one thing only, and never write outside its block, whose
// neighbours nobody may touch.
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "check.h"
#include "script.h"
#include "tcp/sim_network.h"
#include "tcp_peer.h"

namespace mig::tcp {
namespace {

constexpr uint32_t kRole = MIG_FUZZ_ROLE;
constexpr bool kSource = kRole == MIG_ROLE_SOURCE;
constexpr uint32_t kPeerRole = kSource ? MIG_ROLE_DESTINATION : MIG_ROLE_SOURCE;
constexpr uint64_t kPages = 8;
constexpr char kAt[] = "tcp://127.0.0.1:7000";
constexpr size_t kMostLinks = 12;  // more than handshakes at a time

class Run {
 public:
  Run(const uint8_t* data, size_t size)
      : script_(data, size),
        flags_(script_.Byte()),
        memory_(Memory()),
        frames_(kPeerRole, kPages * kPage),
        side_(&host_, Settings("sim:fuzz,seed=1")),
        network_(*MakeSimNetwork("sim:fuzz,seed=2", &host_.host())),
        poller_(Poller()) {}

  void Go() {
    Open();
    FUZZ_CHECK(side_->AddBlock(BlockOf(memory_, 9)).ok());
    if ((flags_ & 1) != 0) {  // most ought to come past the handshake
      Say(FrameType::kHello);
      Say(FrameType::kAuth);
    }
    Act();
    while (!script_.ended()) {
      Move();
      Act();
    }
    GoSilent();
    Close();
  }

 private:
  static GuardedMemory& Memory() {
    static GuardedMemory memory(kPages * kPage, 2);
    return memory;
  }
  static mig::Poller* Poller() {
    static const std::unique_ptr<mig::Poller> poller = *mig::Poller::Create();
    return poller.get();
  }
  SessionSettings Settings(const char* network) {
    SessionSettings settings = SettingsOf(kRole);
    settings.opener.network = *MakeSimNetwork(network, &host_.host());
    settings.opener.threads = false;
    return settings;
  }

  void Open() {
    const auto addresses = *Resolve("127.0.0.1", "7000", false, true);
    if constexpr (kSource) {
      port_ = *network_->Listen(addresses.front(), poller_);
      FUZZ_CHECK(side_->Connect(kAt).ok());
      side_.Step();
      auto accepted = port_->Accept({});
      FUZZ_CHECK(accepted.ok() && accepted->stream != nullptr);
      links_.emplace_back(std::move(accepted->stream));
    } else {
      FUZZ_CHECK(side_->Listen(kAt).ok());
      AddLink();
    }
  }
  // Another stranger comes.
  void AddLink() {
    if (kSource || links_.size() == kMostLinks) return;
    const auto addresses = *Resolve("127.0.0.1", "7000", false, true);
    int error = 0;
    const auto dial = *network_->Connect(addresses.front(), poller_, &error);
    if (dial == nullptr) return;
    side_.Step();
    if (!dial->Done() || dial->Result() != 0) return;
    current_ = links_.size();
    links_.emplace_back(dial->Take({}).stream);
  }
  HostileLink& link() { return links_[current_]; }
  void Say(FrameType type) { link().Say(frames_.Make(type, &script_)); }

  FrameType AnyType() {
    return static_cast<FrameType>(1 + script_.Below(kMaxFrameType));
  }
  // One move of the peer, the clock, or this side's host.
  void Move() {
    switch (script_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Say(AnyType());
      case 4:
        return SayChanged();
      case 5: {
        const FrameType type = AnyType();
        const uint64_t argument = script_.Take<uint64_t>();
        const std::string payload = script_.Bytes();
        const uint8_t flags = script_.Byte();
        return link().Say(FrameOf(type, argument, payload, flags));
      }
      case 6:
        return link().Say(script_.Bytes());
      case 7:
        return Wait();
      case 8:
        return MoveLink();
      default:
        return MoveHost();
    }
  }
  // A good frame but for one byte or its length.
  void SayChanged() {
    std::string frame = frames_.Make(AnyType(), &script_);
    const size_t at = script_.Take<uint16_t>() % frame.size();
    const uint8_t change = script_.Byte();
    if (change == 0) {
      frame.resize(at);
    } else {
      frame[at] = static_cast<char>(frame[at] ^ change);
    }
    link().Say(frame);
  }
  void Wait() {
    static constexpr std::array<uint64_t, 6> kTimes = {
        1'000'000,   100'000'000,  kSecond,
        5 * kSecond, 10 * kSecond, MIG_HOST_BUSY_MAX_NS};
    host_.Advance(kTimes[script_.Below(kTimes.size())]);
  }
  void MoveLink() {
    switch (script_.Below(4)) {
      case 0:
        return link().End();
      case 1:
        link().deaf = !link().deaf;
        return;
      case 2:
        return AddLink();
      default:
        current_ = script_.Below(links_.size());
    }
  }
  // What a host may do, in whatever state: errors are for it to see.
  void MoveHost() {
    Session& session = side_.session();
    switch (script_.Below(12)) {
      case 0:
        return session.Exchange().IgnoreError();
      case 1:
        return Begin();
      case 2:
        return WriteSome();
      case 3:
        return session.RoundEnd(begun_).IgnoreError();
      case 4:
        return SendSome();
      case 5:
        return HandOver();
      case 6:
        side_.release = !side_.release;
        return;
      case 7:
        return session.RemoveBlock(9).IgnoreError();
      case 8:
        return session.HostBusy(script_.Byte() * kSecond)
            .status()
            .IgnoreError();
      case 9:
        return session.Flush().IgnoreError();
      case 10:
        return session.Cancel();
      default:
        return side_->Close();
    }
  }
  void Begin() {
    if (side_->RoundBegin(begun_ + 1, flags_ & MIG_ROUND_STRICT).ok()) ++begun_;
  }
  void WriteSome() {
    const uint64_t at = script_.Below(kPages) * kPage;
    const struct mig_range range = {
        at, kPage, 9, script_.Below(2) == 0 ? MIG_RANGE_ZERO : 0u, 0};
    size_t accepted = 0;
    uint64_t partial = 0;
    side_->Write(&range, 1, sizeof(range), &accepted, &partial).IgnoreError();
  }
  void SendSome() {
    static const std::string text(1u << 16, 't');
    const struct mig_iov iov = {text.data(), script_.Take<uint16_t>()};
    side_->Send(0, 1, &iov, 1, sizeof(iov)).status().IgnoreError();
  }
  void HandOver() {
    if (side_->Handover().ok()) ++handed_over_;
  }

  // Goes on where an event lets a host, unless the script does all of it.
  void React(const struct mig_event& event) {
    if (event.type == MIG_EVENT_COMMITTED) FUZZ_CHECK(kSource && handed_over_);
    if (event.type == MIG_EVENT_ROUND_DONE && kSource) {
      FUZZ_CHECK(event.number <= begun_);
    }
    if ((flags_ & 2) == 0) return;
    switch (event.type) {
      case MIG_EVENT_CONNECTED:
        return side_->Exchange().IgnoreError();
      case MIG_EVENT_BLOCKS_READY:
      case MIG_EVENT_ROUND_DONE:
        if (!kSource) return;
        if (event.number == 2) return HandOver();
        Begin();
        WriteSome();
        return side_->RoundEnd(begun_).IgnoreError();
      case MIG_EVENT_HANDOVER:
        return HandOver();
      default:
        return;
    }
  }
  // Until nothing moves any more.
  void Act() {
    for (int i = 0; i < 1000; ++i) {
      for (HostileLink& each : links_) each.Pump();
      side_.Step();
      for (; seen_ < side_.events.size(); ++seen_) React(side_.events[seen_]);
      if (!side_.Busy()) return;
    }
    FUZZ_CHECK(!"comes to rest");
  }

  // Whatever it waits for, a silent peer ends it in time: a handshake's
  // timeout, the longest busy time, a heartbeat's; then the moment in which a
  // host that was busy itself looks again.
  void GoSilent() {
    for (const uint64_t time : {6 * kSecond, uint64_t{MIG_HOST_BUSY_MAX_NS},
                                20 * kSecond, 5 * kSecond}) {
      host_.Advance(time);
      Act();
    }
    const bool connected = side_.Has(MIG_EVENT_CONNECTED);
    const bool listens = !kSource && !connected;
    FUZZ_CHECK(Failures() <= 1);
    FUZZ_CHECK(listens || Failures() == 1 || handed_over_ > 0 ||
               side_.Has(MIG_EVENT_PEER_CLOSED) || side_.Has(MIG_EVENT_CLOSED));
  }
  size_t Failures() const {
    return side_.Count(MIG_EVENT_ERROR) + side_.Count(MIG_EVENT_IN_DOUBT) +
           side_.Count(MIG_EVENT_HANDOVER_REFUSED);
  }
  void Close() {
    side_->Close();
    for (int i = 0; i < 3; ++i) {
      host_.Advance(kSecond);
      Act();
    }
    FUZZ_CHECK(side_.Count(MIG_EVENT_CLOSED) == 1);
    FUZZ_CHECK(side_.events.back().type == MIG_EVENT_CLOSED);
    FUZZ_CHECK(Failures() <= 1);
    FUZZ_CHECK(!side_.Has(MIG_EVENT_COMMITTED) || Failures() == 0);
  }

  fuzz::Script script_;
  const uint8_t flags_;
  FakeHost host_{MIG_HOST_SIMULATED_CLOCK};
  GuardedMemory& memory_;
  GoodFrames frames_;
  Side side_;
  std::shared_ptr<Network> network_;
  mig::Poller* const poller_;
  std::unique_ptr<Port> port_;
  std::vector<HostileLink> links_;
  size_t current_ = 0;
  size_t seen_ = 0;
  uint64_t begun_ = 0;
  int handed_over_ = 0;
};

}  // namespace
}  // namespace mig::tcp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mig::tcp::Run(data, size).Go();
  return 0;
}
