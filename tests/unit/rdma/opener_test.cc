// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/opener.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "opener_pair.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;

TEST_F(OpenerTest, EveryModelAndNumberOfDataQueuePairsConnects) {
  for (const char* model : {"mlx5", "mlx4", "irdma", "rxe", "siw"}) {
    for (const uint32_t count : {1u, 2u, 8u, 16u}) {
      Make(absl::StrCat(model, ",seed=1"), absl::StrCat(model, ",seed=2"));
      s->settings.hello.data_qps = d->settings.hello.data_qps = count;
      Open();
      EXPECT_EQ(s->opened.data.size(), count) << model;
      EXPECT_EQ(d->opened.data.size(), count) << model;
      EXPECT_EQ(s->opened.agreement.data_qps, count);
      EXPECT_EQ(s->opened.peer, kUri);
      EXPECT_THAT(d->opened.peer, HasSubstr("rdma://"));
      EXPECT_FALSE(s->opened.agreement.authenticated);
      EXPECT_EQ(d->refused, 0u);
      Reset();
    }
  }
}

TEST_F(OpenerTest, ModelsFindEachOtherAndObeyWhatEachWasGranted) {
  Make("rxe,seed=1", "mlx5,seed=2,max-inline=20");
  Open();
  EXPECT_GE(s->opened.control->qp().cap().max_inline_data, 56u);
  EXPECT_LT(d->opened.control->qp().cap().max_inline_data, 56u);
  EXPECT_GT(d->opened.control->qp().grant().attempts.size(), 1u);
}

// DESIGN section 3: at most 40 KiB for control and one data queue pair.
TEST_F(OpenerTest, Mlx5SendQueuesAreSmall) {
  Make();
  s->settings.hello.data_qps = d->settings.hello.data_qps = 1;
  Open();
  const QpGrant& control = s->opened.control->qp().grant();
  const QpGrant& data = s->opened.data[0]->grant();
  EXPECT_EQ(s->verbs->SendQueueBytes(control.granted, control.extended), 4096u);
  EXPECT_EQ(s->verbs->SendQueueBytes(data.granted, data.extended), 32768u);
}

TEST_F(OpenerTest, ControlAndGuestMemoryHaveProtectionDomainsOfTheirOwn) {
  Make();
  Open();
  EXPECT_NE(s->opened.control->qp().qp()->pd, s->opened.data[0]->qp()->pd);
  EXPECT_NE(d->opened.control->qp().qp()->pd, d->opened.data[0]->qp()->pd);
}

TEST_F(OpenerTest, C09TheRnrTimerIsSetAndRetriesAreLimited) {
  Make();
  Open();
  for (auto* side : {s.get(), d.get()}) {
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    ASSERT_EQ(
        side->verbs->QueryQp(side->opened.data[0]->qp(), &attr,
                             IBV_QP_MIN_RNR_TIMER | IBV_QP_RNR_RETRY, &init),
        0);
    EXPECT_EQ(attr.min_rnr_timer, 12);
    EXPECT_LE(attr.rnr_retry, 6);
  }
}

TEST_F(OpenerTest, C09WhatMustBeReceivedIsPostedBeforeAnythingConnects) {
  Make();
  std::string order;
  d->settings.prepare = [&order](uint16_t index, CmQp* qp) {
    EXPECT_NE(qp->qp(), nullptr);
    EXPECT_NE(qp->state(), CmState::kEstablished);
    absl::StrAppend(&order, index, " ");
    return absl::OkStatus();
  };
  Open();
  EXPECT_EQ(order, "0 1 ");
}

TEST_F(OpenerTest, BothSidesWithTheKeyAreAuthenticated) {
  Make();
  s->SetKey("secret");
  d->SetKey("secret");
  Open();
  EXPECT_TRUE(s->opened.agreement.authenticated);
  EXPECT_TRUE(d->opened.agreement.authenticated);
}

TEST_F(OpenerTest, C37APeerWithoutTheKeyIsRefusedAndTheRightOneServed) {
  for (const char* key : {"", "wrong"}) {
    Make();
    d->SetKey("secret");
    d->Listen();
    OpenerSide* const stranger = AddSource();
    if (*key != '\0') stranger->SetKey(key);
    stranger->Connect();
    Run(kSecond);
    EXPECT_EQ(ErrorCode(stranger->status), MIG_E_PEER_AUTH) << stranger->status;
    EXPECT_TRUE(d->running());
    EXPECT_EQ(d->refused, 1u);
    s->SetKey("secret");
    s->Connect();
    Run();
    EXPECT_TRUE(s->open) << s->status;
    EXPECT_TRUE(d->open) << d->status;
    Reset();
  }
}

TEST_F(OpenerTest, AnotherVmOrAttemptIsRefusedAndTheRightOneServed) {
  Make();
  d->Listen();
  OpenerSide* const other_vm = AddSource();
  other_vm->settings.hello.uuid.fill(0x43);
  other_vm->Connect();
  OpenerSide* const stale = AddSource("mlx5,seed=8");
  stale->settings.hello.attempt = 7;
  stale->Connect();
  Run(kSecond);
  EXPECT_EQ(ErrorCode(other_vm->status), MIG_E_PEER_MISMATCH);
  EXPECT_EQ(ErrorCode(stale->status), MIG_E_PEER_MISMATCH);
  EXPECT_THAT(std::string(stale->status.message()),
              HasSubstr("the attempt is 1 here and 7 at the peer"));
  EXPECT_EQ(d->refused, 2u);
  s->Connect();
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
}

