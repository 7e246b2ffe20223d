// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/error.h"

namespace mig::verbs {
namespace {

constexpr char kOld[] = "IBVERBS_1.0";
constexpr char kVerbs[] = "IBVERBS_1.1";
constexpr char kIova2[] = "IBVERBS_1.8";
constexpr char kGidEx[] = "IBVERBS_1.11";
constexpr char kCm[] = "RDMACM_1.0";
constexpr char kCmOwnQp[] = "RDMACM_1.2";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// One library, and the first thing that is wrong with it.
class Library {
 public:
  Library(const std::string& file, const char* package)
      : file_(file), package_(package) {
    // A host's own ibv_* would else be found first, also for what librdmacm
    // calls and for references that carry a version (C21). Sanitizers have to
    // come first themselves.
    const int deep = kSanitized ? 0 : RTLD_DEEPBIND;
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | deep);
    if (handle_ == nullptr) {
      const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
      status_ = MakeError(
          MIG_E_DEVICE,
          absl::StrCat("can't open ", file, " (",
                       reason != nullptr ? reason : "no reason was told",
                       "): install ", package,
                       " of rdma-core, or choose device=soft"));
    }
  }

  template <typename Fn>
  void Need(const char* name, const char* version, Fn* function) {
    if (!status_.ok()) return;
    Find(name, version, function);
    if (*function != nullptr) return;
    status_ =
        MakeError(MIG_E_DEVICE, absl::StrCat(file_, " has no ", name, "@",
                                             version, ": install a ", package_,
                                             " of rdma-core 28 or newer"));
  }

  template <typename Fn>
  void Find(const char* name, const char* version, Fn* function) {
    *function = nullptr;
    if (!status_.ok()) return;
    *function = reinterpret_cast<Fn>(dlvsym(handle_, name, version));
  }

  const absl::Status& status() const { return status_; }

 private:
  const std::string file_;
  const char* const package_;
  void* handle_ = nullptr;
  absl::Status status_;
};

// Debian's and Red Hat's files are libibverbs.so.1.14.44.0 for 44.0.
std::string VersionOfFile(void* symbol) {
  Dl_info info = {};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "";
  char* const path = realpath(info.dli_fname, nullptr);
  if (path == nullptr) return "";
  const std::string name = path;
  free(path);
  const size_t at = name.rfind(".so.1.");
  if (at == std::string::npos) return "";
  const size_t dot = name.find('.', at + 6);
  return dot == std::string::npos ? "" : name.substr(dot + 1);
}

void LoadVerbs(Library* from, Symbols* to) {
  from->Need("ibv_get_device_list", kVerbs, &to->get_device_list);
  from->Need("ibv_free_device_list", kVerbs, &to->free_device_list);
  from->Need("ibv_get_device_name", kVerbs, &to->get_device_name);
  from->Need("ibv_open_device", kVerbs, &to->open_device);
  from->Need("ibv_close_device", kVerbs, &to->close_device);
  from->Need("ibv_query_device", kVerbs, &to->query_device);
  from->Need("ibv_query_port", kVerbs, &to->query_port);
  from->Need("ibv_query_gid", kVerbs, &to->query_gid);
  from->Find("_ibv_query_gid_ex", kGidEx, &to->query_gid_ex);
  from->Need("ibv_get_async_event", kVerbs, &to->get_async_event);
  from->Need("ibv_ack_async_event", kVerbs, &to->ack_async_event);
  from->Need("ibv_event_type_str", kVerbs, &to->event_type_str);
  from->Need("ibv_wc_status_str", kVerbs, &to->wc_status_str);
  from->Need("ibv_alloc_pd", kVerbs, &to->alloc_pd);
  from->Need("ibv_dealloc_pd", kVerbs, &to->dealloc_pd);
  from->Need("ibv_reg_mr", kVerbs, &to->reg_mr);
  from->Find("ibv_reg_mr_iova2", kIova2, &to->reg_mr_iova2);
  from->Need("ibv_dereg_mr", kVerbs, &to->dereg_mr);
  from->Need("ibv_create_comp_channel", kOld, &to->create_comp_channel);
  from->Need("ibv_destroy_comp_channel", kOld, &to->destroy_comp_channel);
  from->Need("ibv_create_cq", kVerbs, &to->create_cq);
  from->Need("ibv_destroy_cq", kVerbs, &to->destroy_cq);
  from->Need("ibv_get_cq_event", kVerbs, &to->get_cq_event);
  from->Need("ibv_ack_cq_events", kVerbs, &to->ack_cq_events);
  from->Need("ibv_create_qp", kVerbs, &to->create_qp);
  from->Need("ibv_modify_qp", kVerbs, &to->modify_qp);
  from->Need("ibv_query_qp", kVerbs, &to->query_qp);
  from->Need("ibv_destroy_qp", kVerbs, &to->destroy_qp);
}

void LoadCm(Library* from, Symbols* to) {
  from->Need("rdma_create_event_channel", kCm, &to->create_event_channel);
  from->Need("rdma_destroy_event_channel", kCm, &to->destroy_event_channel);
  from->Need("rdma_get_cm_event", kCm, &to->get_cm_event);
  from->Need("rdma_ack_cm_event", kCm, &to->ack_cm_event);
  from->Need("rdma_event_str", kCm, &to->event_str);
  from->Need("rdma_create_id", kCm, &to->create_id);
  from->Need("rdma_destroy_id", kCm, &to->destroy_id);
  from->Need("rdma_bind_addr", kCm, &to->bind_addr);
  from->Need("rdma_resolve_addr", kCm, &to->resolve_addr);
  from->Need("rdma_resolve_route", kCm, &to->resolve_route);
  from->Need("rdma_listen", kCm, &to->listen);
  from->Need("rdma_connect", kCm, &to->connect);
  from->Need("rdma_accept", kCm, &to->accept);
  from->Need("rdma_reject", kCm, &to->reject);
  from->Need("rdma_disconnect", kCm, &to->disconnect);
  from->Need("rdma_set_option", kCm, &to->set_option);
  from->Need("rdma_create_qp", kCm, &to->cm_create_qp);
  from->Need("rdma_create_qp_ex", kCm, &to->cm_create_qp_ex);
  from->Need("rdma_destroy_qp", kCm, &to->cm_destroy_qp);
  from->Find("rdma_init_qp_attr", kCmOwnQp, &to->init_qp_attr);
  from->Find("rdma_establish", kCmOwnQp, &to->establish);
}

}  // namespace

absl::Status LoadSymbols(const Libraries& libraries, Symbols* symbols) {
  Library verbs(libraries.ibverbs, "libibverbs1");
  LoadVerbs(&verbs, symbols);
  MIG_RETURN_IF_ERROR(verbs.status());
  Library cm(libraries.rdmacm, "librdmacm1");
  LoadCm(&cm, symbols);
  MIG_RETURN_IF_ERROR(cm.status());
  symbols->version =
      VersionOfFile(reinterpret_cast<void*>(symbols->get_device_list));
  return absl::OkStatus();
}

}  // namespace mig::verbs
