// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/probe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/caps_ladder.h"
#include "rdma/wire.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

void PutText(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Makes queue pairs that are never connected.
class Prober final : public QpMaker {
 public:
  Prober(verbs::Verbs* verbs, ibv_context* context)
      : verbs_(verbs), context_(context) {}
  ~Prober() override {
    Unmake();
    if (cq_ != nullptr) verbs_->DestroyCq(cq_);
    if (pd_ != nullptr) verbs_->DeallocPd(pd_);
  }
  absl::Status Open(int entries) {
    int failure = 0;
    pd_ = verbs::ObjectOfCall(&failure,
                              [&] { return verbs_->AllocPd(context_); });
    if (pd_ != nullptr) {
      cq_ = verbs::ObjectOfCall(&failure, [&] {
        return verbs_->CreateCq(context_, entries, nullptr, nullptr, 0);
      });
    }
    return verbs::StatusOfErrno("it gives no queues", failure);
  }

  int Make(bool extended, ibv_qp_cap* cap) override {
    int failure = 0;
    if (extended) {
      ibv_qp_init_attr_ex attr = {};
      attr.send_cq = attr.recv_cq = cq_;
      attr.cap = *cap;
      attr.qp_type = IBV_QPT_RC;
      attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      attr.pd = pd_;
      attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
      qp_ = verbs::ObjectOfCall(
          &failure, [&] { return verbs_->CreateQpEx(context_, &attr); });
      *cap = attr.cap;
      return failure;
    }
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = *cap;
    attr.qp_type = IBV_QPT_RC;
    qp_ = verbs::ObjectOfCall(&failure,
                              [&] { return verbs_->CreateQp(pd_, &attr); });
    *cap = attr.cap;
    return failure;
  }
  void Unmake() override {
    if (qp_ != nullptr) verbs_->DestroyQp(std::exchange(qp_, nullptr));
  }

 private:
  verbs::Verbs* const verbs_;
  ibv_context* const context_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

absl::StatusOr<std::string> Describe(verbs::Verbs* verbs, ibv_context* context,
                                     uint32_t inline_bytes) {
  QpWants wants;
  wants.most = {.max_send_wr = 32,
                .max_recv_wr = 32,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes};
  wants.least_send_depth = 8;
  wants.least_receive_depth = 4;
  Prober prober(verbs, context);
  MIG_RETURN_IF_ERROR(prober.Open(64));
  QpGrant grant;
  absl::Status made = ClimbDown(wants, &prober, &grant);
  // Some iWARP devices make none but for a connection.
  if (!made.ok() && ErrorErrno(made) == EOPNOTSUPP) {
    return absl::StrCat(verbs->Name(),
                        ", queue pairs by the connection manager only: what "
                        "it grants is told when a session connects");
  }
  if (!made.ok()) return made;
  return absl::StrCat(verbs->Name(),
                      ", queue pairs: ", FormatAttempts(grant.attempts));
}

struct mig_device ProbeDevice(verbs::Verbs* verbs, ibv_device* device,
                              uint32_t inline_bytes) {
  struct mig_device found = {};
  found.port = 1;
  PutText(verbs->GetDeviceName(device), found.name, sizeof(found.name));
  int failure = 0;
  ibv_context* const context =
      verbs::ObjectOfCall(&failure, [&] { return verbs->OpenDevice(device); });
  absl::Status status = verbs::StatusOfErrno("it can't be opened", failure);
  if (context != nullptr) {
    const auto text = Describe(verbs, context, inline_bytes);
    status = text.status();
    if (text.ok()) PutText(*text, found.detail, sizeof(found.detail));
    ibv_port_attr port = {};
    if (verbs->QueryPort(context, 1, &port) == 0 && status.ok()) {
      if (port.state == IBV_PORT_ACTIVE) {
        found.flags = MIG_DEVICE_USABLE;
      } else {
        status = MakeError(MIG_E_DEVICE,
                           "its port 1 is not active: bring the link up");
      }
    }
    verbs->CloseDevice(context);
  }
  if (!status.ok()) {
    PutText(status.message(), found.detail, sizeof(found.detail));
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<struct mig_device>> ProbeDevices(
    verbs::Verbs* verbs, uint32_t inline_bytes) {
  int count = 0;
  int failure = 0;
  ibv_device** const list = verbs::ObjectOfCall(
      &failure, [&] { return verbs->GetDeviceList(&count); });
  std::vector<struct mig_device> devices;
  // Without the kernel's part there is no list, and so no device.
  if (list == nullptr) return devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(ProbeDevice(verbs, list[i], inline_bytes));
  }
  verbs->FreeDeviceList(list);
  return devices;
}

}  // namespace mig::rdma