TEST_F(OpenerTest, C27WhatDiffersEndsBothSidesNamingBothValues) {
  Make();
  d->settings.hello.data_qps = 4;
  d->Listen();
  s->Connect();
  Run();
  EXPECT_EQ(ErrorCode(s->status), MIG_E_PEER_MISMATCH) << s->status;
  EXPECT_EQ(ErrorCode(d->status), MIG_E_PEER_MISMATCH) << d->status;
  EXPECT_THAT(std::string(s->status.message()), HasSubstr("is 4 here and 2"));
  EXPECT_THAT(std::string(d->status.message()), HasSubstr("is 4 here and 2"));
}

TEST_F(OpenerTest, C31TheSecondAddressIsTriedWhenTheFirstRefuses) {
  Make();
  d->Listen("rdma://10.0.0.3:4444");
  auto addresses = *mig::Resolve("10.0.0.2", "4444", false, true);
  addresses.push_back(mig::Resolve("10.0.0.3", "4444", false, true)->front());
  s->opener =
      StartConnectorTo(addresses, "rdma://name:4444", s->settings, s->io());
  Run();
  EXPECT_TRUE(s->open) << s->status;
  EXPECT_EQ(s->opened.peer, "rdma://10.0.0.3:4444");
}

TEST_F(OpenerTest, C31WhenAllRefuseEachIsNamed) {
  Make();
  auto addresses = *mig::Resolve("10.0.0.2", "4444", false, true);
  addresses.push_back(mig::Resolve("10.0.0.3", "4444", false, true)->front());
  s->opener =
      StartConnectorTo(addresses, "rdma://name:4444", s->settings, s->io());
  Run(30 * kSecond, true, false);
  EXPECT_EQ(ErrorCode(s->status), MIG_E_PEER_UNREACHABLE);
  EXPECT_THAT(
      std::string(s->status.message()),
      testing::AllOf(HasSubstr("10.0.0.2:4444"), HasSubstr("10.0.0.3:4444"),
                     HasSubstr("is the destination listening")));
}

TEST_F(OpenerTest, C08APeerThatNeverAnswersIsGivenUpInTime) {
  Make("mlx5,seed=1", "mlx5,seed=2,faults=stop @1 0");
  host.now_ns += 10;
  d->Listen();
  s->settings.connect_timeout_ns = kSecond;
  const uint64_t start = host.now_ns;
  s->Connect();
  Run(30 * kSecond, true, false);
  EXPECT_EQ(ErrorCode(s->status), MIG_E_PEER_UNREACHABLE) << s->status;
  EXPECT_LE(host.now_ns - start, 2 * kSecond);
}

TEST_F(OpenerTest, UrisHaveIpv6InBracketsAndAreRefusedWithTheRightForm) {
  Make("mlx5,seed=1", "mlx5,seed=2");
  d->Listen("rdma://[::1]:0");
  ASSERT_TRUE(d->status.ok()) << d->status;
  const std::string uri = d->opener->LocalUri();
  EXPECT_THAT(uri, testing::StartsWith("rdma://[::1]:"));
  s->Connect(uri);
  Run();
  EXPECT_TRUE(s->open && d->open) << s->status << d->status;
  for (const char* bad : {"tcp://1.2.3.4:5", "rdma://1.2.3.4", "rdma://::1:5",
                          "rdma://1.2.3.4:65536", "rdma://[::1]", "rdma:"}) {
    const auto parsed = ParseUri(bad);
    EXPECT_EQ(ErrorCode(parsed.status()), MIG_E_URI) << bad;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("rdma://[IPV6]:PORT"));
  }
  EXPECT_EQ(ParseUri("rdma://[fe80::1%eth0]:5")->host, "fe80::1%eth0");
  s->Connect("rdma://10.0.0.2:0");
  EXPECT_EQ(ErrorCode(s->status), MIG_E_URI);
}

TEST_F(OpenerTest, C18APortInUseIsAnAddressError) {
  Make();
  d->Listen();
  OpenerSide other(&host, fabric_, "mlx5,seed=3,addresses=10.0.0.2",
                   MIG_ROLE_DESTINATION);
  other.Listen();
  EXPECT_EQ(ErrorCode(other.status), MIG_E_ADDRESS) << other.status;
  EXPECT_THAT(std::string(other.status.message()), HasSubstr("another port"));
}

TEST_F(OpenerTest, C18AnAddressOfNoDeviceSaysSo) {
  Make("mlx5,seed=1,faults=no-device 1");
  d->Listen();
  s->Connect();
  Run(30 * kSecond, true, false);
  EXPECT_EQ(ErrorCode(s->status), MIG_E_DEVICE) << s->status;
  EXPECT_THAT(std::string(s->status.message()),
              HasSubstr("belongs to no RDMA device"));
}

TEST_F(OpenerTest, C19AnotherDeviceThanAskedForIsNotUsedSilently) {
  Make();
  s->settings.tuning.device = "mlx5_77";
  d->Listen();
  s->Connect();
  Run(30 * kSecond, true, false);
  EXPECT_EQ(ErrorCode(s->status), MIG_E_DEVICE);
  EXPECT_THAT(std::string(s->status.message()), HasSubstr("device=mlx5_77"));
}

}  // namespace
}  // namespace mig::rdma
