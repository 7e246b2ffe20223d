// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The software RDMA device behind the verbs seam. README.md tells how to use
// it and what it models.
#ifndef PLUGIN_SOFT_VERBS_SOFT_VERBS_H_
#define PLUGIN_SOFT_VERBS_SOFT_VERBS_H_

#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "common/host.h"
#include "soft-verbs/cm.h"
#include "soft-verbs/config.h"
#include "soft-verbs/device.h"
#include "soft-verbs/fabric.h"
#include "soft-verbs/objects.h"
#include "verbs/verbs.h"

namespace mig::soft {

// Differences from the libraries, all for the sake of having no thread:
//  - nothing moves but in Drive();
//  - CmDestroyId, DestroyQp, DestroyCq answer EBUSY where the libraries would
//    wait for events to be acknowledged;
//  - a get-event call on a blocking fd drives while it waits; under a clock
//    that stands still it may wait for ever;
//  - rdma_create_qp without a protection domain is EINVAL.
class SoftVerbs : public verbs::Verbs {
 public:
  SoftVerbs(const Config& config, const Host* host,
            std::shared_ptr<Fabric> fabric, uint64_t seed);
  // Frees what the user left, and logs it as an error; there must be no call
  // under way.
  ~SoftVerbs() override;

  // Objects that the user has made and not destroyed, by kind; "" if none.
  std::string LiveObjects();
  Mishaps SeenMishaps();

  std::string Name() const override;
  ibv_device** GetDeviceList(int* count) override;
  void FreeDeviceList(ibv_device** list) override;
  const char* GetDeviceName(ibv_device* device) override;
  ibv_context* OpenDevice(ibv_device* device) override;
  int CloseDevice(ibv_context* context) override;
  int QueryDevice(ibv_context* context, ibv_device_attr* attr) override;
  int QueryDeviceEx(ibv_context* context, ibv_device_attr_ex* attr) override;
  int QueryPort(ibv_context* context, uint8_t port,
                ibv_port_attr* attr) override;
  int QueryGid(ibv_context* context, uint8_t port, int index,
               ibv_gid* gid) override;
  int QueryGidEx(ibv_context* context, uint32_t port, uint32_t index,
                 ibv_gid_entry* entry) override;
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;
  const char* EventTypeText(ibv_event_type type) override;
  const char* WcStatusText(ibv_wc_status status) override;

  ibv_pd* AllocPd(ibv_context* context) override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length,
                unsigned int access) override;
  int DeregMr(ibv_mr* mr) override;

  ibv_comp_channel* CreateCompChannel(ibv_context* context) override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context,
                   ibv_comp_channel* channel, int vector) override;
  int DestroyCq(ibv_cq* cq) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override;
  void AckCqEvents(ibv_cq* cq, unsigned int count) override;

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init_attr) override;
  int DestroyQp(ibv_qp* qp) override;

  rdma_event_channel* CmCreateEventChannel() override;
  void CmDestroyEventChannel(rdma_event_channel* channel) override;
  int CmGetEvent(rdma_event_channel* channel, rdma_cm_event** event) override;
  int CmAckEvent(rdma_cm_event* event) override;
  const char* CmEventText(rdma_cm_event_type type) override;
  int CmCreateId(rdma_event_channel* channel, rdma_cm_id** id, void* id_context,
                 rdma_port_space space) override;
  int CmDestroyId(rdma_cm_id* id) override;
  int CmBindAddr(rdma_cm_id* id, sockaddr* address) override;
  int CmResolveAddr(rdma_cm_id* id, sockaddr* source, sockaddr* destination,
                    int timeout_ms) override;
  int CmResolveRoute(rdma_cm_id* id, int timeout_ms) override;
  int CmListen(rdma_cm_id* id, int backlog) override;
  int CmConnect(rdma_cm_id* id, rdma_conn_param* param) override;
  int CmAccept(rdma_cm_id* id, rdma_conn_param* param) override;
  int CmReject(rdma_cm_id* id, const void* private_data,
               uint8_t length) override;
  int CmDisconnect(rdma_cm_id* id) override;
  int CmSetOption(rdma_cm_id* id, int level, int name, void* value,
                  size_t length) override;
  int CmCreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) override;
  int CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) override;
  void CmDestroyQp(rdma_cm_id* id) override;
  int CmInitQpAttr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) override;
  int CmEstablish(rdma_cm_id* id) override;

  void Drive() override;
  uint64_t NextDueNs() override;
  uint64_t RegistrationNs(size_t length, unsigned int access) override;
  uint64_t SendQueueBytes(const ibv_qp_cap& granted, bool extended) override;

 private:
  class Call;

  // Waits on `fd` until `take`, called under the lock, takes something.
  template <typename Take>
  int WaitFor(int fd, Take take);
  // 0 or the errno of rdma_create_qp and rdma_create_qp_ex.
  int AttachQp(CmId* id, ibv_pd* pd, ibv_qp_init_attr* attr, bool extended,
               uint64_t send_ops);
  int NewExtendedQp(ibv_qp_init_attr_ex* attr, CmId* id, Qp** qp);

  std::shared_ptr<Fabric> fabric_;
  Node node_;
  // Of the user, for the destructor and for LiveObjects; never iterated where
  // the order could matter.
  std::unordered_set<Pd*> pds_;
  std::unordered_set<Mr*> mrs_;
  std::unordered_set<Cq*> cqs_;
  std::unordered_set<CompChannel*> comp_channels_;
  std::unordered_set<CmChannel*> cm_channels_;
  size_t user_contexts_ = 0;
};

// Makes one. `host` gives time and randomness and outlives it. Those that
// share a fabric reach each other; without one it is the process's fabric of
// the name in the config. Errors: OPTION, LIMIT.
absl::StatusOr<std::unique_ptr<SoftVerbs>> MakeSoftVerbs(
    const Config& config, const Host* host,
    std::shared_ptr<Fabric> fabric = nullptr);
// From text, as in config.h: "mlx5,landing=random".
absl::StatusOr<std::unique_ptr<SoftVerbs>> MakeSoftVerbs(
    absl::string_view config, const Host* host,
    std::shared_ptr<Fabric> fabric = nullptr);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_SOFT_VERBS_H_
