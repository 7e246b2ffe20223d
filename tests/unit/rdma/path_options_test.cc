// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The options that choose a connection's path: port, GID, service level and
// traffic class, as they show on the queue pairs.
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "opener_pair.h"
#include "rdma/gid.h"

namespace mig::rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PathOptions : public OpenerTest {
 protected:
  static ibv_qp_attr Query(OpenerSide* side, ibv_qp* qp) {
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    EXPECT_EQ(side->verbs->QueryQp(qp, &attr, IBV_QP_AV, &init), 0);
    return attr;
  }
  // Of the control queue pair, and of a data queue pair, which are alike.
  static ibv_ah_attr PathOf(OpenerSide* side) {
    const ibv_ah_attr one =
        Query(side, side->opened.control->qp().qp()).ah_attr;
    const ibv_ah_attr other = Query(side, side->opened.data[0]->qp()).ah_attr;
    EXPECT_EQ(one.sl, other.sl);
    EXPECT_EQ(one.grh.sgid_index, other.grh.sgid_index);
    return one;
  }
  void UseGid(OpenerSide* side, const std::string& text) {
    const auto found = FindGid(side->verbs.get(), "", 0, text);
    ASSERT_TRUE(found.ok()) << found.status();
    CmTuning& tuning = side->settings.tuning;
    tuning.device = found->device;
    tuning.port = found->port;
    tuning.gid_index = static_cast<int>(found->index);
    tuning.source_address = found->address;
  }
  // What a session that must not connect says.
  std::string Failure() {
    d->Listen();
    EXPECT_TRUE(d->status.ok()) << d->status;
    s->Connect();
    Run(20 * kSecond, true, false);
    EXPECT_FALSE(s->open);
    return std::string(s->status.message());
  }
};

TEST_F(PathOptions, EachSideHasItsOwnServiceLevelOnEveryQueuePair) {
  for (const char* model : {"mlx5", "rxe"}) {
    Make(absl::StrCat(model, ",seed=1"), absl::StrCat(model, ",seed=2"));
    s->settings.tuning.service_level = 5;
    d->settings.tuning.service_level = 0;
    Open();
    EXPECT_EQ(PathOf(s.get()).sl, 5);
    EXPECT_EQ(PathOf(d.get()).sl, 0);
    const ibv_qp_attr attr = Query(s.get(), s->opened.data[1]->qp());
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.timeout, s->settings.tuning.ack_timeout);
    EXPECT_EQ(attr.rnr_retry, 6);
    EXPECT_EQ(attr.min_rnr_timer, 12);
    Reset();
  }
}

// One side that moves its queue pairs meets one whose system does.
TEST_F(PathOptions, OnlyOneSideMayChooseAServiceLevel) {
  for (const bool source : {false, true}) {
    Make();
    (source ? s : d)->settings.tuning.service_level = 7;
    Open();
    EXPECT_EQ(PathOf(source ? s.get() : d.get()).sl, 7);
    EXPECT_EQ(PathOf(source ? d.get() : s.get()).sl, 0);
    Reset();
  }
}

TEST_F(PathOptions, AServiceLevelThatTheLinkHasNotIsRefused) {
  Make();
  s->settings.tuning.service_level = 8;
  EXPECT_THAT(Failure(), AllOf(HasSubstr("service-level=8"),
                               HasSubstr("Ethernet, 0 to 7")));
  EXPECT_EQ(ErrorCode(s->status), MIG_E_OPTION);
  Reset();
  Make("siw,seed=1", "siw,seed=2");
  s->settings.tuning.service_level = 1;
  EXPECT_THAT(Failure(),
              AllOf(HasSubstr("iWARP has none"), HasSubstr("traffic-class"),
                    testing::Not(HasSubstr("listening"))));
  EXPECT_EQ(ErrorCode(s->status), MIG_E_UNSUPPORTED);
}

// rdma_init_qp_attr or rdma_establish that fail end it, and leave nothing.
TEST_F(PathOptions, AServiceLevelThatCanNotBeSetIsAnErrorNotIgnored) {
  for (const char* call : {"CmInitQpAttr 3", "CmEstablish 1", "ModifyQp 3"}) {
    Make(absl::StrCat("mlx5,seed=1,faults=call ", call, " EOPNOTSUPP"));
    s->settings.tuning.service_level = 2;
    EXPECT_THAT(Failure(), HasSubstr("not supported")) << call;
    Reset();
  }
}

TEST_F(PathOptions, TheTrafficClassShowsOnTheQueuePair) {
  Make();
  s->settings.tuning.traffic_class = 104;
  Open();
  EXPECT_EQ(PathOf(s.get()).grh.traffic_class, 104);
  EXPECT_EQ(PathOf(d.get()).grh.traffic_class, 0);
}

