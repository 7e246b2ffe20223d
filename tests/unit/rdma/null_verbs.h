// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A table of verbs that can do nothing, to derive from.
#ifndef TESTS_UNIT_RDMA_NULL_VERBS_H_
#define TESTS_UNIT_RDMA_NULL_VERBS_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "verbs/verbs.h"

namespace mig::rdma {

// The memory at an address, as a work request has it; or nowhere, for tests in
// which nothing is read.
inline std::byte* At(uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<std::byte*>(address);
}

class NullVerbs : public verbs::Verbs {
 public:
  std::string Name() const override { return "null"; }
  ibv_device** GetDeviceList(int*) override { return Null<ibv_device*>(); }
  void FreeDeviceList(ibv_device**) override {}
  const char* GetDeviceName(ibv_device*) override { return "null"; }
  ibv_context* OpenDevice(ibv_device*) override { return Null<ibv_context>(); }
  int CloseDevice(ibv_context*) override { return ENOSYS; }
  int QueryDevice(ibv_context*, ibv_device_attr*) override { return ENOSYS; }
  int QueryDeviceEx(ibv_context*, ibv_device_attr_ex*) override {
    return EOPNOTSUPP;
  }
  int QueryPort(ibv_context*, uint8_t, ibv_port_attr*) override {
    return ENOSYS;
  }
  int QueryGid(ibv_context*, uint8_t, int, ibv_gid*) override { return ENOSYS; }
  int QueryGidEx(ibv_context*, uint32_t, uint32_t, ibv_gid_entry*) override {
    return ENOSYS;
  }
  int GetAsyncEvent(ibv_context*, ibv_async_event*) override { return Fail(); }
  void AckAsyncEvent(ibv_async_event*) override {}
  const char* EventTypeText(ibv_event_type) override { return "event"; }
  const char* WcStatusText(ibv_wc_status) override { return "status"; }
  ibv_pd* AllocPd(ibv_context*) override { return Null<ibv_pd>(); }
  int DeallocPd(ibv_pd*) override { return ENOSYS; }
  ibv_mr* RegMr(ibv_pd*, void*, size_t, unsigned int) override {
    return Null<ibv_mr>();
  }
  int DeregMr(ibv_mr*) override { return ENOSYS; }
  ibv_comp_channel* CreateCompChannel(ibv_context*) override {
    return Null<ibv_comp_channel>();
  }
  int DestroyCompChannel(ibv_comp_channel*) override { return ENOSYS; }
  ibv_cq* CreateCq(ibv_context*, int, void*, ibv_comp_channel*, int) override {
    return Null<ibv_cq>();
  }
  int DestroyCq(ibv_cq*) override { return ENOSYS; }
  int GetCqEvent(ibv_comp_channel*, ibv_cq**, void**) override {
    return Fail();
  }
  void AckCqEvents(ibv_cq*, unsigned int) override {}
  ibv_qp* CreateQp(ibv_pd*, ibv_qp_init_attr*) override {
    return Null<ibv_qp>();
  }
  ibv_qp* CreateQpEx(ibv_context*, ibv_qp_init_attr_ex*) override {
    return Null<ibv_qp>();
  }
  int ModifyQp(ibv_qp*, ibv_qp_attr*, int) override { return ENOSYS; }
  int QueryQp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) override {
    return ENOSYS;
  }
  int DestroyQp(ibv_qp*) override { return ENOSYS; }
  rdma_event_channel* CmCreateEventChannel() override {
    return Null<rdma_event_channel>();
  }
  void CmDestroyEventChannel(rdma_event_channel*) override {}
  int CmGetEvent(rdma_event_channel*, rdma_cm_event**) override {
    return Fail();
  }
  int CmAckEvent(rdma_cm_event*) override { return Fail(); }
  const char* CmEventText(rdma_cm_event_type) override { return "event"; }
  int CmCreateId(rdma_event_channel*, rdma_cm_id**, void*,
                 rdma_port_space) override {
    return Fail();
  }
  int CmDestroyId(rdma_cm_id*) override { return Fail(); }
  int CmBindAddr(rdma_cm_id*, sockaddr*) override { return Fail(); }
  int CmResolveAddr(rdma_cm_id*, sockaddr*, sockaddr*, int) override {
    return Fail();
  }
  int CmResolveRoute(rdma_cm_id*, int) override { return Fail(); }
  int CmListen(rdma_cm_id*, int) override { return Fail(); }
  int CmConnect(rdma_cm_id*, rdma_conn_param*) override { return Fail(); }
  int CmAccept(rdma_cm_id*, rdma_conn_param*) override { return Fail(); }
  int CmReject(rdma_cm_id*, const void*, uint8_t) override { return Fail(); }
  int CmDisconnect(rdma_cm_id*) override { return Fail(); }
  int CmSetOption(rdma_cm_id*, int, int, void*, size_t) override {
    return Fail();
  }
  int CmCreateQp(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*) override {
    return Fail();
  }
  int CmCreateQpEx(rdma_cm_id*, ibv_qp_init_attr_ex*) override {
    return Fail();
  }
  void CmDestroyQp(rdma_cm_id*) override {}
  int CmInitQpAttr(rdma_cm_id*, ibv_qp_attr*, int*) override { return Fail(); }
  int CmEstablish(rdma_cm_id*) override { return Fail(); }

 private:
  static int Fail() {
    errno = ENOSYS;
    return -1;
  }
  template <typename T>
  static T* Null() {
    errno = ENOSYS;
    return nullptr;
  }
};

}  // namespace mig::rdma

#endif  // TESTS_UNIT_RDMA_NULL_VERBS_H_
