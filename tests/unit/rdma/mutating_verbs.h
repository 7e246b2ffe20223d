// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A soft device whose work requests, and what it tells while it connects, are
// changed on their way: a peer that says wrong things now and then.
#ifndef TESTS_UNIT_RDMA_MUTATING_VERBS_H_
#define TESTS_UNIT_RDMA_MUTATING_VERBS_H_

#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rdma/wire.h"
#include "soft-verbs/soft_verbs.h"

namespace mig::rdma {

// What is changed, and how.
class Mutator {
 public:
  virtual ~Mutator() = default;
  // Whether the next work request is to be changed.
  virtual bool Hits() = 0;
  virtual void ChangeWrite(ibv_qp* qp, ibv_send_wr* wr) = 0;
  // `room` starts with the `length` bytes of a SEND; returns how many to send.
  virtual size_t ChangeSend(std::span<uint8_t> room, size_t length) = 0;
  virtual bool HitsPrivateData() = 0;
  virtual void ChangePrivateData(std::span<uint8_t> bytes) = 0;
};

class MutatingVerbs final : public soft::SoftVerbs {
 public:
  MutatingVerbs(const soft::Config& config, const Host* host,
                std::shared_ptr<soft::Fabric> fabric, uint64_t seed,
                Mutator* mutator)
      : soft::SoftVerbs(config, host, std::move(fabric), seed),
        mutator_(mutator) {}

  ~MutatingVerbs() override {
    std::erase_if(of_context_,
                  [this](const auto& entry) { return entry.second == this; });
  }

  int CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) override {
    const int answer = soft::SoftVerbs::CmCreateQpEx(id, attr);
    if (answer == 0) Hook(id->qp);
    return answer;
  }
  int CmConnect(rdma_cm_id* id, rdma_conn_param* param) override {
    return soft::SoftVerbs::CmConnect(id, Changed(param));
  }
  int CmAccept(rdma_cm_id* id, rdma_conn_param* param) override {
    return soft::SoftVerbs::CmAccept(id, Changed(param));
  }
  int DeallocPd(ibv_pd* pd) override {
    if (const auto found = copies_.find(pd); found != copies_.end()) {
      DeregMr(found->second.mr);
      copies_.erase(found);
    }
    return soft::SoftVerbs::DeallocPd(pd);
  }

 private:
  static constexpr size_t kCopies = 16;  // a protection domain, at most
  struct Copies {
    std::vector<uint8_t> bytes;
    ibv_mr* mr = nullptr;
    size_t used = 0;
  };

  void Hook(ibv_qp* qp) {
    of_context_[qp->context] = this;
    auto& post = qp->context->ops.post_send;
    if (post == Post) return;
    post_send_ = post;
    post = Post;
  }
  // Posting knows only the queue pair, so whose it is has to be kept. One at a
  // time: what is changed is valid as long as its post.
  static int Post(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    MutatingVerbs* const self = of_context_.at(qp->context);
    for (; wr != nullptr; wr = wr->next) {
      ibv_send_wr one = *wr;
      one.next = nullptr;
      ibv_sge piece = {};
      if (self->mutator_->Hits()) {
        if (one.opcode == IBV_WR_RDMA_WRITE) {
          self->mutator_->ChangeWrite(qp, &one);
        } else {
          self->ChangeSend(qp->pd, &one, &piece);
        }
      }
      ibv_send_wr* refused = nullptr;
      const int failure = self->post_send_(qp, &one, &refused);
      if (failure != 0) {
        *bad = wr;
        return failure;
      }
    }
    return 0;
  }
  // Registered memory belongs to the sender, inline data to its caller: a copy
  // is changed.
  void ChangeSend(ibv_pd* pd, ibv_send_wr* wr, ibv_sge* piece) {
    Copies& copies = copies_[pd];
    if (copies.mr == nullptr) {
      copies.bytes.resize(kCopies * kSlotSize);
      copies.mr = RegMr(pd, copies.bytes.data(), copies.bytes.size(), 0);
    }
    if (copies.mr == nullptr || copies.used == kCopies) return;
    uint8_t* const room = copies.bytes.data() + copies.used++ * kSlotSize;
    size_t length = 0;
    for (int i = 0; i < wr->num_sge; ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      std::memcpy(room + length, reinterpret_cast<void*>(wr->sg_list[i].addr),
                  wr->sg_list[i].length);
      length += wr->sg_list[i].length;
    }
    length = mutator_->ChangeSend({room, kSlotSize}, length);
    *piece = {reinterpret_cast<uintptr_t>(room), static_cast<uint32_t>(length),
              copies.mr->lkey};
    wr->sg_list = piece;
    wr->num_sge = 1;
    wr->send_flags &= ~static_cast<unsigned>(IBV_SEND_INLINE);
  }
  rdma_conn_param* Changed(rdma_conn_param* param) {
    if (param == nullptr || !mutator_->HitsPrivateData()) return param;
    const auto* from = static_cast<const uint8_t*>(param->private_data);
    private_data_.assign(from, from + param->private_data_len);
    mutator_->ChangePrivateData(private_data_);
    param->private_data = private_data_.data();
    return param;
  }

  inline static std::map<ibv_context*, MutatingVerbs*> of_context_;
  Mutator* const mutator_;
  int (*post_send_)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  std::map<ibv_pd*, Copies> copies_;
  std::vector<uint8_t> private_data_;
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_MUTATING_VERBS_H_
