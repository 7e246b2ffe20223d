// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The connection manager: its events, its refusals, and its ends.
#include "gmock/gmock.h"
#include "soft_pair.h"

namespace mig::soft {
namespace {

class CmTest : public SoftPair {
 protected:
  // A connect of the source, with or without a queue pair.
  int Ask(const char* data = nullptr, bool with_qp = true) {
    if (with_qp) {
      source.MakeObjects(cqe);
      MakeQp(&source);
    }
    rdma_conn_param param = {};
    param.private_data = data;
    param.private_data_len =
        static_cast<uint8_t>(data == nullptr ? 0 : std::strlen(data));
    return source.verbs->CmConnect(source.id, &param);
  }
  // The next event of an end, kept; the caller acknowledges.
  static rdma_cm_event* Keep(End* end) {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(end->verbs->CmGetEvent(end->events, &event), 0);
    return event;
  }
  int Bind(rdma_cm_id* id, const char* address, uint16_t port) {
    sockaddr_in to = Address(address, port);
    errno = 0;
    return target.verbs->CmBindAddr(id, reinterpret_cast<sockaddr*>(&to));
  }
};

TEST_F(CmTest, ConnectionCarriesPrivateDataPaddedAndTheNumbersSwapped) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask("hello"), 0);
  Drive();
  rdma_cm_event* request = Keep(&target);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->listen_id, listener);
  EXPECT_NE(request->id->verbs, nullptr);
  EXPECT_EQ(request->param.conn.qp_num, source.qp()->qp_num);
  ASSERT_EQ(request->param.conn.private_data_len, 56);
  EXPECT_STREQ(static_cast<const char*>(request->param.conn.private_data),
               "hello");
  target.id = request->id;
  target.verbs->CmAckEvent(request);
}

TEST_F(CmTest, PrivateDataHasItsLimits) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  MakeListener();
  Resolve();
  EXPECT_EQ(Ask(std::string(57, 'x').c_str()), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_conn_param none = {};
  ASSERT_EQ(source.verbs->CmConnect(source.id, &none), 0);
  Drive();
  rdma_cm_event request = {};
  ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
  target.id = request.id;
  const std::string data(200, 'x');
  rdma_conn_param param = {};
  param.private_data = data.data();
  param.private_data_len = 197;
  EXPECT_EQ(target.verbs->CmAccept(target.id, &param), -1);
  EXPECT_EQ(target.verbs->CmReject(target.id, data.data(), 149), -1);
  EXPECT_EQ(target.verbs->CmReject(target.id, data.data(), 148), 0);
  Drive();
  rdma_cm_event* rejected = Keep(&source);
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(rejected->param.conn.private_data_len, 148);
  EXPECT_EQ(source.qp()->state, IBV_QPS_ERR);
  source.verbs->CmAckEvent(rejected);
}

TEST_F(CmTest, NobodyListeningIsRejectedByThePeersStack) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event event = {};
  ASSERT_EQ(source.NextEvent(&event), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event.status, 8);
}

