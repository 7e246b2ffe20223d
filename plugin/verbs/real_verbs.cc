// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/real_verbs.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbs/symbols.h"

namespace mig::verbs {
namespace {

// The context with the provider's table around it, if that table reaches as
// far as `op_offset`; providers older than the header have shorter ones.
verbs_context* ExtendedContext(ibv_context* context, size_t op_offset) {
  verbs_context* const extended = verbs_get_ctx(context);
  if (extended == nullptr || extended->sz < sizeof(*extended) - op_offset) {
    return nullptr;
  }
  return extended;
}

class Real final : public Verbs {
 public:
  explicit Real(Symbols symbols) : s_(std::move(symbols)) {}

  std::string Name() const override {
    return s_.version.empty() ? "rdma-core"
                              : absl::StrCat("rdma-core ", s_.version);
  }

  ibv_device** GetDeviceList(int* count) override {
    return s_.get_device_list(count);
  }
  void FreeDeviceList(ibv_device** list) override { s_.free_device_list(list); }
  const char* GetDeviceName(ibv_device* device) override {
    return s_.get_device_name(device);
  }
  ibv_context* OpenDevice(ibv_device* device) override {
    return s_.open_device(device);
  }
  int CloseDevice(ibv_context* context) override {
    return s_.close_device(context);
  }
  int QueryDevice(ibv_context* context, ibv_device_attr* attr) override {
    return s_.query_device(context, attr);
  }
  int QueryDeviceEx(ibv_context* context, ibv_device_attr_ex* attr) override;
  int QueryPort(ibv_context* context, uint8_t port,
                ibv_port_attr* attr) override;
  int QueryGid(ibv_context* context, uint8_t port, int index,
               ibv_gid* gid) override {
    return s_.query_gid(context, port, index, gid);
  }
  int QueryGidEx(ibv_context* context, uint32_t port, uint32_t index,
                 ibv_gid_entry* entry) override {
    if (s_.query_gid_ex == nullptr) return EOPNOTSUPP;
    return s_.query_gid_ex(context, port, index, entry, 0, sizeof(*entry));
  }
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override {
    return s_.get_async_event(context, event);
  }
  void AckAsyncEvent(ibv_async_event* event) override {
    s_.ack_async_event(event);
  }
  const char* EventTypeText(ibv_event_type type) override {
    return s_.event_type_str(type);
  }
  const char* WcStatusText(ibv_wc_status status) override {
    return s_.wc_status_str(status);
  }

  ibv_pd* AllocPd(ibv_context* context) override {
    return s_.alloc_pd(context);
  }
  int DeallocPd(ibv_pd* pd) override { return s_.dealloc_pd(pd); }
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length,
                unsigned int access) override;
  int DeregMr(ibv_mr* mr) override { return s_.dereg_mr(mr); }

