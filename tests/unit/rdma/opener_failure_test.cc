// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Strangers, and everything that can fail while connections come about.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "opener_pair.h"
#include "rdma/private_data.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

class OpenerFailureTest : public OpenerTest {
 protected:
  // Connects an id with whatever private data, says nothing, and does `then`;
  // why it ended.
  absl::Status Knock(OpenerSide* stranger, std::span<const uint8_t> data,
                     const std::function<void()>& then = {}) {
    const auto to = mig::Resolve("10.0.0.2", "4444", false, true)->front();
    auto made = CmQp::Resolve(stranger->verbs.get(), stranger->io().events,
                              CmTuning(), "strange", to);
    EXPECT_TRUE(made.ok());
    CmQp& qp = **made;
    ibv_pd* pd = nullptr;
    for (int i = 0; i < 20; ++i) {
      for (auto* side : sides()) side->Step();
      if (qp.state() == CmState::kAddressResolved) {
        EXPECT_TRUE(qp.ResolveRoute().ok());
      }
      if (qp.state() == CmState::kRouteResolved) {
        pd = stranger->verbs->AllocPd(qp.context());
        EXPECT_TRUE(qp.MakeQp(pd, nullptr, stranger->settings.data).ok());
        EXPECT_TRUE(qp.Connect(data).ok());
      }
    }
    if (then) then();
    absl::Status end = qp.failure();
    made->reset();
    if (pd != nullptr) stranger->verbs->DeallocPd(pd);
    return end;
  }
  // Strangers that connect and say nothing; only they and the listener move.
  class Crowd {
   public:
    Crowd(OpenerFailureTest* test, OpenerSide* side, int size) : side_(side) {
      const auto to = mig::Resolve("10.0.0.2", "4444", false, true)->front();
      for (int i = 0; i < size; ++i) {
        qps_.push_back(*CmQp::Resolve(side->verbs.get(), side->io().events,
                                      CmTuning(), "strange", to));
      }
      for (int i = 0; i < 40; ++i) {
        side->Step();
        test->d->Step();
        for (const auto& qp : qps_) Move(qp.get());
      }
    }
    void Leave() {
      qps_.clear();
      if (pd_ != nullptr) side_->verbs->DeallocPd(pd_);
    }

   private:
    void Move(CmQp* qp) {
      if (qp->state() == CmState::kAddressResolved) {
        EXPECT_TRUE(qp->ResolveRoute().ok());
      }
      if (qp->state() != CmState::kRouteResolved) return;
      if (pd_ == nullptr) pd_ = side_->verbs->AllocPd(qp->context());
      EXPECT_TRUE(qp->MakeQp(pd_, nullptr, side_->settings.data).ok());
      PrivateData control;
      control.role = MIG_ROLE_SOURCE;
      control.slots = 4;
      control.session.fill(static_cast<uint8_t>(++count_));
      EXPECT_TRUE(qp->Connect(EncodePrivateData(control)).ok());
    }

    OpenerSide* const side_;
    std::vector<std::unique_ptr<CmQp>> qps_;
    ibv_pd* pd_ = nullptr;
    int count_ = 0;
  };
  static PrivateData DataQp(uint8_t session) {
    PrivateData data;
    data.kind = QpKind::kData;
    data.role = MIG_ROLE_SOURCE;
    data.count = 2;
    data.session.fill(session);
    return data;
  }
};

TEST_F(OpenerFailureTest, C37StrangersAreRefusedBeforeTheAgreement) {
  Make();
  d->Listen();
  OpenerSide* const stranger = AddSource();
  const std::string garbage(56, 'x');
  EXPECT_FALSE(
      Knock(stranger,
            {reinterpret_cast<const uint8_t*>(garbage.data()), garbage.size()})
          .ok());
  EXPECT_FALSE(Knock(stranger, {}).ok());
  const absl::Status data = Knock(stranger, EncodePrivateData(DataQp(1)));
  EXPECT_EQ(ErrorCode(data), MIG_E_PEER_FAILED);
  EXPECT_THAT(std::string(data.message()), HasSubstr("no agreed session"));
  EXPECT_EQ(d->refused, 3u);
  s->Connect();
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
}

