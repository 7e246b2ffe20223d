// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/gid.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {
namespace {

// What is asked for: one of these.
struct Wanted {
  bool by_index = false;
  uint32_t index = 0;
  ibv_gid gid = {};
};

bool IsV4(const ibv_gid& gid) {
  in6_addr address = {};
  std::memcpy(&address, gid.raw, sizeof(address));
  return IN6_IS_ADDR_V4MAPPED(&address);
}

bool ParseWanted(absl::string_view text, Wanted* wanted) {
  if (text.find_first_not_of("0123456789") == absl::string_view::npos) {
    wanted->by_index = true;
    return absl::SimpleAtoi(text, &wanted->index);
  }
  const std::string copy(text);
  if (inet_pton(AF_INET6, copy.c_str(), wanted->gid.raw) == 1) return true;
  wanted->gid.raw[10] = wanted->gid.raw[11] = 0xff;
  return inet_pton(AF_INET, copy.c_str(), wanted->gid.raw + 12) == 1;
}

class Search {
 public:
  Search(verbs::Verbs* verbs, absl::string_view device, uint8_t port,
         const Wanted& wanted)
      : verbs_(verbs), device_(device), port_(port), wanted_(wanted) {}

  void Run();
  absl::StatusOr<GidChoice> Answer(absl::string_view text) const;

 private:
  // An error message has room for so many.
  static constexpr int kMostListed = 12;

  void LookAtDevice(const std::string& name, ibv_context* context);
  void LookAt(const std::string& name, const ibv_gid_entry& entry);
  bool Matches(const ibv_gid_entry& entry) const {
    return wanted_.by_index ? entry.gid_index == wanted_.index
                            : std::memcmp(entry.gid.raw, wanted_.gid.raw,
                                          sizeof(entry.gid.raw)) == 0;
  }

  verbs::Verbs* const verbs_;
  const std::string device_;
  const uint8_t port_;
  const Wanted wanted_;
  bool too_old_ = false;
  bool other_type_ = false;  // it is there, but not RoCE v2
  int listed_ = 0;
  std::string list_;
  std::vector<GidChoice> found_;
};

void Search::Run() {
  int count = 0;
  ibv_device** const list = verbs_->GetDeviceList(&count);
  if (list == nullptr) return;
  for (int i = 0; i < count; ++i) {
    const std::string name = verbs_->GetDeviceName(list[i]);
    if (!device_.empty() && device_ != name) continue;
    ibv_context* const context = verbs_->OpenDevice(list[i]);
    if (context == nullptr) continue;
    LookAtDevice(name, context);
    verbs_->CloseDevice(context);
  }
  verbs_->FreeDeviceList(list);
}

void Search::LookAtDevice(const std::string& name, ibv_context* context) {
  ibv_device_attr attr = {};
  if (verbs_->QueryDevice(context, &attr) != 0) return;
  for (uint32_t port = 1; port <= attr.phys_port_cnt; ++port) {
    if (port_ != 0 && port_ != port) continue;
    ibv_port_attr port_attr = {};
    if (verbs_->QueryPort(context, static_cast<uint8_t>(port), &port_attr) !=
        0) {
      continue;
    }
    for (int i = 0; i < port_attr.gid_tbl_len; ++i) {
      ibv_gid_entry entry = {};
      const int failure = verbs::ErrnoOfCall([&] {
        return verbs_->QueryGidEx(context, port, static_cast<uint32_t>(i),
                                  &entry);
      });
      if (failure == 0) LookAt(name, entry);
      if (failure == EOPNOTSUPP) too_old_ = true;
    }
  }
}

void Search::LookAt(const std::string& name, const ibv_gid_entry& entry) {
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) {
    other_type_ = other_type_ || Matches(entry);
    return;
  }
  if (++listed_ <= kMostListed) {
    absl::StrAppend(&list_, listed_ == 1 ? "" : ", ", name, " port ",
                    entry.port_num, " ", entry.gid_index, "=",
                    GidText(entry.gid));
  }
  if (!Matches(entry)) return;
  found_.push_back({name, static_cast<uint8_t>(entry.port_num), entry.gid_index,
                    AddressIn(entry)});
}

absl::StatusOr<GidChoice> Search::Answer(absl::string_view text) const {
  if (found_.size() == 1) return found_.front();
  if (too_old_) {
    return MakeError(MIG_E_UNSUPPORTED,
                     "gid was asked for, and this rdma-core does not tell the "
                     "types of GIDs: install 32 or newer, or use "
                     "source-address");
  }
  std::string why = " is no RoCE v2 GID of a device here";
  if (!found_.empty()) why = " is on several ports: name device and port too";
  if (found_.empty() && other_type_) {
    why =
        " is there, but not RoCE v2, and rdma_cm connects by the address in "
        "such a one only: choose another, or use source-address";
  }
  std::string where;
  if (!device_.empty()) absl::StrAppend(&where, " of device ", device_);
  if (port_ != 0) absl::StrAppend(&where, " port ", port_);
  return MakeError(
      MIG_E_OPTION,
      absl::StrCat("gid '", text, "'", where, why,
                   "; there are: ", listed_ == 0 ? "none" : list_,
                   listed_ > kMostListed
                       ? absl::StrCat(" and ", listed_ - kMostListed, " more")
                       : ""));
}

}  // namespace

std::string GidText(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  return text;
}

SocketAddress AddressIn(const ibv_gid_entry& entry) {
  SocketAddress address;
  if (IsV4(entry.gid)) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    v4->sin_family = AF_INET;
    std::memcpy(&v4->sin_addr, entry.gid.raw + 12, sizeof(v4->sin_addr));
    address.size = sizeof(*v4);
    return address;
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  std::memcpy(&v6->sin6_addr, entry.gid.raw, sizeof(v6->sin6_addr));
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
    v6->sin6_scope_id = entry.ndev_ifindex;
  }
  address.size = sizeof(*v6);
  return address;
}

absl::StatusOr<GidChoice> FindGid(verbs::Verbs* verbs, absl::string_view device,
                                  uint8_t port, absl::string_view text) {
  Wanted wanted;
  if (!ParseWanted(text, &wanted)) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("gid '", text,
                                  "' is neither an index, nor a GID like "
                                  "fe80::1 or ::ffff:10.0.0.1"));
  }
  Search search(verbs, device, port, wanted);
  search.Run();
  return search.Answer(text);
}

}  // namespace mig::rdma
