// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The seam between the RDMA plugin and whatever does RDMA for it: every cold
// call of libibverbs and librdmacm, as one table. The real libraries stand
// behind real_verbs.h, the software device behind soft-verbs/.
//
// Every function answers exactly as its namesake's man page says, oddities
// included: some answer an errno, some -1 with errno, some NULL with errno.
// Whoever calls sets errno to 0 first and reads both (verbs_error.h), because
// providers differ in it.
//
// Hot calls are not here: ibv_post_send, ibv_post_recv, ibv_poll_cq and
// ibv_req_notify_cq are inline calls of <infiniband/verbs.h> through the
// context's own ops, which a software device fills in. Nothing else of the
// header's inline calls may be used: many reach for a symbol of the library.
#ifndef PLUGIN_VERBS_VERBS_H_
#define PLUGIN_VERBS_VERBS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <string>

// The header turns these names into macros.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace mig::verbs {

// Any thread, as libibverbs and librdmacm are, unless a function says more.
// Objects are those of the libraries' headers and belong to the table that made
// them: none may be given to another.
class Verbs {
 public:
  virtual ~Verbs() = default;

  // "rdma-core 44.0", "soft:mlx5"; for messages.
  virtual std::string Name() const = 0;

  // -- Devices ----------------------------------------------------------------
  virtual ibv_device** GetDeviceList(int* count) = 0;
  virtual void FreeDeviceList(ibv_device** list) = 0;
  virtual const char* GetDeviceName(ibv_device* device) = 0;
  virtual ibv_context* OpenDevice(ibv_device* device) = 0;
  virtual int CloseDevice(ibv_context* context) = 0;
  virtual int QueryDevice(ibv_context* context, ibv_device_attr* attr) = 0;
  // EOPNOTSUPP where the provider has none: ask QueryDevice then.
  virtual int QueryDeviceEx(ibv_context* context, ibv_device_attr_ex* attr) = 0;
  virtual int QueryPort(ibv_context* context, uint8_t port,
                        ibv_port_attr* attr) = 0;
  virtual int QueryGid(ibv_context* context, uint8_t port, int index,
                       ibv_gid* gid) = 0;
  // 0 or an errno: ENODATA of an index that is not in use, EOPNOTSUPP where
  // the library is too old to tell.
  virtual int QueryGidEx(ibv_context* context, uint32_t port, uint32_t index,
                         ibv_gid_entry* entry) = 0;
  // Waits unless context->async_fd was made non-blocking; then -1 and EAGAIN.
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;
  virtual const char* EventTypeText(ibv_event_type type) = 0;
  virtual const char* WcStatusText(ibv_wc_status status) = 0;

  // -- Memory -----------------------------------------------------------------
  virtual ibv_pd* AllocPd(ibv_context* context) = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;
  // `access` of ibv_access_flags, optional ones (relaxed ordering) too.
  virtual ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length,
                        unsigned int access) = 0;
  virtual int DeregMr(ibv_mr* mr) = 0;

  // -- Completion queues ------------------------------------------------------
  virtual ibv_comp_channel* CreateCompChannel(ibv_context* context) = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context,
                           ibv_comp_channel* channel, int vector) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;
  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                         void** cq_context) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned int count) = 0;

  // -- Queue pairs ------------------------------------------------------------
  // Those of a connection are made by CmCreateQp and CmCreateQpEx, which also
  // move them through INIT, RTR and RTS; or by these, and are moved by ModifyQp
  // with what CmInitQpAttr says, their number being in the rdma_conn_param.
  virtual ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) = 0;
  virtual ibv_qp* CreateQpEx(ibv_context* context,
                             ibv_qp_init_attr_ex* attr) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) = 0;
  virtual int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                      ibv_qp_init_attr* init_attr) = 0;
  virtual int DestroyQp(ibv_qp* qp) = 0;

  // -- Connections ------------------------------------------------------------
  virtual rdma_event_channel* CmCreateEventChannel() = 0;
  virtual void CmDestroyEventChannel(rdma_event_channel* channel) = 0;
  // Waits unless channel->fd was made non-blocking; then -1 and EAGAIN.
  virtual int CmGetEvent(rdma_event_channel* channel,
                         rdma_cm_event** event) = 0;
  virtual int CmAckEvent(rdma_cm_event* event) = 0;
  virtual const char* CmEventText(rdma_cm_event_type type) = 0;
  virtual int CmCreateId(rdma_event_channel* channel, rdma_cm_id** id,
                         void* id_context, rdma_port_space space) = 0;
  // Waits until every event of the id is acknowledged (rdma_destroy_id(3)).
  virtual int CmDestroyId(rdma_cm_id* id) = 0;
  virtual int CmBindAddr(rdma_cm_id* id, sockaddr* address) = 0;
  virtual int CmResolveAddr(rdma_cm_id* id, sockaddr* source,
                            sockaddr* destination, int timeout_ms) = 0;
  virtual int CmResolveRoute(rdma_cm_id* id, int timeout_ms) = 0;
  virtual int CmListen(rdma_cm_id* id, int backlog) = 0;
  virtual int CmConnect(rdma_cm_id* id, rdma_conn_param* param) = 0;
  virtual int CmAccept(rdma_cm_id* id, rdma_conn_param* param) = 0;
  virtual int CmReject(rdma_cm_id* id, const void* private_data,
                       uint8_t length) = 0;
  virtual int CmDisconnect(rdma_cm_id* id) = 0;
  virtual int CmSetOption(rdma_cm_id* id, int level, int name, void* value,
                          size_t length) = 0;
  virtual int CmCreateQp(rdma_cm_id* id, ibv_pd* pd,
                         ibv_qp_init_attr* attr) = 0;
  virtual int CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) = 0;
  virtual void CmDestroyQp(rdma_cm_id* id) = 0;
  // -1 and EOPNOTSUPP where the library is too old to have them.
  virtual int CmInitQpAttr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) = 0;
  virtual int CmEstablish(rdma_cm_id* id) = 0;

  // -- Devices without a life of their own ------------------------------------
  // A software device inside one process has no thread: it moves when its user
  // drives it. Real devices do nothing here.
  // Does what is due by the host's clock; never waits, nor calls back.
  virtual void Drive() {}
  // When Drive next has something to do, on the host's clock: 0 at once,
  // UINT64_MAX never, so far.
  virtual uint64_t NextDueNs() { return UINT64_MAX; }
  // What a registration takes where the host's clock is simulated, so that the
  // call itself takes no time; 0 on real devices.
  virtual uint64_t RegistrationNs(size_t length, unsigned int access) {
    (void)length;
    (void)access;
    return 0;
  }
  // Bytes that a send queue of these caps takes on this device, 0 unknown.
  // `extended` if the queue pair was made by CmCreateQpEx.
  virtual uint64_t SendQueueBytes(const ibv_qp_cap& granted, bool extended) {
    (void)granted;
    (void)extended;
    return 0;
  }
};

}  // namespace mig::verbs

#endif  // PLUGIN_VERBS_VERBS_H_
