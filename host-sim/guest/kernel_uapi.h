// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_KERNEL_UAPI_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_KERNEL_UAPI_H_

#include <sys/ioctl.h>

#include <cstdint>

namespace mig::sim {

// Kernel interface that is newer than Debian 12's headers (Linux 6.1). Names
// of our own, so that newer headers do not clash.

// userfaultfd features (<linux/userfaultfd.h>).
inline constexpr uint64_t kUffdWriteProtect = uint64_t{1} << 0;
inline constexpr uint64_t kUffdWriteProtectShmem = uint64_t{1} << 12;
inline constexpr uint64_t kUffdWpUnpopulated = uint64_t{1} << 13;  // 6.4
inline constexpr uint64_t kUffdWpAsync = uint64_t{1} << 15;        // 6.7

// PAGEMAP_SCAN (<linux/fs.h>, 6.7): walks [start, end) of an address space and
// returns runs of pages whose categories match.
struct PageRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};

struct PageScanArgs {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;  // out: where the walk stopped
  uint64_t vec;
  uint64_t vec_len;
  uint64_t max_pages;
  uint64_t category_inverted;
  uint64_t category_mask;
  uint64_t category_anyof_mask;
  uint64_t return_mask;
};
static_assert(sizeof(PageRegion) == 24 && sizeof(PageScanArgs) == 96);

inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PageScanArgs);
inline constexpr uint64_t kScanWriteProtectMatching = uint64_t{1} << 0;
inline constexpr uint64_t kScanCheckWpAsync = uint64_t{1} << 1;
inline constexpr uint64_t kPageIsWritten = uint64_t{1} << 1;

// Bits of an entry of /proc/PID/pagemap.
inline constexpr uint64_t kPagemapSoftDirty = uint64_t{1} << 55;
inline constexpr uint64_t kPagemapUffdWp = uint64_t{1} << 57;
inline constexpr uint64_t kPagemapSwapped = uint64_t{1} << 62;
inline constexpr uint64_t kPagemapPresent = uint64_t{1} << 63;

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_KERNEL_UAPI_H_
