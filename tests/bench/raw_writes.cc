// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The least that can write guest memory by verbs: one queue pair, lists of RDMA
// WRITEs, the last of each signalled. No rounds, no keys by chunk, no messages:
// the limit that the plugin is held to, over the same memory and the same
// pages.
//   raw_writes --address A [--memory BYTES] [--depth N] [--list N]
//              [--message BYTES] [--wait sleep|spin]
// and commands as in measured.h.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <string>
#include <vector>

#include "measured.h"

namespace mig::bench {
namespace {

// Told to the source when it is accepted.
struct Target {
  uint64_t address;
  uint32_t rkey;
};

struct Settings {
  std::string address;
  std::string port;
  uint32_t depth;
  uint32_t list;
  uint32_t message;  // bytes that one write has at most
  bool spin;
};

rdma_cm_id* MakeEndpoint(const Settings& settings, bool listens) {
  rdma_addrinfo hints = {};
  hints.ai_port_space = RDMA_PS_TCP;
  if (listens) hints.ai_flags = RAI_PASSIVE;
  rdma_addrinfo* info = nullptr;
  if (rdma_getaddrinfo(settings.address.c_str(), settings.port.c_str(), &hints,
                       &info) != 0) {
    DieErrno("rdma_getaddrinfo of " + settings.address);
  }
  ibv_qp_init_attr attr = {};
  attr.cap = {.max_send_wr = settings.depth,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  attr.qp_type = IBV_QPT_RC;
  rdma_cm_id* id = nullptr;
  if (rdma_create_ep(&id, info, nullptr, &attr) != 0) {
    DieErrno("rdma_create_ep at " + settings.address);
  }
  rdma_freeaddrinfo(info);
  return id;
}

void Accept(const Settings& settings, const Memory& memory,
            const std::function<void(std::string_view)>& ready) {
  rdma_cm_id* const listener = MakeEndpoint(settings, true);
  if (rdma_listen(listener, 1) != 0) DieErrno("rdma_listen");
  ready("listening");
  rdma_cm_id* id = nullptr;
  if (rdma_get_request(listener, &id) != 0) DieErrno("rdma_get_request");
  ibv_mr* const mr =
      ibv_reg_mr(id->pd, memory.destination(), memory.bytes(),
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr == nullptr) DieErrno("ibv_reg_mr at the destination");
  const Target target = {reinterpret_cast<uintptr_t>(memory.destination()),
                         mr->rkey};
  rdma_conn_param param = {};
  param.private_data = &target;
  param.private_data_len = sizeof(target);
  if (rdma_accept(id, &param) != 0) DieErrno("rdma_accept");
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(id->channel, &event) != 0) DieErrno("no disconnect");
}

class Writer {
 public:
  Writer(const Settings& settings, const Memory& memory)
      : settings_(settings),
        memory_(memory),
        id_(MakeEndpoint(settings, false)),
        wrs_(settings.list),
        sges_(settings.list) {
    mr_ = ibv_reg_mr(id_->pd, memory.source(), memory.bytes(), 0);
    if (mr_ == nullptr) DieErrno("ibv_reg_mr at the source");
    rdma_conn_param param = {};
    param.retry_count = 7;
    param.rnr_retry_count = 7;
    if (rdma_connect(id_, &param) != 0) DieErrno("rdma_connect");
    if (id_->event->param.conn.private_data_len < sizeof(target_)) {
      Die("rdma_connect", "the destination did not say where to write");
    }
    std::copy_n(static_cast<const char*>(id_->event->param.conn.private_data),
                sizeof(target_), reinterpret_cast<char*>(&target_));
    for (size_t i = 0; i < wrs_.size(); ++i) {
      wrs_[i].sg_list = &sges_[i];
      wrs_[i].num_sge = 1;
      wrs_[i].opcode = IBV_WR_RDMA_WRITE;
      wrs_[i].wr.rdma.rkey = target_.rkey;
      sges_[i].lkey = mr_->lkey;
    }
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Write(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      for (uint64_t at = 0; at < piece.length; at += settings_.message) {
        Stage(piece.offset + at,
              std::min<uint64_t>(settings_.message, piece.length - at));
      }
    }
    if (staged_ > 0) Post();
    while (outstanding_ > 0) Reap();
  }

