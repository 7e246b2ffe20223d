// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Memory, completion queues and queue pairs of the seam.
#include <sys/mman.h>
#include <unistd.h>

#include "soft-verbs/completion_queue.h"
#include "soft-verbs/queue_pair.h"
#include "soft-verbs/soft_call.h"

namespace mig::soft {
namespace {

constexpr unsigned int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND |
    IBV_ACCESS_OPTIONAL_RANGE;

bool OnDemand(unsigned int access) {
  return (access & IBV_ACCESS_ON_DEMAND) != 0;
}

int CheckRegistration(const Config& config, uint64_t address, size_t length,
                      unsigned int access) {
  if ((access & ~kAccess) != 0 || length == 0 ||
      length > config.limits.max_mr_size || address > UINT64_MAX - length) {
    return EINVAL;
  }
  constexpr unsigned int kWrites =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return EINVAL;
  }
  return OnDemand(access) && !config.odp ? EOPNOTSUPP : 0;
}

// Whole pages are pinned.
struct Pages {
  uint64_t begin;
  uint64_t bytes;
};
Pages PagesOf(uint64_t address, uint64_t length) {
  static const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = address / kPage * kPage;
  const uint64_t last = (address + length - 1) / kPage * kPage;
  return {begin, last - begin + kPage};
}

// What the kernel does to pin: present, and writable where it is written.
int Populate(const Pages& pages, unsigned int access) {
  const int advice = (access & IBV_ACCESS_LOCAL_WRITE) != 0
                         ? MADV_POPULATE_WRITE
                         : MADV_POPULATE_READ;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const begin = reinterpret_cast<void*>(pages.begin);
  if (madvise(begin, pages.bytes, advice) == 0) return 0;
  return errno == ENOMEM ? EFAULT : errno;
}

}  // namespace

ibv_pd* SoftVerbs::AllocPd(ibv_context* base) {
  const Call call(this, "AllocPd");
  if (call.fails()) return nullptr;
  Context* context = ToContext(base);
  if (context->dead || context->device->pds == node_.config.limits.max_pd) {
    errno = context->dead ? EIO : ENOMEM;
    return nullptr;
  }
  auto* pd = new Pd();
  pd->context = base;
  pd->handle = node_.next_handle++;
  ++context->device->pds;
  ++context->references;
  pds_.insert(pd);
  return pd;
}

int SoftVerbs::DeallocPd(ibv_pd* base) {
  const Call call(this, "DeallocPd");
  if (call.fails()) return call.error();
  Pd* pd = ToPd(base);
  if (pd->references > 0) return EBUSY;
  Context* context = ToContext(pd->context);
  --context->device->pds;
  --context->references;
  pds_.erase(pd);
  delete pd;
  return 0;
}