TEST_F(CmTest, SilentPeerIsUnreachableAfterTheTimeout) {
  Make("mlx5,cm-timeout=2s", "mlx5,faults=stop @0 0");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  DriveFor(1'999'999'999);
  EXPECT_EQ(source.NextEvent(), -1);
  DriveFor(1);
  rdma_cm_event event = {};
  ASSERT_EQ(source.NextEvent(&event), RDMA_CM_EVENT_UNREACHABLE);
  EXPECT_EQ(event.status, -ETIMEDOUT);
}

TEST_F(CmTest, ScheduledConnectionFailuresComeAsTheirEvents) {
  Make("mlx5,faults=reject 1;connect-error 2", "mlx5,seed=1");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event event = {};
  EXPECT_EQ(source.NextEvent(&event), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event.status, 8);
  source.Close();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  ASSERT_EQ(target.NextEvent(&event), RDMA_CM_EVENT_CONNECT_REQUEST);
  target.id = event.id;
  ASSERT_EQ(target.verbs->CmAccept(target.id, nullptr), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_REJECTED);
}

TEST_F(CmTest, C18AddressWithoutADeviceAndResolutionErrorsAreEvents) {
  Make("mlx5,faults=no-device 1;addr-error 2;route-error 1", "mlx5,seed=1");
  sockaddr_in to = Address("10.0.0.1", kPort);
  auto* address = reinterpret_cast<sockaddr*>(&to);
  SoftVerbs* verbs = source.verbs.get();
  ASSERT_EQ(verbs->CmCreateId(source.events, &source.id, nullptr, RDMA_PS_TCP),
            0);
  ASSERT_EQ(verbs->CmResolveAddr(source.id, nullptr, address, 100), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(source.id->verbs, nullptr);
  EXPECT_EQ(verbs->CmResolveRoute(source.id, 100), -1);
  EXPECT_EQ(errno, ENODEV);
  source.Close();
  ASSERT_EQ(verbs->CmCreateId(source.events, &source.id, nullptr, RDMA_PS_TCP),
            0);
  ASSERT_EQ(verbs->CmResolveAddr(source.id, nullptr, address, 100), 0);
  Drive();
  rdma_cm_event event = {};
  EXPECT_EQ(source.NextEvent(&event), RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_LT(event.status, 0);
  // The same id may try again.
  ASSERT_EQ(verbs->CmResolveAddr(source.id, nullptr, address, 100), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(verbs->CmResolveRoute(source.id, 100), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_ROUTE_ERROR);
}

TEST_F(CmTest, C18PortInUseAndForeignAddressAreToldApart) {
  Make("mlx5,seed=1", "mlx5,addresses=10.0.0.1");
  MakeListener();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(target.verbs->CmCreateId(target.events, &id, nullptr, RDMA_PS_TCP),
            0);
  EXPECT_EQ(Bind(id, "10.0.0.1", kPort), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(Bind(id, "10.0.0.2", kPort + 1), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_EQ(Bind(id, "0.0.0.0", 0), 0);
  const sockaddr_in* chosen = &id->route.addr.src_sin;
  EXPECT_NE(chosen->sin_port, 0);
  EXPECT_NE(ntohs(chosen->sin_port), kPort);
  EXPECT_EQ(target.verbs->CmDestroyId(id), 0);
}

TEST_F(CmTest, ConnectionComesUpOnTheDeviceOfItsAddress) {
  Make("mlx5,seed=1", "mlx5,devices=2,addresses=10.0.0.1+10.0.0.2");
  MakeListener();
  Resolve("10.0.0.2");
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event request = {};
  ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
  target.id = request.id;
  EXPECT_STREQ(target.id->verbs->device->name, "mlx5_1");
}

TEST_F(CmTest, DisconnectReachesBothSidesAndEndsInTimeWait) {
  Connect("mlx5,seed=1", "mlx5,seed=1");
  ASSERT_EQ(source.verbs->CmDisconnect(source.id), 0);
  EXPECT_EQ(source.qp()->state, IBV_QPS_ERR);
  Drive();
  EXPECT_EQ(source.NextEvent(), -1);  // the other side has to answer
  ASSERT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.qp()->state, IBV_QPS_RTS);
  ASSERT_EQ(target.verbs->CmDisconnect(target.id), 0);
  EXPECT_EQ(target.qp()->state, IBV_QPS_ERR);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  DriveFor(1'000'000'000);
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  EXPECT_EQ(source.verbs->CmDisconnect(source.id), -1);
}

TEST_F(CmTest, BothMayDisconnectAtOnce) {
  Connect("mlx5,seed=1", "mlx5,seed=1");
  ASSERT_EQ(source.verbs->CmDisconnect(source.id), 0);
  ASSERT_EQ(target.verbs->CmDisconnect(target.id), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmTest, UnansweredDisconnectEndsAfterTheTimeout) {
  Connect("mlx5,seed=1", "mlx5,seed=1");
  ASSERT_EQ(source.verbs->CmDisconnect(source.id), 0);
  DriveFor(2'000'000'000);
  rdma_cm_event event = {};
  ASSERT_EQ(source.NextEvent(&event), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(event.status, -ETIMEDOUT);
}

TEST_F(CmTest, DestroyedIdIsADisconnectForItsPeer) {
  Connect("mlx5,seed=1", "mlx5,seed=1");
  source.Close();
  Drive();
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  // Nobody is left to answer, but the peer's stack.
  ASSERT_EQ(target.verbs->CmDisconnect(target.id), 0);
  DriveFor(1'000'000);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(CmTest, C16UnacknowledgedEventsKeepTheirIdAndNothingHangs) {
  Connect("mlx5,seed=1", "mlx5,seed=1");
  ASSERT_EQ(target.verbs->CmDisconnect(target.id), 0);
  Drive();
  rdma_cm_event* event = Keep(&source);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(source.verbs->CmDestroyId(source.id), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(source.verbs->CmAckEvent(event), 0);
}

TEST_F(CmTest, ConnectRequestIsCountedAtItsListener) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event* request = Keep(&target);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(target.verbs->CmDestroyId(listener), -1);
  EXPECT_EQ(target.verbs->CmDestroyId(request->id), 0);
  EXPECT_EQ(target.verbs->CmAckEvent(request), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_REJECTED);
}

TEST_F(CmTest, RequestsThatNobodyRetrievedGoWithTheirListener) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  ASSERT_EQ(target.verbs->CmDestroyId(listener), 0);
  listener = nullptr;
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(target.NextEvent(), -1);
}

TEST_F(CmTest, ReceiveMayCompleteBeforeEstablished) {
  Make("mlx5,seed=1", "mlx5,cm-delay=0");
  MakeListener();
  Resolve();
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event request = {};
  ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
  target.id = request.id;
  target.MakeObjects(cqe);
  MakeQp(&target);
  ASSERT_EQ(PostReceive(target.qp(), nullptr, 0, 0, 9), 0);
  ASSERT_EQ(target.verbs->CmAccept(target.id, nullptr), 0);
  Drive();
  // The active side is ready once its user has seen the event.
  ibv_send_wr* bad = nullptr;
  Wr early(IBV_WR_SEND);
  EXPECT_EQ(ibv_post_send(source.qp(), &early.wr, &bad), EINVAL);
  ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(early.Post(source.qp()), 0);
  Drive();
  EXPECT_EQ(target.Poll().size(), 1u);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(CmTest, AcknowledgementTimeoutIsAnOptionOfTheId) {
  Make("mlx5,seed=1", "mlx5,seed=1");
  MakeListener();
  Resolve();
  uint8_t timeout = 10;
  EXPECT_EQ(source.verbs->CmSetOption(source.id, RDMA_OPTION_ID,
                                      RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
            0);
  EXPECT_EQ(
      source.verbs->CmSetOption(source.id, RDMA_OPTION_ID, 99, &timeout, 1),
      -1);
  EXPECT_EQ(errno, ENOSYS);
  ASSERT_EQ(Ask(), 0);
  Drive();
  rdma_cm_event request = {};
  ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
  target.id = request.id;
  ASSERT_EQ(target.verbs->CmAccept(target.id, nullptr), 0);
  Drive();
  ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(source.verbs->QueryQp(source.qp(), &attr, 0, &init), 0);
  EXPECT_EQ(attr.timeout, 10);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
}

TEST_F(CmTest, SiwDisconnectsBothSidesAtOnceAndHasNoTimeWait) {
  Connect("siw,seed=1", "siw,seed=1");
  ASSERT_EQ(source.verbs->CmDisconnect(source.id), 0);
  Drive();
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.qp()->state, IBV_QPS_ERR);
  DriveFor(10'000'000'000);
  EXPECT_EQ(source.NextEvent(), -1);
}

TEST_F(CmTest, C09SiwEndsTheConnectionWhereAReceiveIsMissing) {
  Connect("siw,seed=1", "siw,seed=1");
  ASSERT_EQ(Wr(IBV_WR_SEND, 1).Post(source.qp()), 0);
  Drive();
  const std::vector<ibv_wc> done = source.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(source.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(target.NextEvent(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmTest, SiwHasNoImmediateData) {
  Connect("siw,seed=1", "siw,seed=1");
  EXPECT_EQ(Wr(IBV_WR_RDMA_WRITE_WITH_IMM).Post(source.qp()), EINVAL);
}

}  // namespace
}  // namespace mig::soft
