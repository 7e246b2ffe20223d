// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Identifiers: addresses, ports, listening, and their end.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "soft-verbs/cm.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/process_port.h"

namespace mig::soft {
namespace {

constexpr uint16_t kFirstPort = 32768;  // of those that are chosen for bind

bool Copy(const sockaddr* from, sockaddr_storage* to) {
  *to = {};
  if (from->sa_family == AF_INET) {
    std::memcpy(to, from, sizeof(sockaddr_in));
  } else if (from->sa_family == AF_INET6) {
    std::memcpy(to, from, sizeof(sockaddr_in6));
  } else {
    return false;
  }
  return true;
}

void SetPort(sockaddr_storage* address, uint16_t port) {
  reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
}

bool HasAddress(const Node* node, const std::string& text) {
  if (node->config.addresses.empty() || text.empty()) return true;
  for (const std::string& own : node->config.addresses) {
    if (own == text) return true;
  }
  return false;
}

// Whether two ids of these addresses would get the same connections.
bool Overlap(const CmId* id, const sockaddr_storage& address, uint16_t port) {
  const sockaddr_storage& own = id->route.addr.src_storage;
  if (AddressPort(own) != port) return false;
  const std::string mine = AddressText(own);
  const std::string other = AddressText(address);
  return mine.empty() || other.empty() || mine == other;
}

bool PortTaken(const CmId* asking, const sockaddr_storage& address,
               uint16_t port) {
  for (const auto& [number, id] : asking->node->fabric->ids()) {
    const bool holds =
        id->state == CmState::kBound || id->state == CmState::kListening;
    if (id != asking && holds && Overlap(id, address, port)) return true;
  }
  return false;
}

// The port, here and among the processes of this machine.
int Reserve(const CmId* id, const sockaddr_storage& address, uint16_t port) {
  if (PortTaken(id, address, port)) return EADDRINUSE;
  if (id->node->process == nullptr) return 0;
  return id->node->process->Bind(id, AddressText(address), port);
}

void LeaveListening(CmId* id) {
  // Those that the user never saw go with their listener.
  std::vector<CmId*> orphans;
  for (const auto& [number, other] : id->node->fabric->ids()) {
    if (other->listener == id) orphans.push_back(other);
  }
  for (CmId* orphan : orphans) {
    orphan->listener = nullptr;
    DestroyId(orphan);
  }
}

// What the other end hears when an id goes.
void SayGoodbye(CmId* id) {
  CmMessage message;
  switch (id->state) {
    case CmState::kConnecting:
    case CmState::kReplied:
    case CmState::kRequested:
    case CmState::kAccepting:
      if (id->peer == 0 && id->wire == nullptr) return;
      message.kind = CmMessage::Kind::kReject;
      message.status = kRejectByUser;
      break;
    case CmState::kConnected:
      message.kind = CmMessage::Kind::kDisconnect;
      break;
    case CmState::kPeerDisconnected:
      message.kind = CmMessage::Kind::kDisconnectReply;
      break;
    default:
      return;
  }
  SendToPeer(id, std::move(message));
}

}  // namespace

uint16_t AddressPort(const sockaddr_storage& address) {
  // The port is in the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    if (in->sin_addr.s_addr == htonl(INADDR_ANY)) return "";
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address);
    if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr)) return "";
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
      inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
    }
  }
  return text;
}

bool SetDevice(CmId* id, Device* device) {
  if (device->cm_context == nullptr) device->cm_context = MakeContext(device);
  if (device->cm_context == nullptr) return false;
  id->verbs = &device->cm_context->context;
  id->port_num = 1;
  return true;
}

Qp* QpOf(const CmId* id) {
  if (id->qp != nullptr) return ToQp(id->qp);
  Qp* const told =
      id->told_qp != 0 ? id->node->fabric->FindQp(id->told_qp) : nullptr;
  return told != nullptr && told->device->node == id->node ? told : nullptr;
}

CmId* IdOf(const Qp* qp) {
  if (qp->cm != nullptr) return qp->cm;
  const Node* const node = qp->device->node;
  for (const auto& [number, id] : node->fabric->ids()) {
    if (id->node == node && id->told_qp == qp->qp_num) return id;
  }
  return nullptr;
}

void Enter(CmId* id, CmState state) {
  id->state = state;
  ++id->epoch;
  id->node->fabric->Forget(id->number);
}

CmId* NewId(CmChannel* channel, void* user, rdma_port_space space) {
  auto* id = new CmId();
  id->node = channel->node;
  id->channel = channel;
  id->context = user;
  id->ps = space;
  id->qp_type = IBV_QPT_RC;
  ++channel->references;
  id->number = id->node->fabric->Add(id);
  return id;
}

int DestroyId(CmId* id) {
  if (id->unacked > 0) return EBUSY;
  if (id->state == CmState::kListening) LeaveListening(id);
  SayGoodbye(id);
  DropEvents(id);
  if (id->qp != nullptr) ToQp(id->qp)->cm = nullptr;
  --static_cast<CmChannel*>(id->channel)->references;
  id->node->fabric->Remove(id);
  id->node->fabric->Forget(id->number);
  if (id->node->process != nullptr) id->node->process->Forget(id);
  delete id;
  return 0;
}

Device* DeviceOfAddress(Node* node, const sockaddr_storage& address) {
  const std::string text = AddressText(address);
  for (const std::unique_ptr<Device>& device : node->devices) {
    if (!text.empty() && device->address == text) return device.get();
  }
  return HasAddress(node, text) ? node->devices[0].get() : nullptr;
}

