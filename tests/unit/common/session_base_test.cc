// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The skeleton of a session over a transport that only notes what it is asked
// to send.
#include "common/session_base.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPeerTimeout = 8 * kSecond;

class NotedSession final : public SessionBase {
 public:
  NotedSession(const Host *host, std::unique_ptr<Poller> poller,
               const CommonHello &hello)
      : SessionBase(host, std::move(poller), hello, kSecond) {}

  void Connect() {
    rules_.Connecting();
    linked_ = true;
    last_ns_ = host_->NowNs();
    CommonAgreement agreement;
    agreement.wire_version = 1;
    agreement.max_message = agreement.peer_window = 1u << 20;
    agreement.peer_timeout_ns = kPeerTimeout;
    Linked("fake", agreement);
    rules_.Exchanged();
  }
  void Round() {
    if (!rules_.source()) {
      ASSERT_TRUE(rules_.PeerRoundEnd(1).ok());
      return;
    }
    ASSERT_TRUE(rules_.RoundBegin(1, 0).ok());
    ASSERT_TRUE(rules_.RoundEnd(1).ok());
    ASSERT_TRUE(rules_.PeerRoundAck(1).ok());
  }
  void LoseLink() { Fail(MakeError(MIG_E_PEER_LOST, "lost"), Tell::kNobody); }
  void Receive(SharedFrame frame, uint64_t argument = 0) {
    last_ns_ = host_->NowNs();
    const absl::Status status = OnSharedFrame(frame, argument);
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<enum mig_event_type> Events() {
    std::array<struct mig_event, 16> events;
    size_t count = 0;
    EXPECT_TRUE(
        Progress(events.data(), events.size(), sizeof(events[0]), 0, &count)
            .ok());
    std::vector<enum mig_event_type> types;
    for (size_t i = 0; i < count; ++i)
      types.push_back(static_cast<enum mig_event_type>(events[i].type));
    return types;
  }

  std::vector<SharedFrame> sent;
  bool started = true;
  int aborts = 0;

 private:
  void Step() override {
    StepConnection(host_->NowNs());
    if (rules_.closing() && !closed_ && ReadyToClose(host_->NowNs())) {
      linked_ = false;
      Closed();
    }
  }
  bool linked() const override { return linked_; }
  void StepOpener(uint64_t) override {}
  void StepLink(uint64_t now_ns) override { CheckTimers(now_ns); }
  void StepFailedLink(uint64_t) override {}
  bool opening() const override { return false; }
  void DropOpener() override {}
  uint64_t QueueFrame(SharedFrame frame, uint64_t) override {
    sent.push_back(frame);
    last_sent_ns_ = host_->NowNs();
    return sent.size();
  }
  void QueueAbort(const absl::Status &, bool) override { ++aborts; }
  void QueueMessage(uint32_t, std::span<const struct mig_iov>) override {}
  void QueueHeld() override {}
  bool HasStarted(uint64_t) const override { return started; }
  bool HasFinished(uint64_t) const override { return started; }
  bool NothingQueued() const override { return true; }
  void DropUnsent() override {}
  void StopReading() override {}
  bool Settled() const override { return true; }
  uint64_t LastReceivedNs() const override { return last_ns_; }
  uint64_t LastSentNs() const override { return last_sent_ns_; }
  bool InsideRoundOrExchange() const override { return false; }
  void BeginRemoval(Block *) override {}
  bool HasTransportWork() override { return false; }
  uint64_t TransportDeadlineNs() const override { return MIG_NO_DEADLINE; }
  void CountMessage(bool) override {}
  void CountSendStall() override {}

  bool linked_ = false;
  uint64_t last_ns_ = 0;
  uint64_t last_sent_ns_ = 0;
};

class SessionBaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<NotedSession> Make(uint32_t role) {
    CommonHello hello;
    hello.role = role;
    hello.window = 1u << 20;
    auto session =
        std::make_unique<NotedSession>(&host_, *Poller::Create(), hello);
    session->Connect();
    EXPECT_THAT(session->Events(), ElementsAre(MIG_EVENT_CONNECTED));
    return session;
  }
  static struct mig_host_services Services(uint64_t *now_ns) {
    struct mig_host_services services = {};
    services.size = sizeof(services);
    services.flags = MIG_HOST_SIMULATED_CLOCK;
    services.host = now_ns;
    services.clock_ns = [](void *host) {
      return *static_cast<uint64_t *>(host);
    };
    return services;
  }

  uint64_t now_ns_ = kSecond;
  const Host host_{Services(&now_ns_)};
};