ibv_mr* SoftVerbs::RegMr(ibv_pd* base, void* address, size_t length,
                         unsigned int access) {
  const Call call(this, "RegMr");
  if (call.fails()) return nullptr;
  const auto at = reinterpret_cast<uint64_t>(address);
  Device* device = ToContext(base->context)->device;
  int error = ToContext(base->context)->dead
                  ? EIO
                  : CheckRegistration(node_.config, at, length, access);
  uint64_t pinned = 0;
  if (error == 0 && !OnDemand(access)) {
    const Pages pages = PagesOf(at, length);
    pinned = pages.bytes;

    const uint64_t limit = node_.config.memlock;
    if (limit != 0 && (pinned > limit || device->pinned > limit - pinned)) {
      error = ENOMEM;
    } else if (node_.config.populate) {
      error = Populate(pages, access);
    }
  }
  if (error == 0 && (!device->memory->valid() ||
                     device->memory->live() >= node_.config.limits.max_mr)) {
    error = ENOMEM;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  const std::optional<uint32_t> slot =
      device->memory->Add({at, length, access, base->handle});
  if (!slot.has_value()) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* mr = new Mr();
  mr->context = base->context;
  mr->pd = base;
  mr->addr = address;
  mr->length = length;
  mr->handle = *slot;
  mr->lkey = device->memory->LocalKey(*slot);
  mr->rkey = device->memory->RemoteKey(*slot);
  mr->slot = *slot;
  mr->pinned = pinned;
  device->pinned += pinned;
  ++ToPd(base)->references;
  mrs_.insert(mr);
  return mr;
}

uint64_t SoftVerbs::RegistrationNs(size_t length, unsigned int access) {
  if (OnDemand(access)) return 0;
  const Costs& costs = node_.config.costs;
  const uint64_t pages = PagesOf(0, length).bytes / PagesOf(0, 1).bytes;
  const bool written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  const uint64_t page = costs.pin_page + (written ? costs.fault_page : 0);
  return (costs.registration + pages * page) / costs.registration_threads;
}

int SoftVerbs::DeregMr(ibv_mr* base) {
  const Call call(this, "DeregMr");
  if (call.fails()) return call.error();
  Mr* mr = ToMr(base);
  Device* device = ToContext(mr->context)->device;
  device->memory->Remove(mr->slot);
  // No peer begins a write to it any more; one that has begun must end.
  for (const auto& [number, qp] : fabric_->qps()) {
    if (qp->device == device && qp->remote_process) qp->share->WaitIdle();
  }
  device->pinned -= mr->pinned;
  --ToPd(mr->pd)->references;
  mrs_.erase(mr);
  delete mr;
  return 0;
}

ibv_comp_channel* SoftVerbs::CreateCompChannel(ibv_context* base) {
  const Call call(this, "CreateCompChannel");
  if (call.fails()) return nullptr;
  if (ToContext(base)->dead) {
    errno = EIO;
    return nullptr;
  }
  auto* channel = new CompChannel();
  if (channel->event.fd() < 0) {
    delete channel;
    return nullptr;
  }
  channel->context = base;
  channel->fd = channel->event.fd();
  ++ToContext(base)->references;
  comp_channels_.insert(channel);
  return channel;
}

int SoftVerbs::DestroyCompChannel(ibv_comp_channel* base) {
  const Call call(this, "DestroyCompChannel");
  if (call.fails()) return call.error();
  CompChannel* channel = ToChannel(base);
  if (channel->refcnt > 0) return EBUSY;
  --ToContext(channel->context)->references;
  comp_channels_.erase(channel);
  delete channel;
  return 0;
}

ibv_cq* SoftVerbs::CreateCq(ibv_context* base, int cqe, void* cq_context,
                            ibv_comp_channel* channel, int vector) {
  const Call call(this, "CreateCq");
  if (call.fails()) return nullptr;
  Context* context = ToContext(base);
  const Limits& limits = node_.config.limits;
  int error = 0;
  if (context->dead) {
    error = EIO;
  } else if (cqe < 1 || static_cast<uint64_t>(cqe) > limits.max_cqe ||
             vector < 0 || vector >= base->num_comp_vectors) {
    error = EINVAL;
  } else if (context->device->cqs == limits.max_cq) {
    error = ENOMEM;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* cq = new Cq();
  cq->context = base;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->handle = node_.next_handle++;
  cq->cqe = cqe;
  cq->ring.resize(static_cast<size_t>(cqe));
  if (channel != nullptr) ++channel->refcnt;
  ++context->device->cqs;
  ++context->references;
  cqs_.insert(cq);
  return cq;
}

int SoftVerbs::DestroyCq(ibv_cq* base) {
  const Call call(this, "DestroyCq");
  if (call.fails()) return call.error();
  Cq* cq = ToCq(base);
  if (cq->references > 0 || cq->unacked > 0 || cq->unacked_async > 0) {
    return EBUSY;
  }
  Context* context = ToContext(cq->context);
  DropEvents(cq);
  DropAsyncEvents(context, nullptr, cq);
  if (cq->channel != nullptr) --cq->channel->refcnt;
  --context->device->cqs;
  --context->references;
  cqs_.erase(cq);
  delete cq;
  return 0;
}

int SoftVerbs::GetCqEvent(ibv_comp_channel* base, ibv_cq** cq,
                          void** cq_context) {
  CompChannel* channel = ToChannel(base);
  return WaitFor(channel->fd, [channel, cq, cq_context] {
    if (channel->events.empty()) {
      channel->event.Clear();
      return false;
    }
    Cq* first = channel->events.front();
    channel->events.erase(channel->events.begin());
    if (channel->events.empty()) channel->event.Clear();
    ++first->unacked;
    *cq = first;
    *cq_context = first->cq_context;
    return true;
  });
}

void SoftVerbs::AckCqEvents(ibv_cq* cq, unsigned int count) {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  ToCq(cq)->unacked -= std::min(count, ToCq(cq)->unacked);
}

ibv_qp* SoftVerbs::CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const Call call(this, "CreateQp");
  if (call.fails()) return nullptr;
  Qp* qp = nullptr;
  errno = NewQp(ToPd(pd), attr, false, 0, &qp);
  return qp;
}

// What ibv_create_qp_ex and rdma_create_qp_ex have in common.
int SoftVerbs::NewExtendedQp(ibv_qp_init_attr_ex* attr, CmId* id, Qp** qp) {
  constexpr uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    return EINVAL;
  }
  const bool extended =
      (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const bool can = node_.config.model->has_create_ex && node_.config.create_ex;
  if ((attr->comp_mask & ~kKnown) != 0 || (extended && !can)) {
    return EOPNOTSUPP;
  }
  ibv_qp_init_attr plain = {};
  plain.qp_context = attr->qp_context;
  plain.send_cq = attr->send_cq;
  plain.recv_cq = attr->recv_cq;
  plain.srq = attr->srq;
  plain.cap = attr->cap;
  plain.qp_type = attr->qp_type;
  plain.sq_sig_all = attr->sq_sig_all;
  const uint64_t ops = extended ? attr->send_ops_flags : 0;
  const int error = id != nullptr
                        ? AttachQp(id, attr->pd, &plain, extended, ops)
                        : NewQp(ToPd(attr->pd), &plain, extended, ops, qp);
  if (error == 0) attr->cap = plain.cap;
  return error;
}

ibv_qp* SoftVerbs::CreateQpEx(ibv_context*, ibv_qp_init_attr_ex* attr) {
  const Call call(this, "CreateQpEx");
  if (call.fails()) return nullptr;
  Qp* qp = nullptr;
  errno = NewExtendedQp(attr, nullptr, &qp);
  return qp;
}

int SoftVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const Call call(this, "ModifyQp");
  if (call.fails()) return call.error();
  return ModifyQpState(ToQp(qp), *attr, mask);
}

int SoftVerbs::QueryQp(ibv_qp* base, ibv_qp_attr* attr, int,
                       ibv_qp_init_attr* init_attr) {
  const Call call(this, "QueryQp");
  if (call.fails()) return call.error();
  const Qp* qp = ToQp(base);
  QueryQpState(qp, attr);
  *init_attr = {};
  init_attr->qp_context = qp->qp_context;
  init_attr->send_cq = qp->send_cq;
  init_attr->recv_cq = qp->recv_cq;
  init_attr->cap = qp->cap;
  init_attr->qp_type = qp->qp_type;
  init_attr->sq_sig_all = qp->signal_all ? 1 : 0;
  return 0;
}

int SoftVerbs::DestroyQp(ibv_qp* qp) {
  const Call call(this, "DestroyQp");
  if (call.fails()) return call.error();
  return DeleteQp(ToQp(qp));
}

}  // namespace mig::soft