// The session id is known to whoever can listen; the proof is not.
TEST_F(OpenerFailureTest, C37AGuessedSessionIsRefusedWhileTheRightOneConnects) {
  Make();
  s->SetKey("secret");
  d->SetKey("secret");
  d->Listen();
  OpenerSide* const stranger = AddSource();
  s->Connect();
  // As far as the agreement: its data queue pairs come next.
  for (int i = 0; i < 200 && d->running() && s->opener->HasWork(); ++i) {
    s->Step();
    d->Step();
  }
  uint64_t refusals = 0;
  for (uint8_t session = 1; session < 4; ++session) {
    PrivateData data = DataQp(session);
    data.index = 1;
    refusals += Knock(stranger, EncodePrivateData(data)).ok() ? 0 : 1;
  }
  EXPECT_EQ(refusals, 3u);
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
}

TEST_F(OpenerFailureTest, C37ManyStrangersDoNotKeepTheRightOneOut) {
  Make();
  d->Listen();
  PrivateData control;
  control.role = MIG_ROLE_SOURCE;
  control.slots = 4;
  OpenerSide* const stranger = AddSource();
  for (uint8_t i = 0; i < 12; ++i) {
    control.session.fill(i);
    Knock(stranger, EncodePrivateData(control)).IgnoreError();
  }
  s->Connect();
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
}

// Strangers that stay, say nothing, and are more than there are places, at each
// moment of the right one's handshake. It keeps its place if it was there
// before, and else gets one when they had their time.
TEST_F(OpenerFailureTest, C37AFloodNeitherPushesOutNorKeepsOut) {
  for (int moment = 0; moment < 40; moment += 2) {
    Make();
    for (auto* side : {s.get(), d.get()}) side->SetKey("secret");
    d->Listen();
    if (moment > 0) s->Connect();
    for (int i = 0; i < moment; ++i) (i % 2 == 0 ? s : d)->Step();
    OpenerSide* const stranger = AddSource();
    Crowd crowd(this, stranger, 40);
    if (moment == 0) s->Connect();
    Run();
    EXPECT_TRUE(s->open && d->open) << moment << s->status << d->status;
    crowd.Leave();
    Reset();
  }
}

TEST_F(OpenerFailureTest, C37ASilentStrangerIsDroppedInTime) {
  Make();
  d->Listen();
  PrivateData control;
  control.role = MIG_ROLE_SOURCE;
  control.slots = 4;
  OpenerSide* const stranger = AddSource();
  Knock(stranger, EncodePrivateData(control), [this] {
    EXPECT_EQ(d->refused, 0u);
    EXPECT_LE(d->Due(), host.now_ns + d->settings.handshake_timeout_ns);
    host.now_ns += d->settings.handshake_timeout_ns;
    for (int i = 0; i < 10; ++i) d->Step();
    EXPECT_EQ(d->refused, 1u);
  }).IgnoreError();
  s->Connect();
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
}

// Whatever the connection manager says, and of whichever queue pair.
TEST_F(OpenerFailureTest, C16EachCmEventAsAnErrorEndsCleanly) {
  for (const char* fault :
       {"no-device", "addr-error", "route-error", "reject", "connect-error"}) {
    for (int k = 1; k <= 3; ++k) {
      Make(absl::StrCat("mlx5,seed=1,faults=", fault, " ", k));
      d->Listen();
      s->Connect();
      Run();
      EXPECT_FALSE(s->open) << fault << k;
      EXPECT_FALSE(s->status.ok()) << fault << k;
      EXPECT_FALSE(d->open) << fault << k;
      // The context serves the next one.
      Reset();
    }
  }
}

