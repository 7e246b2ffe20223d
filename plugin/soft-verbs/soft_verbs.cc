// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Devices, events, and driving.
#include "soft-verbs/soft_verbs.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "soft-verbs/gid_table.h"
#include "soft-verbs/soft_call.h"
#include "soft-verbs/text.h"

namespace mig::soft {

absl::StatusOr<std::unique_ptr<SoftVerbs>> MakeSoftVerbs(
    const Config& config, const Host* host, std::shared_ptr<Fabric> fabric) {
  if (config.other_processes && host->simulated_clock()) {
    return MakeError(MIG_E_OPTION,
                     "soft device: other-processes=on needs a real clock, and "
                     "this host simulates one; leave it off");
  }
  uint64_t seed = config.seed;
  if (seed == 0) MIG_RETURN_IF_ERROR(host->Random(&seed, sizeof(seed)));
  if (fabric == nullptr) fabric = Fabric::Named(config.fabric);
  return std::make_unique<SoftVerbs>(config, host, std::move(fabric), seed);
}

absl::StatusOr<std::unique_ptr<SoftVerbs>> MakeSoftVerbs(
    absl::string_view text, const Host* host, std::shared_ptr<Fabric> fabric) {
  const absl::StatusOr<Config> config = ParseConfig(text);
  if (!config.ok()) return config.status();
  return MakeSoftVerbs(*config, host, std::move(fabric));
}

SoftVerbs::SoftVerbs(const Config& config, const Host* host,
                     std::shared_ptr<Fabric> fabric, uint64_t seed)
    : fabric_(std::move(fabric)), node_(config, host, fabric_.get(), seed) {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  fabric_->Join(&node_, seed);
}

SoftVerbs::~SoftVerbs() {
  const std::string left = LiveObjects();
  if (!left.empty()) {
    node_.host->Log(MIG_LOG_ERROR,
                    absl::StrCat("the soft device's user has left ", left));
  }
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  std::vector<CmId*> ids;
  for (const auto& [number, id] : fabric_->ids()) {
    if (id->node == &node_) ids.push_back(id);
  }
  for (CmId* id : ids) {
    id->unacked = 0;
    // A listener takes others with it.
    if (fabric_->FindId(id->number) == id) DestroyId(id);
  }
  std::vector<Qp*> qps;
  for (const auto& [number, qp] : fabric_->qps()) {
    if (qp->device->node == &node_) qps.push_back(qp);
  }
  for (Qp* qp : qps) {
    qp->unacked_async = 0;
    DeleteQp(qp);
  }
  for (Mr* mr : mrs_) delete mr;
  for (Pd* pd : pds_) delete pd;
  for (Cq* cq : cqs_) delete cq;
  for (CompChannel* channel : comp_channels_) delete channel;
  for (CmChannel* channel : cm_channels_) delete channel;
  for (const std::unique_ptr<Device>& device : node_.devices) {
    while (!device->contexts.empty()) DestroyContext(device->contexts.back());
  }
  fabric_->Leave(&node_);
}

std::string SoftVerbs::LiveObjects() {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  size_t ids = 0;
  for (const auto& [number, id] : fabric_->ids()) {
    if (id->node == &node_) ++ids;
  }
  size_t qps = 0;
  for (const auto& [number, qp] : fabric_->qps()) {
    if (qp->device->node == &node_) ++qps;
  }
  std::string text;
  const auto add = [&text](const char* kind, size_t count) {
    if (count > 0)
      absl::StrAppend(&text, text.empty() ? "" : " ", kind, "=", count);
  };
  add("contexts", user_contexts_);
  add("pds", pds_.size());
  add("mrs", mrs_.size());
  add("cqs", cqs_.size());
  add("comp_channels", comp_channels_.size());
  add("qps", qps);
  add("ids", ids);
  add("cm_channels", cm_channels_.size());
  return text;
}

std::string SoftVerbs::Name() const {
  return absl::StrCat("soft:", node_.config.model->name);
}

ibv_device** SoftVerbs::GetDeviceList(int* count) {
  const Call call(this, "GetDeviceList");
  if (call.fails()) return nullptr;
  const size_t devices = node_.config.hidden ? 0 : node_.devices.size();
  auto** list = new ibv_device*[devices + 1]();
  for (size_t i = 0; i < devices; ++i) list[i] = &node_.devices[i]->base;
  if (count != nullptr) *count = static_cast<int>(devices);
  return list;
}

void SoftVerbs::FreeDeviceList(ibv_device** list) { delete[] list; }

const char* SoftVerbs::GetDeviceName(ibv_device* device) {
  return device->name;
}

ibv_context* SoftVerbs::OpenDevice(ibv_device* base) {
  const Call call(this, "OpenDevice");
  if (call.fails()) return nullptr;
  for (const std::unique_ptr<Device>& device : node_.devices) {
    if (&device->base != base) continue;
    Context* context = MakeContext(device.get());
    if (context == nullptr) return nullptr;
    ++user_contexts_;
    return &context->context;
  }
  errno = ENODEV;
  return nullptr;
}

int SoftVerbs::CloseDevice(ibv_context* base) {
  const Call call(this, "CloseDevice");
  if (call.fails()) return -1;
  Context* context = ToContext(base);
  // The connection manager's is not the user's to close.
  if (context == context->device->cm_context) return Call::MinusOne(EINVAL);
  if (context->references > 0 || context->unacked > 0) {
    return Call::MinusOne(EBUSY);
  }
  DestroyContext(context);
  --user_contexts_;
  return 0;
}

int SoftVerbs::QueryDevice(ibv_context* base, ibv_device_attr* attr) {
  const Call call(this, "QueryDevice");
  if (call.fails()) return call.error();
  if (ToContext(base)->dead) return EIO;
  const Limits& limits = node_.config.limits;
  const auto as_int = [](uint64_t value) {
    return static_cast<int>(std::min<uint64_t>(value, INT32_MAX));
  };
  *attr = {};
  std::strncpy(attr->fw_ver, "soft", sizeof(attr->fw_ver));
  attr->node_guid = 1;
  attr->max_mr_size = limits.max_mr_size;
  attr->page_size_cap = 0xfffff000;
  attr->max_qp = as_int(limits.max_qp);
  attr->max_qp_wr = as_int(limits.max_qp_wr);
  attr->max_sge = as_int(limits.max_sge);
  attr->max_sge_rd = as_int(limits.max_sge);
  attr->max_cq = as_int(limits.max_cq);
  attr->max_cqe = as_int(limits.max_cqe);
  attr->max_mr = as_int(limits.max_mr);
  attr->max_pd = as_int(limits.max_pd);
  attr->max_qp_rd_atom = 16;
  attr->max_res_rd_atom = 16;
  attr->max_qp_init_rd_atom = 16;
  attr->max_pkeys = 1;
  attr->phys_port_cnt = 1;
  return 0;
}

int SoftVerbs::QueryDeviceEx(ibv_context* context, ibv_device_attr_ex* attr) {
  {
    const Call call(this, "QueryDeviceEx");
    if (call.fails()) return call.error();
  }
  *attr = {};
  if (node_.config.odp) {
    attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
    attr->odp_caps.per_transport_caps.rc_odp_caps =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
        IBV_ODP_SUPPORT_READ;
  }
  return QueryDevice(context, &attr->orig_attr);
}

Mishaps SoftVerbs::SeenMishaps() {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  return node_.mishaps;
}

int SoftVerbs::QueryPort(ibv_context* context, uint8_t port,
                         ibv_port_attr* attr) {
  const Call call(this, "QueryPort");
  if (call.fails()) return call.error();
  if (ToContext(context)->dead) return EIO;
  if (port != 1) return EINVAL;
  *attr = {};
  attr->state = node_.port_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = IBV_MTU_4096;
  attr->gid_tbl_len = static_cast<int>(GidCount(*ToContext(context)->device));
  attr->max_msg_sz = static_cast<uint32_t>(
      std::min<uint64_t>(node_.config.limits.max_msg_size, UINT32_MAX));
  attr->pkey_tbl_len = 1;
  attr->active_width = 2;
  attr->active_speed = 32;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int SoftVerbs::QueryGid(ibv_context* base, uint8_t port, int index,
                        ibv_gid* gid) {
  const Call call(this, "QueryGid");
  if (call.fails()) return -1;
  ibv_gid_entry entry = {};
  const Device& device = *ToContext(base)->device;
  if (port != 1 || index < 0 ||
      !GidAt(device, static_cast<uint32_t>(index), &entry)) {
    return Call::MinusOne(EINVAL);
  }
  *gid = entry.gid;
  return 0;
}

int SoftVerbs::QueryGidEx(ibv_context* base, uint32_t port, uint32_t index,
                          ibv_gid_entry* entry) {
  const Call call(this, "QueryGidEx");
  if (call.fails()) return call.error();
  if (ToContext(base)->dead) return EIO;
  const Device& device = *ToContext(base)->device;
  if (port != 1 || index >= GidCount(device)) return EINVAL;
  return GidAt(device, index, entry) ? 0 : ENODATA;
}

int SoftVerbs::GetAsyncEvent(ibv_context* base, ibv_async_event* event) {
  Context* context = ToContext(base);
  return WaitFor(base->async_fd, [context, event] {
    if (context->events.empty()) return false;
    *event = context->events.front();
    context->events.pop_front();
    if (context->events.empty()) context->async.Clear();
    switch (event->event_type) {
      case IBV_EVENT_CQ_ERR:
        ++ToCq(event->element.cq)->unacked_async;
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        ++ToQp(event->element.qp)->unacked_async;
        break;
      default:  // acknowledging those of ports and devices holds nothing up
        break;
    }
    return true;
  });
}

void SoftVerbs::AckAsyncEvent(ibv_async_event* event) {
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      --ToCq(event->element.cq)->unacked_async;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      --ToQp(event->element.qp)->unacked_async;
      break;
    default:
      break;
  }
}

const char* SoftVerbs::EventTypeText(ibv_event_type type) {
  return soft::EventTypeText(type);
}

const char* SoftVerbs::WcStatusText(ibv_wc_status status) {
  return soft::WcStatusText(status);
}

void SoftVerbs::Drive() {
  const uint64_t now = node_.host->NowNs();
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  fabric_->Drive(now);
}

uint64_t SoftVerbs::NextDueNs() {
  const uint64_t now = node_.host->NowNs();
  const std::lock_guard<std::mutex> lock(fabric_->mutex());
  return fabric_->NextDueNs(now);
}

uint64_t SoftVerbs::SendQueueBytes(const ibv_qp_cap& granted, bool extended) {
  return soft::SendQueueBytes(*node_.config.model, granted, extended);
}

}  // namespace mig::soft