  ibv_comp_channel* CreateCompChannel(ibv_context* context) override {
    return s_.create_comp_channel(context);
  }
  int DestroyCompChannel(ibv_comp_channel* channel) override {
    return s_.destroy_comp_channel(channel);
  }
  ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context,
                   ibv_comp_channel* channel, int vector) override {
    return s_.create_cq(context, cqe, cq_context, channel, vector);
  }
  int DestroyCq(ibv_cq* cq) override { return s_.destroy_cq(cq); }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override {
    return s_.get_cq_event(channel, cq, cq_context);
  }
  void AckCqEvents(ibv_cq* cq, unsigned int count) override {
    s_.ack_cq_events(cq, count);
  }

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) override {
    return s_.create_qp(pd, attr);
  }
  ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override {
    return s_.modify_qp(qp, attr, mask);
  }
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init_attr) override {
    return s_.query_qp(qp, attr, mask, init_attr);
  }
  int DestroyQp(ibv_qp* qp) override { return s_.destroy_qp(qp); }

  rdma_event_channel* CmCreateEventChannel() override {
    return s_.create_event_channel();
  }
  void CmDestroyEventChannel(rdma_event_channel* channel) override {
    s_.destroy_event_channel(channel);
  }
  int CmGetEvent(rdma_event_channel* channel, rdma_cm_event** event) override {
    return s_.get_cm_event(channel, event);
  }
  int CmAckEvent(rdma_cm_event* event) override {
    return s_.ack_cm_event(event);
  }
  const char* CmEventText(rdma_cm_event_type type) override {
    return s_.event_str(type);
  }
  int CmCreateId(rdma_event_channel* channel, rdma_cm_id** id, void* id_context,
                 rdma_port_space space) override {
    return s_.create_id(channel, id, id_context, space);
  }
  int CmDestroyId(rdma_cm_id* id) override { return s_.destroy_id(id); }
  int CmBindAddr(rdma_cm_id* id, sockaddr* address) override {
    return s_.bind_addr(id, address);
  }
  int CmResolveAddr(rdma_cm_id* id, sockaddr* source, sockaddr* destination,
                    int timeout_ms) override {
    return s_.resolve_addr(id, source, destination, timeout_ms);
  }
  int CmResolveRoute(rdma_cm_id* id, int timeout_ms) override {
    return s_.resolve_route(id, timeout_ms);
  }
  int CmListen(rdma_cm_id* id, int backlog) override {
    return s_.listen(id, backlog);
  }
  int CmConnect(rdma_cm_id* id, rdma_conn_param* param) override {
    return s_.connect(id, param);
  }
  int CmAccept(rdma_cm_id* id, rdma_conn_param* param) override {
    return s_.accept(id, param);
  }
  int CmReject(rdma_cm_id* id, const void* private_data,
               uint8_t length) override {
    return s_.reject(id, private_data, length);
  }
  int CmDisconnect(rdma_cm_id* id) override { return s_.disconnect(id); }
  int CmSetOption(rdma_cm_id* id, int level, int name, void* value,
                  size_t length) override {
    return s_.set_option(id, level, name, value, length);
  }
  int CmCreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) override {
    return s_.cm_create_qp(id, pd, attr);
  }
  int CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) override {
    return s_.cm_create_qp_ex(id, attr);
  }
  void CmDestroyQp(rdma_cm_id* id) override { s_.cm_destroy_qp(id); }
  int CmInitQpAttr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) override {
    if (s_.init_qp_attr == nullptr) return TooOld();
    return s_.init_qp_attr(id, attr, mask);
  }
  int CmEstablish(rdma_cm_id* id) override {
    return s_.establish == nullptr ? TooOld() : s_.establish(id);
  }

 private:
  static int TooOld() {
    errno = EOPNOTSUPP;
    return -1;
  }

  const Symbols s_;
};

// No symbol of the library: the header calls the provider's own function.
int Real::QueryDeviceEx(ibv_context* context, ibv_device_attr_ex* attr) {
  verbs_context* const extended =
      ExtendedContext(context, offsetof(verbs_context, query_device_ex));
  if (extended == nullptr || extended->query_device_ex == nullptr) {
    return EOPNOTSUPP;
  }
  std::memset(attr, 0, sizeof(*attr));
  return extended->query_device_ex(context, nullptr, attr, sizeof(*attr));
}

// The library's symbol fills in the shorter struct of its first ABI.
int Real::QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr) {
  verbs_context* const extended =
      ExtendedContext(context, offsetof(verbs_context, query_port));
  std::memset(attr, 0, sizeof(*attr));
  if (extended != nullptr && extended->query_port != nullptr) {
    return extended->query_port(context, port, attr, sizeof(*attr));
  }
  return s_.query_port(context, port,
                       reinterpret_cast<_compat_ibv_port_attr*>(attr));
}

// The plain symbol hands optional flags to providers that may refuse them; the
// newer one drops those that a provider does not know.
ibv_mr* Real::RegMr(ibv_pd* pd, void* address, size_t length,
                    unsigned int access) {
  const bool optional = (access & IBV_ACCESS_OPTIONAL_RANGE) != 0;
  if (optional && s_.reg_mr_iova2 != nullptr) {
    return s_.reg_mr_iova2(pd, address, length,
                           reinterpret_cast<uintptr_t>(address), access);
  }
  access &= ~static_cast<unsigned int>(IBV_ACCESS_OPTIONAL_RANGE);
  return s_.reg_mr(pd, address, length, static_cast<int>(access));
}

ibv_qp* Real::CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  verbs_context* const extended =
      ExtendedContext(context, offsetof(verbs_context, create_qp_ex));
  if (extended == nullptr || extended->create_qp_ex == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return extended->create_qp_ex(context, attr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Verbs>> OpenLibraries(
    const Libraries& libraries) {
  Symbols symbols = {};
  const absl::Status loaded = LoadSymbols(libraries, &symbols);
  if (!loaded.ok()) return loaded;
  return std::unique_ptr<Verbs>(new Real(std::move(symbols)));
}

absl::StatusOr<Verbs*> RealVerbs() {
  static std::mutex* const mutex = new std::mutex;
  static Verbs* table = nullptr;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (table == nullptr) {
    auto opened = OpenLibraries(Libraries());
    if (!opened.ok()) return opened.status();
    table = opened->release();
  }
  return table;
}

}  // namespace mig::verbs
