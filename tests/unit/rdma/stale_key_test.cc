// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Who may write to the destination's memory, and when: nobody before he has
// proved to have the key, and nobody once the guest is taken or the session has
// ended, whatever remote keys he has heard.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "mutating_verbs.h"
#include "session_pair.h"

namespace mig::rdma {
namespace {

constexpr uint64_t kPages = 512;

// Somebody on the source's machine who notes the first WRITE, and may put what
// he noted into one of another session.
class Recorder final : public Mutator {
 public:
  struct Noted {
    ibv_qp* qp;
    ibv_send_wr wr;
    ibv_sge from;
  };
  bool Hits() override { return true; }
  void ChangeWrite(ibv_qp* qp, ibv_send_wr* wr) override {
    keys.push_back(wr->wr.rdma.rkey);
    if (!noted) noted = Noted{qp, *wr, wr->sg_list[0]};
    if (!forge) return;
    forge = false;
    wr->wr.rdma = noted->wr.wr.rdma;
  }
  size_t ChangeSend(std::span<uint8_t>, size_t length) override {
    return length;
  }
  bool HitsPrivateData() override { return false; }
  void ChangePrivateData(std::span<uint8_t>) override {}

  // Posts the noted WRITE again, by itself.
  int PostAgain() {
    ibv_send_wr wr = noted->wr;
    ibv_sge from = noted->from;
    wr.next = nullptr;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.send_flags = 0;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(noted->qp, &wr, &bad);
  }
  unsigned char* Target() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<unsigned char*>(noted->wr.wr.rdma.remote_addr);
  }

  std::vector<uint32_t> keys;
  std::optional<Noted> noted;
  bool forge = false;
};

class StaleKeyTest : public SessionTest,
                     public ::testing::WithParamInterface<bool> {
 protected:
  void TearDown() override {
    s.reset();
    d.reset();
  }
  void MakeRecorded() {
    auto fabric = std::make_shared<soft::Fabric>();
    s = std::make_unique<SessionSide>(
        &host,
        std::make_unique<MutatingVerbs>(*soft::ParseConfig("mlx5"),
                                        &host.host(), fabric, 1, &recorder),
        MIG_ROLE_SOURCE, kPages, GetParam());
    d = std::make_unique<SessionSide>(&host, fabric, "mlx5,seed=2",
                                      MIG_ROLE_DESTINATION, kPages, GetParam());
    for (uint64_t i = 0; i < s->size(); ++i) {
      s->memory[i] = static_cast<unsigned char>(i % 251);
    }
  }
  void HandOver() {
    ASSERT_TRUE((*s)->Handover().ok());
    ASSERT_TRUE(RunUntil([this] { return d->Has(MIG_EVENT_HANDOVER); }));
    ASSERT_TRUE((*d)->Handover().ok());
  }
  void SettleFor(uint64_t time) {
    RunUntil([] { return false; }, time);
  }

  Recorder recorder;
};

INSTANTIATE_TEST_SUITE_P(Memory, StaleKeyTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Pinned" : "ByChunk";
                         });

// Or the tests below prove nothing.
TEST_P(StaleKeyTest, ARecordedWriteLandsWhileItsSessionRuns) {
  MakeRecorded();
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  *recorder.Target() ^= 0xff;
  const unsigned char before = *recorder.Target();
  EXPECT_EQ(recorder.PostAgain(), 0);
  SettleFor(kSecond);
  EXPECT_NE(*recorder.Target(), before);
}

TEST_P(StaleKeyTest, C37OnceTheGuestIsTakenNoKeyWritesToIt) {
  MakeRecorded();
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  ASSERT_NO_FATAL_FAILURE(HandOver());
  // Its host runs the guest from here, and the link still stands.
  *recorder.Target() ^= 0xff;
  const unsigned char before = *recorder.Target();
  recorder.PostAgain();
  SettleFor(kSecond);
  EXPECT_EQ(*recorder.Target(), before) << "a running guest was written to";
}

// A queue pair of a later session, with all rights of its own, on the same
// devices and for the same memory.
TEST_P(StaleKeyTest, C37ARecordedKeyIsRefusedAfterItsSession) {
  MakeRecorded();
  ASSERT_TRUE(Ready());
  ASSERT_TRUE(Round(1));
  ASSERT_NO_FATAL_FAILURE(HandOver());
  ASSERT_TRUE(RunUntil([this] { return s->Has(MIG_EVENT_COMMITTED); }));
  CloseBoth();
  const std::vector<uint32_t> old = recorder.keys;
  for (SessionSide* side : {s.get(), d.get()}) side->Renew(&host);
  std::memset(d->memory, 0xee, d->size());
  ASSERT_TRUE(Ready());
  recorder.forge = true;
  EXPECT_FALSE(Round(1) && d->Has(MIG_EVENT_ROUND_DONE));
  EXPECT_TRUE(s->Ended());
  EXPECT_EQ(*recorder.Target(), 0xee);
  for (size_t i = old.size(); i < recorder.keys.size(); ++i) {
    EXPECT_EQ(std::count(old.begin(), old.end(), recorder.keys[i]), 0)
        << "an old key is valid again";
  }
}

// Blocks may be added at any time; nothing can be written to before the peer
// has proved itself and both have exchanged their tables.
TEST_P(StaleKeyTest, C37NothingIsRegisteredForWhoHasNotTheKey) {
  MakeRecorded();
  for (SessionSide* side : {s.get(), d.get()}) {
    side->settings.opener.hello.auth = 1;
    side->settings.opener.key = side == s.get() ? "guess" : "secret";
    side->Renew(&host);
  }
  ASSERT_TRUE(d->AddBlock(9).ok());
  ASSERT_TRUE((*d)->Listen(kUri).ok());
  ASSERT_TRUE((*s)->Connect(kUri).ok());
  EXPECT_TRUE(RunUntil([this] { return s->Ended(); }));
  EXPECT_EQ(s->FailureCode(), MIG_E_PEER_AUTH);
  EXPECT_FALSE(d->Ended());
  EXPECT_EQ(d->Count(Counter::kRegistrations), 0u);
  // The right one comes next.
  s->settings.opener.key = "secret";
  s->Renew(&host);
  ASSERT_TRUE(s->AddBlock(7).ok());
  ASSERT_TRUE((*s)->Connect(kUri).ok());
  EXPECT_TRUE(RunUntil([this] { return d->Has(MIG_EVENT_CONNECTED); }));
  EXPECT_EQ(d->Count(Counter::kRegistrations), 0u);
  ASSERT_TRUE((*s)->Exchange().ok());
  ASSERT_TRUE((*d)->Exchange().ok());
  EXPECT_TRUE(RunUntil([this] { return s->Has(MIG_EVENT_BLOCKS_READY); }));
  ASSERT_TRUE(Round(1));
  EXPECT_GT(d->Count(Counter::kRegistrations), 0u);
  EXPECT_TRUE(Same());
}

}  // namespace
}  // namespace mig::rdma
