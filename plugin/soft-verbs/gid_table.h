// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The GIDs of a device's port, as the kernel makes them for RoCE: each address
// of the interface twice, for version 1 and for version 2.
#ifndef PLUGIN_SOFT_VERBS_GID_TABLE_H_
#define PLUGIN_SOFT_VERBS_GID_TABLE_H_

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstdint>

#include "soft-verbs/device.h"

namespace mig::soft {

// Indices that the table has: some may be empty.
uint32_t GidCount(const Device& device);
// False: nothing at that index.
bool GidAt(const Device& device, uint32_t index, ibv_gid_entry* entry);
// What an address is as a GID: IPv4 mapped into IPv6.
ibv_gid GidOf(const sockaddr_storage& address);
// The index that connections from this address have.
uint8_t GidIndexOf(const Device& device, const sockaddr_storage& address);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_GID_TABLE_H_