Device* DeviceOfConnection(Node* node, const sockaddr_storage& address) {
  Device* const device = DeviceOfAddress(node, address);
  if (device == nullptr || !node->config.spread) return device;
  return node->devices[node->next_device++ % node->devices.size()].get();
}

namespace {

// Reserves a port that is free; 0: there is none. Beside other processes it
// starts anywhere, as a system does: a port that was just given back should not
// be the next one that somebody is given.
uint16_t ChoosePort(CmId* id, const sockaddr_storage& wanted) {
  constexpr uint32_t kPorts = 65536 - kFirstPort;
  const uint32_t start =
      id->node->process == nullptr
          ? 0
          : static_cast<uint32_t>(id->node->random.Below(kPorts));
  for (uint32_t i = 0; i < kPorts; ++i) {
    const auto port = static_cast<uint16_t>(kFirstPort + (start + i) % kPorts);
    if (Reserve(id, wanted, port) != EADDRINUSE) return port;
  }
  return 0;
}

}  // namespace

int BindAddress(CmId* id, const sockaddr* address) {
  if (id->state != CmState::kIdle) return EINVAL;
  sockaddr_storage wanted = {};
  if (address == nullptr || !Copy(address, &wanted)) return EAFNOSUPPORT;
  // As the kernel's.
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&wanted);
  if (wanted.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
      v6->sin6_scope_id == 0) {
    return EINVAL;
  }
  Device* device = DeviceOfAddress(id->node, wanted);
  if (device == nullptr) return EADDRNOTAVAIL;
  uint16_t port = AddressPort(wanted);
  if (port == 0) {
    port = ChoosePort(id, wanted);
    if (port == 0) return EADDRNOTAVAIL;
  } else if (const int error = Reserve(id, wanted, port)) {
    return error;
  }
  SetPort(&wanted, port);
  id->route.addr.src_storage = wanted;
  if (!AddressText(wanted).empty() && !SetDevice(id, device)) return EMFILE;
  Enter(id, CmState::kBound);
  return 0;
}

int ResolveAddress(CmId* id, const sockaddr* source, const sockaddr* to) {
  if (id->state != CmState::kIdle && id->state != CmState::kBound) {
    return EINVAL;
  }
  sockaddr_storage* own = &id->route.addr.src_storage;
  if (to == nullptr || !Copy(to, &id->route.addr.dst_storage) ||
      (source != nullptr && !Copy(source, own))) {
    return EAFNOSUPPORT;
  }
  own->ss_family = id->route.addr.dst_storage.ss_family;
  Device* device = DeviceOfConnection(id->node, *own);
  if (device == nullptr) return EADDRNOTAVAIL;
  Faults& faults = id->node->faults;
  const bool orphan = faults.Hits(Fault::Kind::kNoDevice);
  const bool fails = faults.Hits(Fault::Kind::kAddrError);
  if (!orphan && !fails && !SetDevice(id, device)) return EMFILE;
  if (AddressText(*own).empty()) {  // everyone is on this machine
    *own = id->route.addr.dst_storage;
    SetPort(own, 0);
  }
  Enter(id, CmState::kAddressQuery);
  SendToSelf(id, CmMessage::Kind::kAddressDone, id->node->config.cm_delay_ns,
             fails ? -ENETUNREACH : 0);
  return 0;
}

int ResolveRoute(CmId* id) {
  if (id->state != CmState::kAddressResolved) return EINVAL;
  if (id->verbs == nullptr) return ENODEV;
  const bool fails = id->node->faults.Hits(Fault::Kind::kRouteError);
  Enter(id, CmState::kRouteQuery);
  SendToSelf(id, CmMessage::Kind::kRouteDone, id->node->config.cm_delay_ns,
             fails ? -ETIMEDOUT : 0);
  return 0;
}

int Listen(CmId* id) {
  if (id->state == CmState::kIdle) {
    sockaddr_storage any = {};
    any.ss_family = AF_INET6;
    const int error = BindAddress(id, reinterpret_cast<sockaddr*>(&any));
    if (error != 0) return error;
  }
  if (id->state != CmState::kBound) return EINVAL;
  if (id->node->process != nullptr) {
    const int error = id->node->process->Listen(id);
    if (error != 0) return error;
  }
  Enter(id, CmState::kListening);
  return 0;
}

int SetIdOption(CmId* id, int level, int name, const void* value,
                size_t length) {
  if (level != RDMA_OPTION_ID) return ENOSYS;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (length != sizeof(uint8_t)) return EINVAL;
      id->traffic_class = *static_cast<const uint8_t*>(value);
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
      return length == sizeof(int) ? 0 : EINVAL;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (length != sizeof(uint8_t)) return EINVAL;
      id->ack_timeout = *static_cast<const uint8_t*>(value) & 31;
      id->has_ack_timeout = true;
      return 0;
    default:
      return ENOSYS;
  }
}

CmId* FindListener(Fabric* fabric, const sockaddr_storage& to) {
  const std::string text = AddressText(to);
  for (const auto& [number, id] : fabric->ids()) {
    if (id->state == CmState::kListening && HasAddress(id->node, text) &&
        Overlap(id, to, AddressPort(to))) {
      return id;
    }
  }
  return nullptr;
}

}  // namespace mig::soft
