// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A connector and a listener over two soft devices, in one thread, under a
// clock that the test moves.
#ifndef TESTS_UNIT_RDMA_OPENER_PAIR_H_
#define TESTS_UNIT_RDMA_OPENER_PAIR_H_

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/opener.h"
#include "soft-verbs/soft_verbs.h"

namespace mig::rdma {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr char kUri[] = "rdma://10.0.0.2:4444";

// Its clock stands until it is moved; its random bytes are counted up.
class OpenerHost {
 public:
  OpenerHost() : host_(Services()) {}
  const Host& host() const { return host_; }
  uint64_t now_ns = 1000 * kSecond;
  std::vector<std::string> log;

 private:
  mig_host_services Services() {
    mig_host_services services = {};
    services.size = sizeof(services);
    services.flags = MIG_HOST_SIMULATED_CLOCK;
    services.host = this;
    services.clock_ns = [](void* self) {
      return static_cast<OpenerHost*>(self)->now_ns;
    };
    services.random = [](void* self, void* to, size_t size) {
      std::memset(to, ++static_cast<OpenerHost*>(self)->random_, size);
      return 0;
    };
    services.log = [](void* self, int32_t, const char* line) {
      static_cast<OpenerHost*>(self)->log.emplace_back(line);
    };
    return services;
  }
  uint8_t random_ = 0;
  Host host_;
};

// One side: a device, what a session has on it, and one opener.
class OpenerSide {
 public:
  OpenerSide(OpenerHost* host, std::shared_ptr<soft::Fabric> fabric,
             const std::string& config, uint32_t role)
      : host_(host) {
    auto made = soft::MakeSoftVerbs(config, &host->host(), std::move(fabric));
    EXPECT_TRUE(made.ok()) << made.status();
    verbs = *std::move(made);
    poller_ = *Poller::Create();
    auto events = CmEvents::Create(verbs.get(), poller_.get());
    creation = events.status();
    if (events.ok()) events_ = *std::move(events);
    devices_ = std::make_unique<DeviceSet>(verbs.get(), poller_.get());
    settings.hello.role = role;
    settings.hello.uuid.fill(0x42);
    settings.hello.attempt = 1;
    settings.hello.max_message = 1u << 20;
    settings.hello.window = 4u << 20;
    settings.hello.peer_timeout_ns = 10 * kSecond;
    settings.hello.chunk_size = 1u << 20;
    settings.hello.data_qps = 2;
    settings.data.most = {.max_send_wr = 512,
                          .max_recv_wr = 4,
                          .max_send_sge = 1,
                          .max_recv_sge = 1,
                          .max_inline_data = 0};
    settings.data.least_send_depth = 16;
    settings.data.least_receive_depth = 2;
    settings.connect_timeout_ns = 10 * kSecond;
    settings.handshake_timeout_ns = 5 * kSecond;
    settings.threads = false;
    settings.guest_device = [this](const rdma_cm_id* id) {
      return GuestMemory(id->verbs);
    };
  }
  ~OpenerSide() { Destroy(); }

  Io io() {
    return {verbs.get(), &host_->host(), poller_.get(), events_.get(),
            devices_.get()};
  }
  void SetKey(const std::string& key) {
    settings.key = key;
    settings.hello.auth = 1;
  }
  void Listen(const std::string& uri = kUri) {
    auto made = StartListener(uri, settings, io(), &refused);
    status = made.status();
    if (made.ok()) opener = *std::move(made);
  }
  void Connect(const std::string& uri = kUri) {
    auto made = StartConnector(uri, settings, io());
    status = made.status();
    if (made.ok()) opener = *std::move(made);
  }
  void Step() {
    if (events_ == nullptr) return;
    poller_->Wait(0);
    io().Pump();
    if (opener == nullptr) return;
    const absl::StatusOr<bool> done = opener->Step(host_->now_ns, &opened);
    if (done.ok() && !*done) return;
    status = done.status();
    open = done.ok();
    opener.reset();
  }
  // Also what a host that sleeps on the descriptor would be woken by.
  bool HasWork() {
    struct pollfd fd = {poller_->fd(), POLLIN, 0};
    return opener != nullptr && (opener->HasWork() || poll(&fd, 1, 0) > 0);
  }
  uint64_t Due() {
    const uint64_t own = opener != nullptr ? opener->DeadlineNs() : UINT64_MAX;
    return std::min(own, verbs->NextDueNs());
  }
  bool running() const { return opener != nullptr; }
  // All of it, in a session's order; nothing of the device is left.
  void Destroy() {
    if (verbs == nullptr) return;
    opener.reset();
    opened.data.clear();
    opened.control.reset();
    for (const auto& [context, pd] : pds_) verbs->DeallocPd(pd);
    devices_.reset();
    events_.reset();
    EXPECT_EQ(verbs->LiveObjects(), "");
    verbs.reset();
  }

