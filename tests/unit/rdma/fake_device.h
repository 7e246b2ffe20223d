// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A device just large enough for the data path: queue pairs of one process
// whose work requests are carried out when the test says so, in order within a
// queue pair. It checks what a device checks: the send queue's depth, message
// lengths, keys with their rights and bounds. It allocates nothing per work
// request, so that a test can count what the code under test allocates.
#ifndef TESTS_UNIT_RDMA_FAKE_DEVICE_H_
#define TESTS_UNIT_RDMA_FAKE_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "null_verbs.h"

namespace mig::rdma {

class FakeDevice;

struct FakeWr {
  uint64_t wr_id = 0;
  uint64_t local = 0;
  uint64_t remote = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  bool signalled = false;
  uint64_t due_ns = 0;
};

// The base comes first: ibv_post_send gets a pointer to it.
struct FakeQp {
  ibv_qp qp = {};
  FakeDevice* device = nullptr;
  uint32_t depth = 0;
  std::vector<FakeWr> ring;  // posted, not retired
  size_t head = 0;
  size_t count = 0;
  std::vector<ibv_wc> completions;  // not yet taken
  // Receives: one slot each, in the order posted.
  std::vector<ibv_recv_wr> receives;
  std::vector<ibv_sge> receive_sges;
  FakeQp* peer = nullptr;  // gets the SENDs
  std::vector<ibv_wc> received;
  uint64_t doorbells = 0;
  uint64_t last_due_ns = 0;
  bool broken = false;  // in the error state
};

class FakeDevice final : public NullVerbs {
 public:
  FakeDevice();

  FakeQp* MakeQp(uint32_t depth);
  ibv_pd* pd() { return &pd_; }

  // Carries out up to `count` work requests of a queue pair, and leaves the
  // completions of the signalled ones.
  void Carry(FakeQp* qp, size_t count = SIZE_MAX);
  // Carries out what is due on the test's clock (delay_ns).
  void CarryDue(FakeQp* qp, uint64_t now_ns);
  // Takes the completions into `fn`.
  void Poll(FakeQp* qp, const std::function<void(const ibv_wc&)>& fn);

  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length,
                unsigned int access) override;
  int DeregMr(ibv_mr* mr) override;

  // -- What it does
  // ------------------------------------------------------------
  bool check_keys = false;  // and copy the bytes
  uint64_t max_message = uint64_t{1} << 30;
  // Each work request takes this long after the one before began to.
  uint64_t delay_ns = 0;
  uint64_t now_ns = 0;
  // Posting fails at work request number k (from 0, over all).
  uint64_t fail_post_at = UINT64_MAX;
  int fail_post_errno = 0;
  bool fail_post_minus_one = false;
  // Work request k completes with this status.
  uint64_t fail_wr_at = UINT64_MAX;
  ibv_wc_status fail_wr_status = IBV_WC_REM_ACCESS_ERR;
  // Registration number k (from 0) fails.
  std::atomic<uint64_t> fail_reg_at = UINT64_MAX;
  int fail_reg_errno = 0;
  std::function<void()> on_reg;  // called in RegMr

  // -- What it saw
  // -------------------------------------------------------------
  bool record = false;
  std::vector<FakeWr> seen;   // where record
  std::vector<size_t> lists;  // lengths of posted lists, where record
  uint64_t posted = 0;
  uint64_t carried = 0;
  std::vector<std::string> faults;  // what a real device would have refused
  std::atomic<uint64_t> registrations = 0;
  std::atomic<uint64_t> deregistrations = 0;
  std::atomic<uint64_t> largest_registration = 0;
  struct Mr {
    ibv_mr mr = {};
    unsigned int access = 0;
    bool live = true;
  };
  std::vector<std::unique_ptr<Mr>> mrs;
  size_t LiveMrs();
  Mr* FindByLkey(uint32_t lkey);
  Mr* FindByRkey(uint32_t rkey);

 private:
  friend struct FakeOps;
  int PostSend(FakeQp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
  int PostRecv(FakeQp* qp, ibv_recv_wr* wr);
  ibv_wc_status CarryOne(FakeQp* qp, const FakeWr& wr);
  void Fault(const std::string& what);

  ibv_context context_ = {};
  ibv_pd pd_ = {};
  std::mutex lock_;
  std::vector<std::unique_ptr<FakeQp>> qps_;
  uint32_t next_key_ = 0;  // the first rkey is 0: legal
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_FAKE_DEVICE_H_
