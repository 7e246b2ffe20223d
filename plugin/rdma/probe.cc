// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/probe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/error.h"
#include "rdma/gid.h"
#include "rdma/probe_caps.h"
#include "rdma/registration.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

void PutText(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Bits a second: ibv_query_port(3) has codes for both factors.
uint64_t LineRate(const ibv_port_attr& port) {
  struct Code {
    uint32_t code;
    uint64_t value;
  };
  constexpr Code kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  constexpr Code kMegabits[] = {{1, 2500},   {2, 5000},    {4, 10000},
                                {8, 10000},  {16, 14000},  {32, 25000},
                                {64, 50000}, {128, 100000}};
  const auto value_of = [](const auto& codes, uint32_t code) -> uint64_t {
    for (const Code& each : codes) {
      if (each.code == code) return each.value;
    }
    return 0;
  };
  return value_of(kLanes, port.active_width) *
         value_of(kMegabits, port.active_speed) * 1'000'000;
}

// One device, open.
class DeviceProbe {
 public:
  DeviceProbe(verbs::Verbs* verbs, ibv_device* device, ibv_context* context,
              const ProbeSettings& settings,
              std::vector<struct mig_device>* found)
      : verbs_(verbs),
        name_(verbs->GetDeviceName(device)),
        iwarp_(device->transport_type == IBV_TRANSPORT_IWARP),
        context_(context),
        settings_(settings),
        found_(found) {}

  absl::Status Run();

 private:
  absl::Status LearnCaps();
  std::string Suggestions(const ibv_device_attr& attr) const;
  void AddPort(uint32_t port, const ibv_device_attr& attr);
  void AddGids(uint32_t port, const ibv_port_attr& attr);
  void AddGid(const ibv_gid_entry& entry, const ibv_port_attr& attr);
  struct mig_device Entry(uint32_t port, const ibv_port_attr& attr) const;

  verbs::Verbs* const verbs_;
  const std::string name_;
  const bool iwarp_;
  ibv_context* const context_;
  const ProbeSettings& settings_;
  std::vector<struct mig_device>* const found_;
  QpGrant grant_;
  bool made_ = false;
  std::string caps_;
};

absl::Status DeviceProbe::Run() {
  MIG_RETURN_IF_ERROR(LearnCaps());
  ibv_device_attr attr = {};
  const int failure =
      verbs::ErrnoOfCall([&] { return verbs_->QueryDevice(context_, &attr); });
  MIG_RETURN_IF_ERROR(
      verbs::StatusOfErrno("it does not tell its limits", failure));
  for (uint32_t port = 1; port <= attr.phys_port_cnt; ++port) {
    AddPort(port, attr);
  }
  return absl::OkStatus();
}

absl::Status DeviceProbe::LearnCaps() {
  absl::Status made =
      ProbeCaps(verbs_, context_, settings_.control_inline, &grant_);
  made_ = made.ok();
  // Some devices may make none but for a connection.
  if (!made.ok() && ErrorErrno(made) == EOPNOTSUPP) {
    caps_ =
        "queue pairs by the connection manager only: what it grants is "
        "told when a session connects";
    return absl::OkStatus();
  }
  caps_ = absl::StrCat("queue pairs: ", FormatAttempts(grant_.attempts));
  return made;
}

std::string DeviceProbe::Suggestions(const ibv_device_attr& attr) const {
  std::vector<std::string> options;
  if (made_ && grant_.granted.max_inline_data < settings_.control_inline) {
    options.push_back(
        absl::StrCat("control-inline=", grant_.granted.max_inline_data));
  }
  if (attr.max_qp_wr > 0 &&
      static_cast<uint32_t>(attr.max_qp_wr) < settings_.queue_depth) {
    options.push_back(absl::StrCat("queue-depth=", attr.max_qp_wr));
  }
  ibv_device_attr_ex extended = {};
  if (verbs_->QueryDeviceEx(context_, &extended) == 0 &&
      CheckOdp(extended).ok()) {
    options.emplace_back("registration=odp, which pins nothing");
  }
  // siw holds root to the limit too.
  if (!settings_.memlock.unlimited ||
      (iwarp_ && settings_.memlock.limit != UINT64_MAX)) {
    options.push_back(absl::StrCat(
        "registration=dynamic for guests beyond the limit of locked memory, ",
        settings_.memlock.limit, " bytes"));
  }
  if (options.empty()) return "";
  return absl::StrCat("suggests ", absl::StrJoin(options, ", "), "; ");
}

struct mig_device DeviceProbe::Entry(uint32_t port,
                                     const ibv_port_attr& attr) const {
  struct mig_device entry = {};
  PutText(name_, entry.name, sizeof(entry.name));
  entry.port = port;
  entry.speed_bps = LineRate(attr);
  if (attr.state == IBV_PORT_ACTIVE) entry.flags = MIG_DEVICE_USABLE;
  return entry;
}

void DeviceProbe::AddPort(uint32_t port, const ibv_device_attr& attr) {
  ibv_port_attr port_attr = {};
  const int failure = verbs::ErrnoOfCall([&] {
    return verbs_->QueryPort(context_, static_cast<uint8_t>(port), &port_attr);
  });
  struct mig_device entry = Entry(port, port_attr);
  std::string text;
  if (failure != 0) {
    text = std::string(
        verbs::StatusOfErrno("its port can't be queried", failure).message());
    entry.flags = 0;
  } else if (port_attr.state != IBV_PORT_ACTIVE) {
    text = absl::StrCat("its port ", port, " is not active: bring the link up");
  } else {
    const char* const link = port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND
                                 ? "InfiniBand"
                             : iwarp_ ? "iWARP"
                                      : "RoCE";
    text = absl::StrCat(link, ", MTU ", 128u << port_attr.active_mtu,
                        ", messages to ", port_attr.max_msg_sz, " bytes; ",
                        Suggestions(attr), verbs_->Name(), ", ", caps_);
  }
  PutText(text, entry.detail, sizeof(entry.detail));
  found_->push_back(entry);
  // iWARP's address is the network interface's own.
  if (failure == 0 && !iwarp_) AddGids(port, port_attr);
}

void DeviceProbe::AddGids(uint32_t port, const ibv_port_attr& attr) {
  for (int i = 0; i < attr.gid_tbl_len; ++i) {
    ibv_gid_entry entry = {};
    // ENODATA: an empty place. EOPNOTSUPP: older than rdma-core 32.
    const int failure = verbs::ErrnoOfCall([&] {
      return verbs_->QueryGidEx(context_, port, static_cast<uint32_t>(i),
                                &entry);
    });
    if (failure == 0) AddGid(entry, attr);
  }
}

void DeviceProbe::AddGid(const ibv_gid_entry& gid, const ibv_port_attr& attr) {
  struct mig_device entry = Entry(gid.port_num, attr);
  std::string text =
      absl::StrCat("GID ", gid.gid_index, "=", GidText(gid.gid), ", ");
  switch (gid.gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
      PutText(FormatHost(AddressIn(gid)), entry.address, sizeof(entry.address));
      absl::StrAppend(&text, "RoCE v2");
      break;
    case IBV_GID_TYPE_ROCE_V1:
      entry.flags = 0;
      absl::StrAppend(&text, "RoCE v1: connect by one of RoCE v2");
      break;
    default:
      absl::StrAppend(&text,
                      "InfiniBand: connect by the address of IP over "
                      "InfiniBand");
  }
  PutText(text, entry.detail, sizeof(entry.detail));
  found_->push_back(entry);
}

void ProbeDevice(verbs::Verbs* verbs, ibv_device* device,
                 const ProbeSettings& settings,
                 std::vector<struct mig_device>* found) {
  int failure = 0;
  ibv_context* const context =
      verbs::ObjectOfCall(&failure, [&] { return verbs->OpenDevice(device); });
  absl::Status status = verbs::StatusOfErrno("it can't be opened", failure);
  if (context != nullptr) {
    status = DeviceProbe(verbs, device, context, settings, found).Run();
    verbs->CloseDevice(context);
  }
  if (status.ok()) return;
  struct mig_device entry = {};
  PutText(verbs->GetDeviceName(device), entry.name, sizeof(entry.name));
  PutText(status.message(), entry.detail, sizeof(entry.detail));
  found->push_back(entry);
}

}  // namespace

std::vector<struct mig_device> ProbeDevices(verbs::Verbs* verbs,
                                            const ProbeSettings& settings) {
  std::vector<struct mig_device> found;
  int count = 0;
  // Without the kernel's part there is no list, and so no device.
  ibv_device** const list = verbs->GetDeviceList(&count);
  if (list == nullptr) return found;
  for (int i = 0; i < count; ++i) {
    ProbeDevice(verbs, list[i], settings, &found);
  }
  verbs->FreeDeviceList(list);
  return found;
}

}  // namespace mig::rdma