  std::unique_ptr<soft::SoftVerbs> verbs;
  OpenerSettings settings;
  std::unique_ptr<Opener> opener;
  Opened opened;
  absl::Status creation;
  absl::Status status;
  bool open = false;
  uint64_t refused = 0;

 private:
  absl::StatusOr<GuestDevice> GuestMemory(ibv_context* context) {
    ibv_pd*& pd = pds_[context];
    if (pd == nullptr) pd = verbs->AllocPd(context);
    if (pd == nullptr) {
      pds_.erase(context);
      return MakeError(MIG_E_DEVICE, "no protection domain");
    }
    return GuestDevice{.guest_pd = pd};
  }

  OpenerHost* const host_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<CmEvents> events_;
  std::unique_ptr<DeviceSet> devices_;
  std::map<ibv_context*, ibv_pd*> pds_;
};

class OpenerTest : public ::testing::Test {
 protected:
  void Make(const std::string& source_config = "mlx5,seed=1",
            const std::string& target_config =
                "mlx5,seed=2,addresses=10.0.0.2+10.0.0.3") {
    auto fabric = std::make_shared<soft::Fabric>();
    fabric_ = fabric;
    s = std::make_unique<OpenerSide>(&host, fabric, source_config,
                                     MIG_ROLE_SOURCE);
    d = std::make_unique<OpenerSide>(&host, fabric, target_config,
                                     MIG_ROLE_DESTINATION);
  }
  // Steps all, moving the clock when nothing is left to do, until the sides
  // given are open or have failed, or `limit` has passed.
  void Run(uint64_t limit = 30 * kSecond, bool source = true,
           bool destination = true) {
    const uint64_t end = host.now_ns + limit;
    int idle = 0;
    for (int i = 0; i < 100'000; ++i) {
      for (auto* side : sides()) side->Step();
      if (!(source && s->running()) && !(destination && d->running())) return;
      bool work = false;
      uint64_t due = end;
      for (auto* side : sides()) {
        work = side->HasWork() || work;
        due = std::min(due, side->Due());
      }
      idle = work || due <= host.now_ns ? 0 : idle + 1;
      if (idle < 3) continue;
      if (due >= end) return;
      host.now_ns = std::max(host.now_ns, due);
      idle = 0;
    }
    ADD_FAILURE() << "the sides never come to rest";
  }
  void Open() {
    d->Listen();
    ASSERT_TRUE(d->status.ok()) << d->status;
    s->Connect();
    Run();
    ASSERT_TRUE(s->open) << s->status;
    ASSERT_TRUE(d->open) << d->status;
  }
  std::vector<OpenerSide*> sides() {
    std::vector<OpenerSide*> all = {s.get(), d.get()};
    for (const auto& other : others) all.push_back(other.get());
    return all;
  }
  OpenerSide* AddSource(const std::string& config = "mlx5,seed=9") {
    others.push_back(
        std::make_unique<OpenerSide>(&host, fabric_, config, MIG_ROLE_SOURCE));
    return others.back().get();
  }
  void Reset() {
    others.clear();
    s.reset();
    d.reset();
  }

  OpenerHost host;
  std::shared_ptr<soft::Fabric> fabric_;
  std::unique_ptr<OpenerSide> s;
  std::unique_ptr<OpenerSide> d;
  std::vector<std::unique_ptr<OpenerSide>> others;
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_OPENER_PAIR_H_
