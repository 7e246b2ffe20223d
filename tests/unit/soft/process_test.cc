// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The wire between two processes: the child listens, the test connects.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "process_pair.h"
#include "soft-verbs/process_link.h"

namespace mig::soft {
namespace {

TEST_F(ProcessTest, PagesGoStraightIntoTheOtherProcess) {
  Fork([this] {
    Side side(kConfig, port);
    Serve(&side, 1);
    const std::vector<ibv_wc> done = side.WaitCompletions(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[0].byte_len, 5u);
    EXPECT_EQ(std::memcmp(memory, "fence", 5), 0);
    for (size_t at = 4096; at < kSize; at += 4096) {
      ASSERT_EQ(memory[at], static_cast<uint8_t>(at / 4096 + 1));
      ASSERT_EQ(memory[at + 4095], static_cast<uint8_t>(at / 4096 + 1));
    }
    EXPECT_EQ(side.WaitEvent(), RDMA_CM_EVENT_DISCONNECTED);
  });
  Side side(kConfig, port);
  ConnectTo(&side);
  for (size_t at = 4096; at < kSize; at += 4096) {
    std::memset(memory + at, static_cast<int>(at / 4096 + 1), 4096);
    ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                  .From(memory + at, 4096, mr->lkey)
                  .To(memory + at, rkey)
                  .Flags(0)
                  .Post(side.end.qp()),
              0);
  }
  std::memcpy(memory, "fence", 5);
  ASSERT_EQ(Wr(IBV_WR_SEND, 9).From(memory, 5, mr->lkey).Post(side.end.qp()),
            0);
  const std::vector<ibv_wc> done = side.WaitCompletions(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].wr_id, 9u);
  side.end.Close();
  JoinChild();
}