TEST_F(PathOptions, AGidChoosesDeviceAndAddressAndComesUpOnTheQueuePair) {
  const std::string two = "mlx5,seed=1,devices=2,addresses=10.0.0.8+10.0.0.9";
  for (const char* text : {"::ffff:10.0.0.9", "10.0.0.9"}) {
    Make(two);
    UseGid(s.get(), text);
    Open();
    EXPECT_EQ(PathOf(s.get()).grh.sgid_index, 3);
    CmQp& control = s->opened.control->qp();
    EXPECT_EQ(FormatUri(control.local_address()), "rdma://10.0.0.9:0");
    EXPECT_STREQ(s->verbs->GetDeviceName(control.context()->device), "mlx5_1");
    Reset();
  }
}

TEST_F(PathOptions, AGidIsWhereAListenerListens) {
  Make();
  UseGid(d.get(), "10.0.0.2");
  d->Listen("rdma://:4444");
  ASSERT_TRUE(d->status.ok()) << d->status;
  EXPECT_EQ(d->opener->LocalUri(), "rdma://10.0.0.2:4444");
  s->Connect();
  Run();
  ASSERT_TRUE(d->open) << d->status;
  EXPECT_EQ(PathOf(d.get()).grh.sgid_index, 3);
  Reset();
  Make();
  UseGid(d.get(), "10.0.0.2");
  d->Listen("rdma://10.0.0.3:4444");
  EXPECT_EQ(ErrorCode(d->status), MIG_E_URI);
  EXPECT_THAT(std::string(d->status.message()), HasSubstr("10.0.0.2:4444"));
}

// As where the system still prefers RoCE v1.
TEST_F(PathOptions, AnotherGidThanTheOneChosenIsNotAcceptedSilently) {
  Make();
  UseGid(s.get(), "3");
  s->settings.tuning.gid_index = 2;
  EXPECT_THAT(Failure(), AllOf(HasSubstr("came up with GID index 3"),
                               HasSubstr("default_roce_mode")));
}

TEST_F(PathOptions, AGidThatIsNotThereIsAnsweredByThoseThatAre) {
  Make("mlx5,seed=1,devices=2,addresses=10.0.0.8+10.0.0.9");
  verbs::Verbs* const verbs = s->verbs.get();
  const auto missing = FindGid(verbs, "", 0, "10.0.0.7");
  EXPECT_EQ(ErrorCode(missing.status()), MIG_E_OPTION);
  EXPECT_THAT(
      std::string(missing.status().message()),
      AllOf(HasSubstr("mlx5_0 port 1 1=fe80::1, mlx5_0 port 1 "
                      "3=::ffff:10.0.0.8"),
            HasSubstr("mlx5_1 port 1 3=::ffff:10.0.0.9"), Not(HasSubstr("2="))))
      << "RoCE v1 is of no use";
  EXPECT_THAT(
      std::string(FindGid(verbs, "mlx5_0", 0, "10.0.0.9").status().message()),
      Not(HasSubstr("mlx5_1 port")));
  EXPECT_THAT(std::string(FindGid(verbs, "", 2, "3").status().message()),
              HasSubstr("there are: none"));
  EXPECT_THAT(std::string(FindGid(verbs, "", 0, "3").status().message()),
              HasSubstr("several ports: name device"));
  EXPECT_THAT(std::string(FindGid(verbs, "mlx5_1", 1, "2").status().message()),
              HasSubstr("not RoCE v2"));
  EXPECT_EQ(FindGid(verbs, "mlx5_1", 1, "3")->index, 3u);
  for (const char* nonsense : {"", "x", "-1", "99999999999", "1.2.3"}) {
    EXPECT_EQ(ErrorCode(FindGid(verbs, "", 0, nonsense).status()), MIG_E_OPTION)
        << nonsense;
  }
}

TEST_F(PathOptions, ADeviceThatTellsNothingIsNoCrash) {
  for (const char* call : {"GetDeviceList 1", "OpenDevice 1", "QueryDevice 1",
                           "QueryPort 1", "QueryGidEx 4"}) {
    Make(absl::StrCat("mlx5,seed=1,faults=call ", call, " EOPNOTSUPP"));
    EXPECT_FALSE(FindGid(s->verbs.get(), "", 0, "3").ok()) << call;
    Reset();
  }
  Make("mlx5,seed=1,faults=call QueryGidEx 4 EOPNOTSUPP");
  EXPECT_EQ(ErrorCode(FindGid(s->verbs.get(), "", 0, "3").status()),
            MIG_E_UNSUPPORTED);
}

TEST_F(PathOptions, AnotherPortThanTheOneChosenIsRefused) {
  Make();
  s->settings.tuning.port = 2;
  EXPECT_THAT(Failure(),
              AllOf(HasSubstr("port 1 of device mlx5_0"), HasSubstr("port=2")));
  EXPECT_EQ(ErrorCode(s->status), MIG_E_DEVICE);
}

}  // namespace
}  // namespace mig::rdma