  uint64_t doorbells() const { return doorbells_; }

 private:
  void Stage(uint64_t offset, uint64_t length) {
    sges_[staged_].addr =
        reinterpret_cast<uintptr_t>(memory_.source()) + offset;
    sges_[staged_].length = static_cast<uint32_t>(length);
    wrs_[staged_].wr.rdma.remote_addr = target_.address + offset;
    if (++staged_ == settings_.list) Post();
  }

  void Post() {
    while (outstanding_ + staged_ > settings_.depth) Reap();
    for (uint32_t i = 0; i < staged_; ++i) {
      const bool last = i + 1 == staged_;
      wrs_[i].next = last ? nullptr : &wrs_[i + 1];
      wrs_[i].send_flags = last ? IBV_SEND_SIGNALED : 0;
    }
    // How many a completion retires.
    wrs_[staged_ - 1].wr_id = staged_;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(id_->qp, wrs_.data(), &bad) != 0) {
      DieErrno("ibv_post_send");
    }
    ++doorbells_;
    outstanding_ += staged_;
    staged_ = 0;
  }

  void Reap() {
    ibv_wc wc[16];
    int got = ibv_poll_cq(id_->send_cq, 16, wc);
    if (got == 0 && !settings_.spin) got = Sleep(wc);
    if (got < 0) Die("ibv_poll_cq", "failed");
    for (int i = 0; i < got; ++i) {
      if (wc[i].status != IBV_WC_SUCCESS) {
        Die("write", ibv_wc_status_str(wc[i].status));
      }
      outstanding_ -= static_cast<uint32_t>(wc[i].wr_id);
    }
  }

  // Until there may be a completion.
  int Sleep(ibv_wc* wc) {
    if (ibv_req_notify_cq(id_->send_cq, 0) != 0) DieErrno("ibv_req_notify_cq");
    const int got = ibv_poll_cq(id_->send_cq, 16, wc);
    if (got != 0) return got;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(id_->send_cq_channel, &cq, &context) != 0) {
      DieErrno("ibv_get_cq_event");
    }
    ibv_ack_cq_events(cq, 1);
    return 0;
  }

  const Settings settings_;
  const Memory& memory_;
  rdma_cm_id* const id_;
  ibv_mr* mr_ = nullptr;
  Target target_ = {};
  std::vector<ibv_send_wr> wrs_;
  std::vector<ibv_sge> sges_;
  uint32_t staged_ = 0;
  uint32_t outstanding_ = 0;
  uint64_t doorbells_ = 0;
};

void Main(const Options& options) {
  const Settings settings = {
      .address = options.at("address"),
      .port = options.at("port"),
      .depth = static_cast<uint32_t>(std::stoul(options.at("depth"))),
      .list = static_cast<uint32_t>(std::stoul(options.at("list"))),
      .message = static_cast<uint32_t>(std::stoul(options.at("message"))),
      .spin = options.at("wait") == "spin"};
  if (settings.list == 0 || settings.list > settings.depth ||
      settings.message == 0) {
    Die("--list", "give 1 to --depth, and a --message of 1 byte at least");
  }
  Memory memory(std::stoull(options.at("memory")));
  StartDestination([&](const auto& ready) { Accept(settings, memory, ready); });
  Writer writer(settings, memory);
  Worker worker;
  worker.write = [&](const auto& pieces) { writer.Write(pieces); };
  worker.counters = [&] {
    return std::map<std::string, uint64_t>{{"doorbells", writer.doorbells()}};
  };
  ServeCommands(&memory, worker);
}

}  // namespace
}  // namespace mig::bench

int main(int argc, char** argv) {
  using namespace mig::bench;  // NOLINT(google-build-using-namespace)
  Main(ParseOptions(argc, argv,
                    {{"address", "10.7.0.1"},
                     {"port", "7471"},
                     {"memory", "134217728"},
                     {"depth", "512"},
                     {"list", "64"},
                     {"message", "1048576"},
                     {"wait", "sleep"}}));
  return 0;
}
