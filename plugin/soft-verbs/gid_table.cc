// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/gid_table.h"

#include <arpa/inet.h>

#include <cstring>

namespace mig::soft {
namespace {

constexpr uint32_t kVersions = 2;

ibv_gid MapV4(const in_addr& address) {
  ibv_gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &address, sizeof(address));
  return gid;
}

// Tells the devices of one node apart.
ibv_gid LinkLocal(const Device& device) {
  ibv_gid gid = {};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  const auto& devices = device.node->devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].get() == &device) gid.raw[15] = static_cast<uint8_t>(i + 1);
  }
  return gid;
}

// Of a device that answers at any address: the one that every machine has.
ibv_gid OfInterface(const Device& device) {
  const char* const text =
      device.address.empty() ? "127.0.0.1" : device.address.c_str();
  in_addr v4 = {};
  if (inet_pton(AF_INET, text, &v4) == 1) return MapV4(v4);
  ibv_gid gid = {};
  inet_pton(AF_INET6, text, gid.raw);
  return gid;
}

bool Iwarp(const Device& device) { return device.node->config.model->iwarp; }

}  // namespace

uint32_t GidCount(const Device& device) {
  return Iwarp(device) ? 1 : 4 * kVersions;
}

bool GidAt(const Device& device, uint32_t index, ibv_gid_entry* entry) {
  const uint32_t address = index / kVersions;
  if (address > 1 || index >= GidCount(device)) return false;
  *entry = {};
  entry->gid = address == 0 ? LinkLocal(device) : OfInterface(device);
  entry->gid_index = index;
  entry->port_num = 1;
  entry->gid_type =
      index % kVersions == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  if (Iwarp(device)) entry->gid_type = IBV_GID_TYPE_IB;
  return true;
}

ibv_gid GidOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return MapV4(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr);
  }
  ibv_gid gid = {};
  if (address.ss_family == AF_INET6) {
    std::memcpy(gid.raw,
                &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr,
                sizeof(gid.raw));
  }
  return gid;
}

uint8_t GidIndexOf(const Device& device, const sockaddr_storage& address) {
  if (Iwarp(device)) return 0;
  const ibv_gid wanted = GidOf(address);
  const ibv_gid local = LinkLocal(device);
  const bool is_local = std::memcmp(&wanted, &local, sizeof(wanted)) == 0;
  return is_local ? 1 : 3;
}

}  // namespace mig::soft