TEST_F(OpenerFailureTest, C20ADeviceThatGoesEndsBothInEachPhase) {
  for (const uint64_t at : {1u, 2u, 3u, 5u, 8u}) {
    for (const char* side : {"source", "destination"}) {
      const std::string fault = absl::StrCat(",faults=removal ", at);
      const bool source = *side == 's';
      Make(absl::StrCat("mlx5,seed=1", source ? fault : ""),
           absl::StrCat("mlx5,seed=2", source ? "" : fault));
      d->Listen();
      s->Connect();
      Run();
      for (int i = 0; i < 10; ++i) {
        s->Step();
        d->Step();
      }
      EXPECT_FALSE(s->running()) << at << side;
      Reset();
    }
  }
}

// Every call of either side fails once, at each of its places: the sides either
// connect all the same, or both end in time; and nothing is left of either.
TEST_F(OpenerFailureTest, EveryCallThatFailsEndsInABoundWithoutALeak) {
  for (const char* call :
       {"AllocPd", "RegMr", "CreateCompChannel", "CreateCq", "CmCreateId",
        "CmResolveAddr", "CmResolveRoute", "CmListen", "CmBindAddr",
        "CmConnect", "CmAccept", "CmCreateQp", "CmCreateQpEx", "CmSetOption",
        "ModifyQp", "CmReject"}) {
    for (int k = 1; k <= 4; ++k) {
      for (const bool source : {true, false}) {
        const std::string fault =
            absl::StrCat(",faults=call ", call, " ", k, " EIO");
        Make(absl::StrCat("mlx5,seed=1", source ? fault : ""),
             absl::StrCat("mlx5,seed=2", source ? "" : fault));
        d->Listen();
        s->Connect();
        Run(40 * kSecond);
        EXPECT_FALSE(s->running()) << call << k << source;
        if (s->open != d->open) {
          // The one that is open sees the other go.
          OpenerSide* const left = s->open ? s.get() : d.get();
          OpenerSide* const gone = s->open ? d.get() : s.get();
          gone->Destroy();
          (void)left;
        }
        Reset();
      }
    }
  }
}

TEST_F(OpenerFailureTest, C01NoInlineAtAllStillConnects) {
  for (const char* limit : {"0", "40", "63", "101", "400"}) {
    for (const char* error : {"EINVAL", "ENOMEM", "ENOSPC"}) {
      const std::string config =
          absl::StrCat("mlx5,max-inline=", limit, ",inline-errno=", error);
      Make(absl::StrCat(config, ",seed=1"), absl::StrCat(config, ",seed=2"));
      Open();
      Reset();
    }
  }
}

TEST_F(OpenerFailureTest, C03ADeviceThatMakesNoQueuePairListsTheAttempts) {
  Make("mlx5,seed=1,max-queue-bytes=100");
  d->Listen();
  s->Connect();
  Run(30 * kSecond, true, false);
  EXPECT_EQ(ErrorCode(s->status), MIG_E_DEVICE) << s->status;
  EXPECT_THAT(std::string(s->status.message()),
              HasSubstr("at depth/sges/inline 32/2/56"));
}

TEST_F(OpenerFailureTest, ASourceThatGoesInTheMiddleEndsTheDestination) {
  Make();
  d->Listen();
  s->Connect();
  int steps = 0;
  while (s->running() && steps < 8) {
    s->Step();
    d->Step();
    ++steps;
  }
  s->Destroy();
  s = std::make_unique<OpenerSide>(&host, fabric_, "mlx5,seed=7",
                                   MIG_ROLE_SOURCE);
  Run(20 * kSecond, false, true);
  if (d->running()) {
    s->Connect();
    Run();
    EXPECT_TRUE(s->open && d->open) << s->status << d->status;
  } else {
    EXPECT_FALSE(d->open);
  }
}

}  // namespace
}  // namespace mig::rdma
