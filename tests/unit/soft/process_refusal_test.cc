// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Where the system does not let one process work on the memory of another: both
// sides hear at connect what forbids it and what to do, and none waits.
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "gmock/gmock.h"
#include "process_pair.h"
#include "soft-verbs/process_link.h"

namespace mig::soft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr auto kAtOnce = std::chrono::milliseconds(1500);  // cm-timeout is 2 s

class ProcessRefusalTest : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    if (geteuid() != 0) GTEST_SKIP() << "only root can change users";
  }
  // Root may work on every process's memory, so what is forbidden shows only
  // for others.
  static void BecomeNobody(bool dumpable) {
    ASSERT_EQ(setuid(kNobody), 0);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0, 0, 0, 0), 0);
  }
  // The text of the rejection that is the next event.
  static std::string Rejection(Side* side) {
    const auto start = Clock::now();
    rdma_cm_event* event = nullptr;
    EXPECT_TRUE(side->Until([&] {
      return side->end.verbs->CmGetEvent(side->end.events, &event) == 0;
    }));
    EXPECT_LT(Clock::now() - start, kAtOnce);
    if (event == nullptr) return "";
    EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
    const rdma_conn_param& param = event->param.conn;
    std::string text(static_cast<const char*>(param.private_data),
                     param.private_data_len);
    text.resize(std::min(text.find('\0'), text.size()));
    side->end.verbs->CmAckEvent(event);
    return text;
  }
  // What connecting to the child says.
  std::string ConnectAndHear() {
    Side side(kConfig, port);
    Hear();
    side.Resolve();
    EXPECT_EQ(side.Connect(), 0);
    return Rejection(&side);
  }
  // Listens, until the test ends it.
  void ListenOnly() {
    Side side(kConfig, port);
    ASSERT_EQ(side.Listen(), 0);
    Tell({});
    side.Until([&] { return side.end.NextEvent() != -1; });
    ADD_FAILURE() << "a connection that can't work reached the user";
  }
};

TEST_F(ProcessRefusalTest, AnotherUserIsNamedAtConnect) {
  Fork([this] {
    BecomeNobody(true);
    ListenOnly();
  });
  EXPECT_THAT(ConnectAndHear(),
              AllOf(HasSubstr("as user 0"), HasSubstr("as 65534"),
                    HasSubstr("run both as one user")));
}

// One that does not look itself is told by the listener.
TEST_F(ProcessRefusalTest, AListenerTellsAnotherUserWhy) {
  Fork([this] { ListenOnly(); });
  Hear();
  const pid_t other = fork();
  if (other == 0) {
    BecomeNobody(true);
    const int stranger = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    const std::string text = ListenerName("", port);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + text.size());
    EXPECT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&name), size), 0);
    pollfd poller = {stranger, POLLIN, 0};
    EXPECT_EQ(poll(&poller, 1, 1000), 1);
    std::string answer(4096, '\0');
    const ssize_t got = recv(stranger, answer.data(), answer.size(), 0);
    answer.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    EXPECT_THAT(answer, HasSubstr("run both as one user"));
    std::fflush(stdout);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

// The first process of a PID namespace of its own runs `body`.
void InNewPidNamespace(const std::function<void()>& body) {
  if (unshare(CLONE_NEWPID) != 0) _exit(0);
  const pid_t first = fork();
  if (first == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    body();
    std::fflush(stdout);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(first, &status, 0);
  _exit(status == 0 ? 0 : 1);
}

bool PidNamespacesAllowed() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWPID) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(ProcessRefusalTest, AListenerInAnotherPidNamespaceSaysSo) {
  if (!PidNamespacesAllowed()) GTEST_SKIP() << "no PID namespaces here";
  Fork([this] { InNewPidNamespace([this] { ListenOnly(); }); });
  EXPECT_THAT(ConnectAndHear(), AllOf(HasSubstr("different PID namespaces"),
                                      HasSubstr("run both in one container")));
}

TEST_F(ProcessRefusalTest, ASourceInAnotherPidNamespaceSaysSo) {
  if (!PidNamespacesAllowed()) GTEST_SKIP() << "no PID namespaces here";
  Side side(kConfig, port);
  ASSERT_EQ(side.Listen(), 0);
  Fork([this] {
    InNewPidNamespace([this] {
      Tell({});
      EXPECT_THAT(ConnectAndHear(), HasSubstr("different PID namespaces"));
    });
  });
  JoinChild();
}

// As under yama's ptrace_scope, or with a seccomp filter: EPERM.
TEST_F(ProcessRefusalTest, WhatForbidsTheWritesIsToldToBoth) {
  for (const bool listener_open : {false, true}) {
    Fork([this, listener_open] {
      BecomeNobody(listener_open);
      Side side(kConfig, port);
      ASSERT_EQ(side.Listen(), 0);
      Tell({});
      if (listener_open) {  // it is this side that can't reach the other
        side.Until([&] { return side.end.NextEvent() != -1; });
        return;
      }
      side.Accept();
      ASSERT_EQ(side.end.verbs->CmAccept(side.end.id, nullptr), 0);
      EXPECT_THAT(Rejection(&side), HasSubstr("process_vm_writev"));
    });
    const pid_t source = fork();
    if (source == 0) {
      BecomeNobody(!listener_open);
      EXPECT_THAT(ConnectAndHear(),
                  AllOf(HasSubstr("process_vm_writev is forbidden"),
                        HasSubstr("yama.ptrace_scope 0 or 1"),
                        HasSubstr("PR_SET_DUMPABLE")));
      std::fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(source, &status, 0), source);
    EXPECT_EQ(status, 0);
    if (listener_open) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      child = 0;
    } else {
      JoinChild();
    }
    ++port;
  }
}

}  // namespace
}  // namespace mig::soft
