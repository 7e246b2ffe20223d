// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "soft-verbs/cm.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/process_port.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

// "mlx5_0" and "rxe0" end in their number.
std::string DeviceName(const Model& model, size_t index) {
  const absl::string_view first = model.device;
  return absl::StrCat(first.substr(0, first.size() - 1), index);
}

std::unique_ptr<Device> MakeDevice(Node* node, size_t index) {
  auto device = std::make_unique<Device>();
  const Config& config = node->config;
  device->node = node;
  device->base.node_type = config.model->iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  device->base.transport_type =
      config.model->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  const std::string name = DeviceName(*config.model, index);
  std::snprintf(device->base.name, sizeof(device->base.name), "%s",
                name.c_str());
  std::snprintf(device->base.dev_name, sizeof(device->base.dev_name),
                "uverbs%zu", index);
  if (index < config.addresses.size()) {
    device->address = config.addresses[index];
  }
  const uint64_t entries = config.limits.max_mr + (config.rkey_zero ? 0 : 1);
  if (config.other_processes) {
    device->memory_file =
        MakeSharedFile("mig-soft-mr", MemoryTable::BytesFor(entries));
  }
  device->memory = std::make_unique<MemoryTable>(entries, config.rkey_zero,
                                                 device->memory_file.get());
  return device;
}

void Apply(Node* node, const Fault& fault, uint64_t now) {
  for (const std::unique_ptr<Device>& device : node->devices) {
    switch (fault.kind) {
      case Fault::Kind::kFatal:
      case Fault::Kind::kRemoval:
        KillDevice(device.get(), fault.kind == Fault::Kind::kRemoval);
        break;
      case Fault::Kind::kPortDown:
        node->port_down = true;
        PostPortEvent(device.get(), IBV_EVENT_PORT_ERR);
        break;
      case Fault::Kind::kPortUp:
        node->port_down = false;
        PostPortEvent(device.get(), IBV_EVENT_PORT_ACTIVE);
        break;
      case Fault::Kind::kStop:
        node->silent_until_ns =
            fault.value == 0 || fault.value > UINT64_MAX - now
                ? UINT64_MAX
                : now + fault.value;
        break;
      default:
        break;
    }
  }
}

}  // namespace

Node::Node(const Config& the_config, const Host* the_host, Fabric* the_fabric,
           uint64_t seed)
    : config(the_config),
      host(the_host),
      fabric(the_fabric),
      faults(the_config.faults),
      random(seed),
      start_ns(the_host->NowNs()),
      timed(the_config.costs != Costs()) {
  if (config.other_processes) {
    // One system call copies less than 2 GiB.
    config.limits.max_msg_size =
        std::min(config.limits.max_msg_size, uint64_t{1} << 30);
    process = std::make_unique<ProcessPort>(this);
  }
  for (size_t i = 0; i < config.devices; ++i) {
    devices.push_back(MakeDevice(this, i));
  }
}

Node::~Node() = default;

void PostAsync(Context* context, const ibv_async_event& event) {
  context->events.push_back(event);
  context->async.Set();
}

void PostQpEvent(Qp* qp, ibv_event_type type) {
  ibv_async_event event = {};
  event.element.qp = qp;
  event.event_type = type;
  PostAsync(ToContext(qp->context), event);
}

void PostPortEvent(Device* device, ibv_event_type type) {
  ibv_async_event event = {};
  event.element.port_num = 1;
  event.event_type = type;
  for (Context* context : device->contexts) {
    if (!context->dead) PostAsync(context, event);
  }
}

void ApplyDueFaults(Node* node, uint64_t number, uint64_t now) {
  if (node->faults.empty()) return;
  const uint64_t since = now - node->start_ns;
  while (const Fault* fault = node->faults.TakeDue(number, since)) {
    Apply(node, *fault, now);
  }
}

void KillDevice(Device* device, bool removed) {
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  for (Context* context : device->contexts) {
    if (context->dead) continue;
    context->dead = true;
    PostAsync(context, event);
  }
  for (const auto& [number, qp] : device->node->fabric->qps()) {
    if (qp->device == device && ToContext(qp->context)->dead) EnterError(qp);
  }
  // Ids carry the old context on; the next ones get another.
  Context* gone = device->cm_context;
  device->cm_context = nullptr;
  if (removed && gone != nullptr) OnRemoval(device->node->fabric, gone);
}

}  // namespace mig::soft
