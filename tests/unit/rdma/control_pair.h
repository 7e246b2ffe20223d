// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Two control channels over two soft devices. No receiver-not-ready is retried
// there: the first one would end the connection.
#ifndef TESTS_UNIT_RDMA_CONTROL_PAIR_H_
#define TESTS_UNIT_RDMA_CONTROL_PAIR_H_

#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/control_channel.h"
#include "soft/soft_pair.h"

namespace mig::rdma {

constexpr uint16_t kReceives = 8;
constexpr uint16_t kSends = 4;
constexpr uint32_t kDepth = 16;

struct Got {
  FrameType type;
  uint64_t argument;
  std::string payload;
};

// One channel and what came out of it.
class Channel final : public FrameHandler {
 public:
  absl::Status OnFrame(const FrameHeader& header,
                       std::span<const uint8_t> payload,
                       std::vector<uint8_t>* whole) override {
    EXPECT_EQ(whole != nullptr, IsLong(header.type));
    got.push_back({header.type, header.argument,
                   std::string(payload.begin(), payload.end())});
    return answer;
  }
  absl::Status Poll(int budget = 1000) {
    int count = 0;
    return channel->Poll(this, budget, &count);
  }
  ControlChannel* operator->() { return channel.get(); }

  std::unique_ptr<ControlSlots> slots;
  std::unique_ptr<ControlChannel> channel;
  std::vector<Got> got;
  absl::Status answer;
};

class ControlChannelTest : public soft::SoftPair {
 protected:
  ControlChannelTest() {
    rnr_retry = 0;
    cqe = kDepth + kReceives;  // just what can complete (C04)
    cap = {.max_send_wr = kDepth,
           .max_recv_wr = kReceives,
           .max_send_sge = 2,
           .max_recv_sge = 1,
           .max_inline_data = 56};
  }

  void MakeChannel(soft::End* end, Channel* to, const ControlLimits& limits) {
    auto slots =
        ControlSlots::Create(end->verbs.get(), end->pd, kReceives, kSends);
    ASSERT_TRUE(slots.ok()) << slots.status();
    to->slots = *std::move(slots);
    to->channel =
        std::make_unique<ControlChannel>(end->verbs.get(), to->slots.get());
    ASSERT_TRUE((*to)->Attach(end->qp(), end->cq, limits).ok());
  }

  // Connected, both open.
  void Open(const std::string& source_config = "mlx5,seed=1",
            const std::string& target_config = "mlx5,seed=2",
            ControlLimits limits = {kDepth, 2, 56}) {
    Make(source_config, target_config);
    MakeListener();
    Resolve();
    source.MakeObjects(cqe);
    MakeQp(&source);
    MakeChannel(&source, &s, limits);
    rdma_conn_param param = {};
    param.retry_count = 7;
    ASSERT_EQ(source.verbs->CmConnect(source.id, &param), 0);
    Drive();
    rdma_cm_event request = {};
    ASSERT_EQ(target.NextEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
    target.id = request.id;
    target.MakeObjects(cqe);
    MakeQp(&target);
    MakeChannel(&target, &d, limits);
    s->SetPeer(false, kReceives);
    d->SetPeer(true, kReceives);
    s->SetMaxMessage(1u << 20);
    d->SetMaxMessage(1u << 20);
    ASSERT_EQ(target.verbs->CmAccept(target.id, &param), 0);
    Drive();
    ASSERT_EQ(source.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
    s->Open();
    Drive();
    ASSERT_EQ(target.NextEvent(), RDMA_CM_EVENT_ESTABLISHED);
    d->Open();
  }

  // Until neither has anything to do.
  void Settle() {
    for (int quiet = 0, i = 0; quiet < 10; ++i) {
      ASSERT_LT(i, 10'000) << "the channels never come to rest";
      const uint64_t sends = s->counts().sends + d->counts().sends;
      Drive();
      ASSERT_TRUE(s.Poll().ok()) << s->status();
      ASSERT_TRUE(d.Poll().ok()) << d->status();
      quiet = s->counts().sends + d->counts().sends == sends ? quiet + 1 : 0;
    }
    EXPECT_TRUE(s->Settled());
    EXPECT_TRUE(d->Settled());
  }

  void TearDown() override {
    for (auto* end : {&source, &target}) {
      if (end->id != nullptr) end->verbs->CmDestroyQp(end->id);
    }
    s.channel.reset();
    d.channel.reset();
    s.slots.reset();
    d.slots.reset();
    SoftPair::TearDown();
  }

  static std::string Text(size_t size, char seed) {
    std::string text(size, seed);
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(seed + i % 7);
    return text;
  }
  static std::span<const uint8_t> Bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  Channel s;
  Channel d;
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_CONTROL_PAIR_H_