TEST_F(SessionBaseTest, Rule13ASilentPeerIsFoundAndABusyOneWaitedFor) {
  auto session = Make(MIG_ROLE_SOURCE);
  now_ns_ += kPeerTimeout / 4;
  EXPECT_THAT(session->Events(), IsEmpty());
  EXPECT_THAT(session->sent, ElementsAre(SharedFrame::kHeartbeat));
  session->Receive(SharedFrame::kBusy, 100 * kSecond);
  now_ns_ += 100 * kSecond + kPeerTimeout;
  EXPECT_THAT(session->Events(), IsEmpty());
  uint64_t deadline_ns = 0;
  session->Arm(&deadline_ns);
  EXPECT_EQ(deadline_ns, now_ns_ + 1);
  ++now_ns_;
  EXPECT_THAT(session->Events(), ElementsAre(MIG_EVENT_ERROR));
  EXPECT_EQ(ErrorCode(session->error()), MIG_E_PEER_TIMEOUT);
  EXPECT_EQ(session->aborts, 1);
}

TEST_F(SessionBaseTest, Rule13HostBusyIsQueuedOnceAndOkWhenItHasLeft) {
  auto session = Make(MIG_ROLE_DESTINATION);
  session->started = false;
  EXPECT_FALSE(*session->HostBusy(kSecond));
  EXPECT_FALSE(*session->HostBusy(kSecond));
  EXPECT_THAT(session->sent, ElementsAre(SharedFrame::kBusy));
  session->started = true;
  EXPECT_TRUE(*session->HostBusy(kSecond));
  EXPECT_THAT(session->sent, ElementsAre(SharedFrame::kBusy));
  // Said anew.
  EXPECT_TRUE(*session->HostBusy(kSecond));
  EXPECT_THAT(session->sent,
              ElementsAre(SharedFrame::kBusy, SharedFrame::kBusy));
}

// Found by the model, seed 11 over TCP: what the peer had sent meanwhile was on
// its way when the host came back.
TEST_F(SessionBaseTest, Rule13AHostBackFromBeingBusyLooksBeforeItJudges) {
  auto session = Make(MIG_ROLE_DESTINATION);
  ASSERT_TRUE(*session->HostBusy(100 * kSecond));
  now_ns_ += 50 * kSecond;
  EXPECT_THAT(session->Events(), IsEmpty());
  session->Receive(SharedFrame::kHeartbeat);
  EXPECT_THAT(session->Events(), IsEmpty());
  // A silence is found all the same, a quarter later.
  now_ns_ += 50 * kSecond;
  EXPECT_THAT(session->Events(), IsEmpty());
  now_ns_ += kPeerTimeout / 4;
  EXPECT_THAT(session->Events(), ElementsAre(MIG_EVENT_ERROR));
}

TEST_F(SessionBaseTest, Rule12_8AnOfferThatLeftIsInDoubt) {
  for (const bool started : {false, true}) {
    auto session = Make(MIG_ROLE_SOURCE);
    session->Round();
    ASSERT_TRUE(session->Handover().ok());
    session->started = started;
    session->LoseLink();
    session->LoseLink();  // the first error stays the only one
    EXPECT_THAT(session->Events(),
                ElementsAre(started ? MIG_EVENT_IN_DOUBT : MIG_EVENT_ERROR));
  }
}

TEST_F(SessionBaseTest, Rule12CommittedComesToASourceThatOffered) {
  auto session = Make(MIG_ROLE_SOURCE);
  session->Round();
  ASSERT_TRUE(session->Handover().ok());
  session->Receive(SharedFrame::kCommitted);
  session->LoseLink();
  EXPECT_THAT(session->Events(),
              ElementsAre(MIG_EVENT_COMMITTED, MIG_EVENT_PEER_CLOSED));
}

TEST_F(SessionBaseTest, Rule12_11ACancelTakesTheOfferBackFromTheHost) {
  auto session = Make(MIG_ROLE_DESTINATION);
  session->Round();
  session->Receive(SharedFrame::kOffer);
  session->Cancel();
  EXPECT_THAT(session->Events(), ElementsAre(MIG_EVENT_ERROR));
  EXPECT_EQ(ErrorCode(session->error()), MIG_E_CANCELLED);
  EXPECT_FALSE(session->Handover().ok());
}

TEST_F(SessionBaseTest, CloseSaysFarewellAndEndsInTime) {
  auto answered = Make(MIG_ROLE_SOURCE);
  answered->Close();
  EXPECT_THAT(answered->sent, ElementsAre(SharedFrame::kBye));
  EXPECT_THAT(answered->Events(), IsEmpty());
  answered->Receive(SharedFrame::kByeAck);
  EXPECT_THAT(answered->Events(), ElementsAre(MIG_EVENT_CLOSED));
  auto silent = Make(MIG_ROLE_SOURCE);
  silent->Close();
  now_ns_ += kSecond;
  EXPECT_THAT(silent->Events(), ElementsAre(MIG_EVENT_CLOSED));
}

}  // namespace
}  // namespace mig
