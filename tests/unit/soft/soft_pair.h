// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Two soft devices on one fabric under a clock that the test moves, and a
// connection between them.
#ifndef TESTS_UNIT_SOFT_SOFT_PAIR_H_
#define TESTS_UNIT_SOFT_SOFT_PAIR_H_

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "soft-verbs/soft_verbs.h"

namespace mig::soft {

// A host whose clock stands until it is moved.
class FakeHost {
 public:
  FakeHost() : host_(Services()) {}
  const Host* host() const { return &host_; }
  uint64_t now_ns = 1'000'000'000;

 private:
  mig_host_services Services() {
    mig_host_services services = {};
    services.size = sizeof(services);
    services.flags = MIG_HOST_SIMULATED_CLOCK;
    services.host = this;
    services.clock_ns = [](void* self) {
      return static_cast<FakeHost*>(self)->now_ns;
    };
    services.random = [](void*, void* buffer, size_t size) {
      std::memset(buffer, 7, size);
      return 0;
    };
    return services;
  }
  Host host_;
};

inline sockaddr_in Address(const char* text, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

inline void NonBlocking(int fd) {
  ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

// One end: a device, and on it what a connection needs.
struct End {
  std::unique_ptr<SoftVerbs> verbs;
  rdma_event_channel* events = nullptr;
  rdma_cm_id* id = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  std::vector<ibv_mr*> mrs;

  ibv_qp* qp() const { return id->qp; }

  // The next event, or -1 as its type if there is none. Acknowledged.
  int NextEvent(rdma_cm_event* copy = nullptr) {
    rdma_cm_event* event = nullptr;
    if (verbs->CmGetEvent(events, &event) != 0) return -1;
    const int type = event->event;
    if (copy != nullptr) *copy = *event;
    EXPECT_EQ(verbs->CmAckEvent(event), 0);
    return type;
  }

  ibv_mr* Register(void* address, size_t length, unsigned int access) {
    ibv_mr* mr = verbs->RegMr(pd, address, length, access);
    if (mr != nullptr) mrs.push_back(mr);
    return mr;
  }

  void MakeObjects(int cqe) {
    pd = verbs->AllocPd(id->verbs);
    ASSERT_NE(pd, nullptr);
    channel = verbs->CreateCompChannel(id->verbs);
    ASSERT_NE(channel, nullptr);
    NonBlocking(channel->fd);
    cq = verbs->CreateCq(id->verbs, cqe, this, channel, 0);
    ASSERT_NE(cq, nullptr);
  }

  std::vector<ibv_wc> Poll() {
    std::vector<ibv_wc> all(64);
    const int count = ibv_poll_cq(cq, 64, all.data());
    all.resize(static_cast<size_t>(std::max(count, 0)));
    return all;
  }

  // Everything goes, in the order that the libraries ask for.
  void Close() {
    for (ibv_mr* mr : mrs) EXPECT_EQ(verbs->DeregMr(mr), 0);
    mrs.clear();
    if (id != nullptr) {
      verbs->CmDestroyQp(id);
      EXPECT_EQ(verbs->CmDestroyId(id), 0);
      id = nullptr;
    }
    if (cq != nullptr) {
      EXPECT_EQ(verbs->DestroyCq(cq), 0);
    }
    if (channel != nullptr) {
      EXPECT_EQ(verbs->DestroyCompChannel(channel), 0);
    }
    if (pd != nullptr) {
      EXPECT_EQ(verbs->DeallocPd(pd), 0);
    }
    cq = nullptr;
    channel = nullptr;
    pd = nullptr;
  }
};

class SoftPair : public ::testing::Test {
 protected:
  static constexpr uint16_t kPort = 7000;

  // Makes both devices: "source" connects to "target".
  void Make(const std::string& source_config,
            const std::string& target_config) {
    auto fabric = std::make_shared<Fabric>();
    auto one = MakeSoftVerbs(source_config, clock.host(), fabric);
    auto other = MakeSoftVerbs(target_config, clock.host(), fabric);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_TRUE(other.ok()) << other.status();
    source.verbs = *std::move(one);
    target.verbs = *std::move(other);
    for (End* end : {&source, &target}) {
      end->events = end->verbs->CmCreateEventChannel();
      ASSERT_NE(end->events, nullptr);
      NonBlocking(end->events->fd);
    }
  }

  void MakeListener() {
    ASSERT_EQ(target.verbs->CmCreateId(target.events, &listener, nullptr,
                                       RDMA_PS_TCP),
              0);
    sockaddr_in any = Address("0.0.0.0", kPort);
    ASSERT_EQ(
        target.verbs->CmBindAddr(listener, reinterpret_cast<sockaddr*>(&any)),
        0);
    ASSERT_EQ(target.verbs->CmListen(listener, 8), 0);
  }

  // The source's id as far as ROUTE_RESOLVED.
  void Resolve(const char* address = "10.1.2.3") {
    ASSERT_EQ(source.verbs->CmCreateId(source.events, &source.id, nullptr,
                                       RDMA_PS_TCP),
              0);
    sockaddr_in to = Address(address, kPort);
    ASSERT_EQ(source.verbs->CmResolveAddr(
                  source.id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000),
              0);
    Drive();
    ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(source.verbs->CmResolveRoute(source.id, 1000), 0);
    Drive();
    ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  ibv_qp_init_attr Attributes(const End& end) const {
    ibv_qp_init_attr attr = {};
    attr.send_cq = end.cq;
    attr.recv_cq = end.cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = cap;
    return attr;
  }

  void MakeQp(End* end) {
    ibv_qp_init_attr attr = Attributes(*end);
    ASSERT_EQ(end->verbs->CmCreateQp(end->id, end->pd, &attr), 0);
    end->verbs->FreeDeviceList(nullptr);
  }

  // Both ends established, with nothing posted.
  void Connect() {
    MakeListener();
    Resolve();
    source.MakeObjects(cqe);
    MakeQp(&source);
    rdma_conn_param param = {};
    param.retry_count = retry_count;
    param.rnr_retry_count = rnr_retry;
    ASSERT_EQ(source.verbs->CmConnect(source.id, &param), 0);
    Drive();
    rdma_cm_event request = {};
    ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
    target.id = request.id;
    target.MakeObjects(cqe);
    MakeQp(&target);
    ASSERT_EQ(target.verbs->CmAccept(target.id, &param), 0);
    Drive();
    ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
    Drive();
    ASSERT_EQ(target.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
  }
  void Connect(const std::string& source_config,
               const std::string& target_config) {
    Make(source_config, target_config);
    if (!HasFatalFailure()) Connect();
  }

  // Drives until nothing is due, at the present time.
  void Drive() {
    for (int i = 0; i < 10000 && source.verbs->NextDueNs() == 0; ++i) {
      source.verbs->Drive();
    }
    source.verbs->Drive();
  }
  // Moves the clock from one due time to the next, at most to `ns` from now.
  void DriveFor(uint64_t ns) {
    const uint64_t end = clock.now_ns + ns;
    for (;;) {
      Drive();
      const uint64_t due = target.verbs->NextDueNs();
      if (due > end) break;
      clock.now_ns = due;
    }
    clock.now_ns = end;
    Drive();
  }

  void TearDown() override {
    if (source.verbs == nullptr) return;
    for (End* end : {&source, &target}) {
      end->Close();
      if (end == &target && listener != nullptr) {
        EXPECT_EQ(target.verbs->CmDestroyId(listener), 0);
      }
      if (end->events != nullptr) {
        end->verbs->CmDestroyEventChannel(end->events);
      }
      EXPECT_EQ(end->verbs->LiveObjects(), "");
    }
  }

  FakeHost clock;
  End source;
  End target;
  rdma_cm_id* listener = nullptr;
  ibv_qp_cap cap = {16, 16, 2, 2, 0};
  int cqe = 64;
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 6;
};

// A work request to post, with its one gather entry.
struct Wr {
  explicit Wr(ibv_wr_opcode opcode, uint64_t id = 0) {
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
  }
  Wr(const Wr&) = delete;
  Wr& operator=(const Wr&) = delete;
  Wr& From(const void* address, size_t length, uint32_t lkey) {
    sge = {reinterpret_cast<uint64_t>(address), static_cast<uint32_t>(length),
           lkey};
    wr.num_sge = 1;
    return *this;
  }
  Wr& To(const void* address, uint32_t rkey) {
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(address);
    wr.wr.rdma.rkey = rkey;
    return *this;
  }
  Wr& Flags(unsigned int flags) {
    wr.send_flags = flags;
    return *this;
  }
  int Post(ibv_qp* qp) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  ibv_send_wr wr = {};
  ibv_sge sge = {};
};

inline int PostReceive(ibv_qp* qp, void* address, size_t length, uint32_t lkey,
                       uint64_t id) {
  ibv_sge sge = {reinterpret_cast<uint64_t>(address),
                 static_cast<uint32_t>(length), lkey};
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

}  // namespace mig::soft

#endif  // TESTS_UNIT_SOFT_SOFT_PAIR_H_
