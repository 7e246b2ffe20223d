// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The connection manager: identifiers, their states, and the messages by which
// the two ends of a connection come to agree.
#ifndef PLUGIN_SOFT_VERBS_CM_H_
#define PLUGIN_SOFT_VERBS_CM_H_

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "soft-verbs/event_fd.h"
#include "soft-verbs/objects.h"
#include "soft-verbs/shared_segment.h"

namespace mig::soft {

struct Node;

// Most private data that each step of RDMA_PS_TCP takes.
inline constexpr size_t kRequestData = 56;
inline constexpr size_t kReplyData = 196;
inline constexpr size_t kRejectData = 148;
// Why a connection is rejected: nobody listens, or the user said so.
inline constexpr int kRejectNoService = 8;
inline constexpr int kRejectByUser = 28;

struct CmMessage {
  enum class Kind {
    kAddressDone,  // to oneself, as are the others that are done or due
    kRouteDone,
    kTimeout,
    kTimewaitDone,
    kRequest,
    kReply,
    kReady,
    kReject,
    kDisconnect,
    kDisconnectReply
  };
  Kind kind = Kind::kRequest;
  uint32_t from = 0;   // number of the sender's id
  uint64_t epoch = 0;  // of what one sends to oneself: outdated if it differs
  int status = 0;
  uint32_t qp_num = 0;
  sockaddr_storage source = {};  // of a request
  sockaddr_storage destination = {};
  rdma_conn_param param = {};  // private_data is not used, `data` is
  std::vector<uint8_t> data;
};

// How messages reach an id in another process; null within this one.
class CmWire {
 public:
  virtual ~CmWire() = default;
  // `from` may be null of what needs no queue pair.
  virtual void Send(CmId* from, const CmMessage& message) = 0;
  // Whether the other side has sent its queue pair, and its memory can be
  // reached.
  virtual bool reachable() const = 0;
  // Why not, and what to do: a reason that fits into a reject; "" if unknown.
  virtual const std::string& refusal() const = 0;
  // The queue pair at the other end; once.
  virtual std::unique_ptr<RemoteEnd> MakeEnd(bool iwarp) = 0;
};

struct CmEvent : rdma_cm_event {
  std::vector<uint8_t> data;
  CmId* counted = nullptr;  // whose destruction waits for the acknowledgement
};

struct CmChannel : rdma_event_channel {
  Node* node = nullptr;
  EventFd event;
  OwnedFd both;  // readable with `event`, and with the node's sockets
  std::deque<std::unique_ptr<CmEvent>> queue;
  uint32_t references = 0;  // ids
};

enum class CmState {
  kIdle,
  kBound,
  kListening,
  kAddressQuery,
  kAddressResolved,
  kRouteQuery,
  kRouteResolved,
  kConnecting,  // request sent
  kReplied,     // reply received, the user has not seen it yet
  kRequested,   // request received
  kAccepting,   // reply sent
  kConnected,
  kDisconnecting,     // disconnect sent
  kPeerDisconnected,  // disconnect received
  kClosed
};

struct CmId : rdma_cm_id {
  Node* node = nullptr;
  uint32_t number = 0;
  CmState state = CmState::kIdle;
  uint64_t epoch = 0;
  uint32_t peer = 0;  // number of the id at the other end
  uint32_t peer_qp = 0;
  std::shared_ptr<CmWire> wire;
  CmId* listener = nullptr;  // of an id whose CONNECT_REQUEST is not retrieved
  uint32_t unacked = 0;
  bool fails = false;  // a fault: the connection will not come about
  uint8_t ack_timeout = 0;
  bool has_ack_timeout = false;
  uint8_t traffic_class = 0;
  // Number of the queue pair that the user moves itself, in place of `qp`.
  uint32_t told_qp = 0;
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
};

inline CmId* ToId(rdma_cm_id* id) { return static_cast<CmId*>(id); }

// -- Identifiers (cm_id.cc) ---------------------------------------------------
// These answer 0 or an errno. All are called under the fabric's lock.
CmId* NewId(CmChannel* channel, void* user, rdma_port_space space);
int DestroyId(CmId* id);
int BindAddress(CmId* id, const sockaddr* address);
int ResolveAddress(CmId* id, const sockaddr* source, const sockaddr* to);
int ResolveRoute(CmId* id);
int Listen(CmId* id);
int SetIdOption(CmId* id, int level, int name, const void* value,
                size_t length);
// Numeric, an IPv4 address mapped into IPv6 as the former; "" for any.
std::string AddressText(const sockaddr_storage& address);
uint16_t AddressPort(const sockaddr_storage& address);
// The listener that this address leads to, or null.
CmId* FindListener(Fabric* fabric, const sockaddr_storage& to);
Device* DeviceOfAddress(Node* node, const sockaddr_storage& address);
// The same for an id that connects or is connected to: see Config::spread.
Device* DeviceOfConnection(Node* node, const sockaddr_storage& address);
// False without file descriptors for a context.
bool SetDevice(CmId* id, Device* device);
void Enter(CmId* id, CmState state);
// The queue pair of the connection, attached to the id or told by its number;
// null if there is none. And the way back.
Qp* QpOf(const CmId* id);
CmId* IdOf(const Qp* qp);
// rdma_init_qp_attr.
int InitQpAttributes(const CmId* id, ibv_qp_attr* attr, int* mask);
// The path to the other end, as the system would choose it.
ibv_ah_attr PathOf(const CmId* id);

// -- Connections (cm_connect.cc) ----------------------------------------------
int Connect(CmId* id, const rdma_conn_param* param);
int Accept(CmId* id, const rdma_conn_param* param);
int Reject(CmId* id, const void* data, uint8_t length);
int Disconnect(CmId* id);
// rdma_establish, of an id whose queue pair the user moves.
int Establish(CmId* id);
// A message has arrived.
void OnMessage(CmId* id, const CmMessage& message);
// One has arrived for an id that is no more.
void OnStray(Fabric* fabric, const CmMessage& message, uint64_t now);
// A request from a wire, for a listener.
CmId* OnRequest(CmId* listener, const CmMessage& message);
// A reject with that reason, "" for what a stack says where nobody listens.
CmMessage RejectFor(const std::string& reason);
// The process at the other end is gone.
void OnPeerGone(CmId* id);
// The user has retrieved the event that ends the active side's connecting.
void OnReplySeen(CmId* id);
// The queue pair's connection broke; the device was removed.
void OnBroken(CmId* id);
void OnRemoval(Fabric* fabric, Context* context);

// -- Events (cm_events.cc) ----------------------------------------------------
void PushEvent(CmId* id, rdma_cm_event_type type, int status,
               const CmMessage* message = nullptr, CmId* listener = nullptr);
// The next event, or null. The caller owns it until it is acknowledged.
CmEvent* PopEvent(CmChannel* channel);
void AckEvent(CmEvent* event);
void DropEvents(CmId* id);

// Sends to the other end, which gets it after the modelled delay.
void SendToPeer(CmId* id, CmMessage message);
void SendToSelf(CmId* id, CmMessage::Kind kind, uint64_t delay_ns,
                int status = 0);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_CM_H_
