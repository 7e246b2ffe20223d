// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/memlock.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {
namespace {

// The start of a small file, "" if it can't be read.
std::string ReadSmallFile(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 8192> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  close(fd);
  return got > 0 ? std::string(buffer.data(), static_cast<size_t>(got)) : "";
}

// The kernel asks for the capability over the machine, not over a container's
// user namespace: only where the whole range of ids is mapped, is there none.
bool InFirstUserNamespace() {
  const std::string map = ReadSmallFile("/proc/self/uid_map");
  return map.find("4294967295") != std::string::npos;
}

bool MayLockAnything() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data = {};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective & (1u << CAP_IPC_LOCK)) != 0 &&
         InFirstUserNamespace();
}

// What drivers have pinned; VmLck, of mlock, counts apart.
uint64_t PinnedNow() {
  const std::string status = ReadSmallFile("/proc/self/status");
  constexpr char kKey[] = "\nVmPin:";
  const size_t at = status.find(kKey);
  if (at == std::string::npos) return 0;
  size_t digits = at + std::strlen(kKey);
  while (digits < status.size() &&
         (status[digits] == ' ' || status[digits] == '\t')) {
    ++digits;
  }
  uint64_t kib = 0;
  std::from_chars(status.data() + digits, status.data() + status.size(), kib);
  return kib * 1024;
}

std::string Remedy() {
  return "raise the limit (ulimit -l, LimitMEMLOCK= of the service, prlimit) "
         "or give CAP_IPC_LOCK, or choose registration=dynamic, which pins "
         "only what is sent";
}

}  // namespace

Memlock ReadMemlock() {
  Memlock memlock;
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return memlock;
  memlock.limit = limit.rlim_cur;
  memlock.unlimited = limit.rlim_cur == RLIM_INFINITY || MayLockAnything();
  memlock.pinned = PinnedNow();
  return memlock;
}

uint64_t PinnedBytes(uint64_t address, uint64_t length) {
  if (length == 0) return 0;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (address % page + length + page - 1) / page * page;
}

absl::Status CheckMemlock(const Memlock& memlock, uint64_t need) {
  const uint64_t left =
      memlock.limit > memlock.pinned ? memlock.limit - memlock.pinned : 0;
  if (memlock.unlimited || need <= left) return absl::OkStatus();
  return MakeError(MIG_E_LIMIT,
                   absl::StrCat("pinning the guest's memory needs ", need,
                                " bytes of locked memory, and the limit is ",
                                memlock.limit, " bytes, of which ",
                                memlock.pinned, " are used: ", Remedy()),
                   ENOMEM);
}

std::string MemlockText(const Memlock& memlock) {
  if (memlock.unlimited && memlock.limit != RLIM_INFINITY) {
    return absl::StrCat("the limit of locked memory is ", memlock.limit,
                        " bytes, from which CAP_IPC_LOCK frees with most "
                        "devices but not with siw: raise it (ulimit -l, "
                        "LimitMEMLOCK= of the service, prlimit); else the "
                        "machine or the device is out of memory");
  }
  if (memlock.unlimited) {
    return absl::StrCat("locked memory is not limited, ", memlock.pinned,
                        " bytes are pinned: the machine or the device is out "
                        "of memory; use a larger chunk-size or free some");
  }
  return absl::StrCat("the limit of locked memory is ", memlock.limit,
                      " bytes, of which ", memlock.pinned,
                      " are used: ", Remedy());
}

}  // namespace mig::rdma
