// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "absl/strings/str_format.h"
#include "guest/errno_text.h"
#include "guest/kernel_uapi.h"
#include "guest/tracker_kinds.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace mig::sim {
namespace {

constexpr size_t kRegions = 4096;

uint64_t Address(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

absl::Status Failed(absl::string_view call, int error,
                    absl::string_view remedy) {
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %s: %s", call, ErrnoText(error), remedy));
}

// Each page is write-protected with the fault resolved inside the kernel (no
// handler thread, no wake-up); PAGEMAP_SCAN reports pages that lost their
// protection and protects them again under the page table lock, so no write
// falls between the two.
class UffdTracker final : public DirtyTracker {
 public:
  explicit UffdTracker(const GuestMemory* memory) : memory_(memory) {}
  ~UffdTracker() override { Close(); }

  absl::string_view name() const override { return "uffd"; }

  absl::Status Start() override {
    if (uffd_ >= 0) {
      return absl::FailedPreconditionError("dirty tracking is on already");
    }
    absl::Status status = Open();
    for (const GuestBlock& block : memory_->blocks()) {
      if (status.ok()) status = Protect(block);
    }
    if (!status.ok()) Close();
    return status;
  }

  absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& block,
                                         DirtyBitmap* out) override;

  absl::Status Stop() override {
    Close();
    return absl::OkStatus();
  }

 private:
  absl::Status Open();
  absl::Status Protect(const GuestBlock& block);

  // Closing unregisters the memory and lifts the protection.
  void Close() {
    if (uffd_ >= 0) close(uffd_);
    if (pagemap_ >= 0) close(pagemap_);
    uffd_ = pagemap_ = -1;
  }

  const GuestMemory* memory_;
  int uffd_ = -1;
  int pagemap_ = -1;
  std::array<PageRegion, kRegions> regions_{};
};

absl::Status UffdTracker::Open() {
  uffd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  // Enough for us, as nothing is ever handled in user space; and all that an
  // unprivileged process may have where vm.unprivileged_userfaultfd is 0.
  if (uffd_ < 0 && errno == EPERM) {
    uffd_ = static_cast<int>(
        syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  }
  if (uffd_ < 0) {
    return Failed("userfaultfd", errno,
                  "needs a kernel with CONFIG_USERFAULTFD, not forbidden by a "
                  "seccomp filter");
  }
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kUffdWriteProtect | kUffdWriteProtectShmem |
                 kUffdWpUnpopulated | kUffdWpAsync;
  if (ioctl(uffd_, UFFDIO_API, &api) != 0) {
    return Failed("userfaultfd async write-protect", errno,
                  "needs Linux 6.7 or newer");
  }
  pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap_ < 0) {
    return Failed("/proc/self/pagemap", errno, "needs /proc");
  }
  return absl::OkStatus();
}

absl::Status UffdTracker::Protect(const GuestBlock& block) {
  uffdio_register area = {};
  area.range = {Address(block.base), block.length};
  area.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(uffd_, UFFDIO_REGISTER, &area) != 0) {
    return Failed(absl::StrFormat("block '%s': UFFDIO_REGISTER", block.name),
                  errno, "needs memory that userfaultfd can protect");
  }
  uffdio_writeprotect protect = {};
  protect.range = area.range;
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  while (ioctl(uffd_, UFFDIO_WRITEPROTECT, &protect) != 0) {
    if (errno == EAGAIN || errno == EINTR) continue;
    return Failed(
        absl::StrFormat("block '%s': UFFDIO_WRITEPROTECT", block.name), errno,
        "needs memory for page tables");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> UffdTracker::FetchAndClear(const GuestBlock& block,
                                                    DirtyBitmap* out) {
  absl::Status status = CheckFetch(*memory_, block, uffd_ >= 0, out);
  if (!status.ok()) return status;
  const uint64_t base = Address(block.base);
  PageScanArgs scan = {};
  scan.size = sizeof(scan);
  scan.flags = kScanWriteProtectMatching | kScanCheckWpAsync;
  scan.end = base + block.length;
  scan.vec = Address(regions_.data());
  scan.vec_len = regions_.size();
  scan.category_mask = kPageIsWritten;
  scan.return_mask = kPageIsWritten;
  uint64_t pages = 0;
  for (scan.start = base; scan.start < scan.end; scan.start = scan.walk_end) {
    scan.walk_end = scan.start;
    const long found = ioctl(pagemap_, kPagemapScan, &scan);
    if (found < 0 || (found == 0 && scan.walk_end == scan.start)) {
      return Failed(absl::StrFormat("block '%s': PAGEMAP_SCAN", block.name),
                    found < 0 ? errno : EIO, "needs Linux 6.7 or newer");
    }
    for (long i = 0; i < found; ++i) {
      const uint64_t first = (regions_[i].start - base) / block.page_size;
      const uint64_t end = (regions_[i].end - base) / block.page_size;
      out->SetRange(first, end - first);
      pages += end - first;
    }
  }
  return pages;
}

}  // namespace

std::unique_ptr<DirtyTracker> MakeUffdTracker(const GuestMemory* memory) {
  return std::make_unique<UffdTracker>(memory);
}

}  // namespace mig::sim
