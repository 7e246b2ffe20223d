// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Two processes with a soft device each: the child listens, the test connects.
#ifndef TESTS_UNIT_SOFT_PROCESS_PAIR_H_
#define TESTS_UNIT_SOFT_PROCESS_PAIR_H_

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "soft_pair.h"

namespace mig::soft {

using Clock = std::chrono::steady_clock;

constexpr size_t kSize = 1u << 20;
constexpr uint64_t kLimitMs = 20'000;

// One process's end, driven in real time.
class Side {
 public:
  explicit Side(const std::string& config, uint16_t port) : port_(port) {
    auto made = MakeSoftVerbs(config, &host_, std::make_shared<Fabric>());
    EXPECT_TRUE(made.ok()) << made.status();
    end.verbs = *std::move(made);
    end.events = end.verbs->CmCreateEventChannel();
    NonBlocking(end.events->fd);
  }
  ~Side() {
    end.Close();
    if (listener != nullptr) end.verbs->CmDestroyId(listener);
    end.verbs->CmDestroyEventChannel(end.events);
    EXPECT_EQ(end.verbs->LiveObjects(), "");
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Drives until `done`; false after a time that is never needed.
  bool Until(const std::function<bool()>& done) {
    const auto start = Clock::now();
    while (!done()) {
      end.verbs->Drive();
      if (Clock::now() - start > std::chrono::milliseconds(kLimitMs)) {
        return false;
      }
      usleep(50);
    }
    return true;
  }
  int WaitEvent(rdma_cm_event* copy = nullptr) {
    int type = -1;
    Until([&] { return (type = end.NextEvent(copy)) != -1; });
    return type;
  }
  std::vector<ibv_wc> WaitCompletions(size_t count) {
    std::vector<ibv_wc> all;
    Until([&] {
      for (const ibv_wc& wc : end.Poll()) all.push_back(wc);
      return all.size() >= count;
    });
    return all;
  }

  int Listen() {
    EXPECT_EQ(
        end.verbs->CmCreateId(end.events, &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = Address("0.0.0.0", port_);
    if (end.verbs->CmBindAddr(listener, reinterpret_cast<sockaddr*>(&any)) !=
        0) {
      return errno;
    }
    return end.verbs->CmListen(listener, 8) == 0 ? 0 : errno;
  }
  void MakeQp() {
    end.MakeObjects(512);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = end.cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {512, 64, 2, 2, 0};
    ASSERT_EQ(end.verbs->CmCreateQp(end.id, end.pd, &attr), 0);
  }
  void WaitRequest() {
    rdma_cm_event request = {};
    ASSERT_EQ(WaitEvent(&request), RDMA_CM_EVENT_CONNECT_REQUEST);
    end.id = request.id;
  }
  void Accept() {
    WaitRequest();
    MakeQp();
  }
  void Resolve() {
    ASSERT_EQ(end.verbs->CmCreateId(end.events, &end.id, nullptr, RDMA_PS_TCP),
              0);
    sockaddr_in to = Address("127.0.0.1", port_);
    ASSERT_EQ(end.verbs->CmResolveAddr(end.id, nullptr,
                                       reinterpret_cast<sockaddr*>(&to), 100),
              0);
    ASSERT_EQ(WaitEvent(), RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(end.verbs->CmResolveRoute(end.id, 100), 0);
    ASSERT_EQ(WaitEvent(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    MakeQp();
    uint8_t timeout = 8;  // about 1 ms
    end.verbs->CmSetOption(end.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
                           &timeout, 1);
  }
  int Connect(const char* data = "") {
    rdma_conn_param param = {};
    param.private_data = data;
    param.private_data_len = static_cast<uint8_t>(std::strlen(data));
    param.retry_count = 3;
    param.rnr_retry_count = 1;
    return end.verbs->CmConnect(end.id, &param);
  }

  End end;
  rdma_cm_id* listener = nullptr;

 private:
  Host host_;
  uint16_t port_;
};

// What the child tells before it is connected.
struct Told {
  uint32_t rkey = 0;
  int error = 0;
};

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static uint16_t next = 0;
    port = static_cast<uint16_t>(20000 + (getpid() * 16 + next++) % 30000);
    // At the same address in both processes, but not shared between them.
    memory = static_cast<uint8_t*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_EQ(pipe(told), 0);
  }
  void TearDown() override {
    if (child > 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    munmap(memory, kSize);
    close(told[0]);
    close(told[1]);
  }

  // The child runs `body` and ends; its failures are the test's.
  void Fork(const std::function<void()>& body) {
    child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) return;
    body();
    std::fflush(stdout);
    _exit(HasFailure() ? 1 : 0);
  }
  void JoinChild() {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    child = 0;
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  void Tell(const Told& what) {
    ASSERT_EQ(write(told[1], &what, sizeof(what)), ssize_t{sizeof(what)});
  }
  Told Hear() {
    Told what;
    EXPECT_EQ(read(told[0], &what, sizeof(what)), ssize_t{sizeof(what)});
    return what;
  }
  // The child's usual course up to ESTABLISHED, with its memory registered and
  // `receives` receives of 4 KiB posted.
  void Serve(Side* side, int receives) {
    ASSERT_EQ(side->Listen(), 0);
    Tell({});
    side->Accept();
    ibv_mr* mr = side->end.Register(
        memory, kSize, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (int i = 0; i < receives; ++i) {
      ASSERT_EQ(PostReceive(side->end.qp(), memory + i * 4096, 4096, mr->lkey,
                            static_cast<uint64_t>(i)),
                0);
    }
    Tell({mr->rkey, 0});
    ASSERT_EQ(side->end.verbs->CmAccept(side->end.id, nullptr), 0);
    ASSERT_EQ(side->WaitEvent(), RDMA_CM_EVENT_ESTABLISHED);
  }
  void ConnectTo(Side* side) {
    Hear();
    side->Resolve();
    ASSERT_EQ(side->Connect(), 0);
    rkey = Hear().rkey;
    ASSERT_EQ(side->WaitEvent(), RDMA_CM_EVENT_ESTABLISHED);
    mr = side->end.Register(memory, kSize, IBV_ACCESS_LOCAL_WRITE);
  }

  uint16_t port = 0;
  uint8_t* memory = nullptr;
  int told[2] = {-1, -1};
  pid_t child = 0;
  uint32_t rkey = 0;
  ibv_mr* mr = nullptr;
};

constexpr char kConfig[] = "mlx5,other-processes=on";

}  // namespace mig::soft

#endif  // TESTS_UNIT_SOFT_PROCESS_PAIR_H_