TEST_F(ProcessTest, SleepersOnTheirDescriptorsWake) {
  Fork([this] {
    Side side(kConfig, port);
    ASSERT_EQ(side.Listen(), 0);
    Tell({});
    // A request wakes whoever sleeps on the event channel.
    pollfd poller = {side.end.events->fd, POLLIN, 0};
    ASSERT_EQ(poll(&poller, 1, kLimitMs), 1);
    side.Accept();
    ASSERT_EQ(PostReceive(side.end.qp(), nullptr, 0, 0, 1), 0);
    ASSERT_EQ(side.end.verbs->CmAccept(side.end.id, nullptr), 0);
    ASSERT_EQ(side.WaitEvent(), RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_EQ(ibv_req_notify_cq(side.end.cq, 0), 0);
    Tell({});
    // A message wakes whoever sleeps on the completion channel.
    poller.fd = side.end.channel->fd;
    ASSERT_EQ(poll(&poller, 1, kLimitMs), 1);
    side.end.verbs->Drive();
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    ASSERT_EQ(side.end.verbs->GetCqEvent(side.end.channel, &cq, &user), 0);
    side.end.verbs->AckCqEvents(cq, 1);
    EXPECT_EQ(side.end.Poll().size(), 1u);
    // And the other side's end wakes the event channel again.
    poller.fd = side.end.events->fd;
    ASSERT_EQ(poll(&poller, 1, kLimitMs), 1);
    EXPECT_EQ(side.WaitEvent(), RDMA_CM_EVENT_DISCONNECTED);
  });
  Side side(kConfig, port);
  Hear();
  side.Resolve();
  usleep(20'000);
  ASSERT_EQ(side.Connect(), 0);
  ASSERT_EQ(side.WaitEvent(), RDMA_CM_EVENT_ESTABLISHED);
  Hear();
  usleep(20'000);
  ASSERT_EQ(Wr(IBV_WR_SEND).Post(side.end.qp()), 0);
  EXPECT_EQ(side.WaitCompletions(1).size(), 1u);
  usleep(20'000);
  side.end.Close();
  JoinChild();
}

TEST_F(ProcessTest, WhatTheTargetForbidsIsRefusedAndItHears) {
  Fork([this] {
    Side side(kConfig, port);
    Serve(&side, 1);
    const std::vector<ibv_wc> done = side.WaitCompletions(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_WR_FLUSH_ERR);
    NonBlocking(side.end.id->verbs->async_fd);
    ibv_async_event event = {};
    ASSERT_EQ(side.end.verbs->GetAsyncEvent(side.end.id->verbs, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    side.end.verbs->AckAsyncEvent(&event);
    EXPECT_EQ(memory[kSize - 4], 0);
  });
  Side side(kConfig, port);
  ConnectTo(&side);
  memory[0] = 7;
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(memory, 16, mr->lkey)
                .To(memory + kSize - 4, rkey)
                .Post(side.end.qp()),
            0);
  const std::vector<ibv_wc> done = side.WaitCompletions(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_REM_ACCESS_ERR);
  JoinChild();
}

TEST_F(ProcessTest, C08KilledPeerIsADisconnectAndLostRetries) {
  Fork([this] {
    Side side(kConfig, port);
    Serve(&side, 1);
    side.Until([] { return false; });
  });
  Side side(kConfig, port);
  ConnectTo(&side);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  child = 0;
  ASSERT_EQ(Wr(IBV_WR_RDMA_WRITE)
                .From(memory, 16, mr->lkey)
                .To(memory, rkey)
                .Post(side.end.qp()),
            0);
  const std::vector<ibv_wc> done = side.WaitCompletions(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(side.WaitEvent(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(ProcessTest, C08StoppedPeerNeverHoldsTheCaller) {
  Fork([this] {
    Side side(kConfig, port);
    Serve(&side, 1);
    side.Until([] { return false; });
  });
  Side side(kConfig, port);
  ConnectTo(&side);
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  // Its memory takes writes, and one message finds the receive. The next finds
  // none, ever.
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(Wr(IBV_WR_SEND, i).From(memory, 8, mr->lkey).Post(side.end.qp()),
              0);
  }
  const auto start = Clock::now();
  side.end.verbs->Drive();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
  const std::vector<ibv_wc> done = side.WaitCompletions(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_RNR_RETRY_EXC_ERR);
  ASSERT_EQ(side.end.verbs->CmDisconnect(side.end.id), 0);
  EXPECT_EQ(side.WaitEvent(), RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(ProcessTest, RejectionBringsItsReason) {
  Fork([this] {
    Side side(kConfig, port);
    ASSERT_EQ(side.Listen(), 0);
    Tell({});
    side.WaitRequest();
    ASSERT_EQ(side.end.verbs->CmReject(side.end.id, "why", 3), 0);
  });
  Side side(kConfig, port);
  Hear();
  side.Resolve();
  ASSERT_EQ(side.Connect("me"), 0);
  rdma_cm_event* event = nullptr;
  ASSERT_TRUE(side.Until([&] {
    return side.end.verbs->CmGetEvent(side.end.events, &event) == 0;
  }));
  EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event->status, 28);
  EXPECT_STREQ(static_cast<const char*>(event->param.conn.private_data), "why");
  side.end.verbs->CmAckEvent(event);
  JoinChild();
}

TEST_F(ProcessTest, NobodyListeningIsRejected) {
  Side side(kConfig, port);
  side.Resolve();
  ASSERT_EQ(side.Connect(), 0);
  rdma_cm_event event = {};
  EXPECT_EQ(side.WaitEvent(&event), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event.status, 8);
}

TEST_F(ProcessTest, PortOfAnotherProcessIsInUse) {
  Fork([this] {
    Side side(kConfig, port);
    Tell({0, side.Listen()});
    side.Until([] { return false; });
  });
  EXPECT_EQ(Hear().error, 0);
  Side side(kConfig, port);
  EXPECT_EQ(side.Listen(), EADDRINUSE);
}

TEST_F(ProcessTest, StrangersOnTheSocketDoNoHarm) {
  Fork([this] {
    Side side(kConfig, port);
    Serve(&side, 1);
    EXPECT_EQ(side.WaitCompletions(1).size(), 1u);
  });
  Side side(kConfig, port);
  const int stranger = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = ListenerName("", port);
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_TRUE(side.Until([&] {
    return connect(stranger, reinterpret_cast<sockaddr*>(&name), size) == 0;
  }));
  std::vector<char> garbage(700, 'x');
  EXPECT_GT(send(stranger, garbage.data(), garbage.size(), 0), 0);
  ConnectTo(&side);
  ASSERT_EQ(Wr(IBV_WR_SEND).Post(side.end.qp()), 0);
  EXPECT_EQ(side.WaitCompletions(1).size(), 1u);
  char byte = 0;
  EXPECT_LE(recv(stranger, &byte, 1, 0), 1);  // sent away
  close(stranger);
  JoinChild();
}

}  // namespace
}  // namespace mig::soft
