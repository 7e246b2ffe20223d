// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/guest_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/errno_text.h"
#include "guest/parallel.h"
#include "guest/parse.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace mig::sim {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kPrefaultSlice = uint64_t{64} << 20;
constexpr uint64_t kMaxLength = uint64_t{1} << 46;

// Closes at the end of its scope unless released.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string Named(const BlockSpec& spec) {
  return absl::StrFormat("block '%s'", spec.name);
}

absl::StatusOr<uint64_t> BlockLength(const BlockSpec& spec,
                                     uint64_t file_size) {
  const uint64_t unit =
      spec.backing == Backing::kHugetlb ? kHugePage : kPageSize;
  uint64_t length = 0;
  if (spec.size.has_value()) {
    length = *spec.size;
  } else {
    length = (file_size + unit - 1) / unit * unit;
  }
  if (length == 0 || length > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: size %u is out of range: give %u to %s bytes",
                        Named(spec), length, unit, FormatSize(kMaxLength)));
  }
  if (length % unit != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: size %u is no multiple of the page, %u bytes: give %u or %u",
        Named(spec), length, unit, length / unit * unit,
        (length / unit + 1) * unit));
  }
  return length;
}

absl::StatusOr<int> OpenImage(const BlockSpec& spec, uint64_t* size) {
  const int fd = open(spec.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info = {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    const absl::Status status = absl::InvalidArgumentError(absl::StrFormat(
        "%s: cannot open '%s': %s: give a file that can be read", Named(spec),
        spec.path, ErrnoText(errno)));
    if (fd >= 0) close(fd);
    return status;
  }
  ScopedFd file(fd);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: '%s' is not a regular file: give one", Named(spec), spec.path));
  }
  *size = static_cast<uint64_t>(info.st_size);
  if (*size < spec.size.value_or(1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: '%s' has %u bytes where %u are asked for: give a longer file, or "
        "no size",
        Named(spec), spec.path, *size, spec.size.value_or(1)));
  }
  return file.release();
}

absl::Status MapFailure(const BlockSpec& spec, uint64_t length, int error) {
  if (spec.backing == Backing::kHugetlb) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s: no %u huge pages of 2 MiB: %s: raise vm.nr_hugepages by that "
        "many (HugePages_Free in /proc/meminfo shows those left), or use "
        "backing=anon",
        Named(spec), length / kHugePage, ErrnoText(error)));
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: cannot map %u bytes: %s: give a smaller size, or raise the address "
      "space limit (ulimit -v)",
      Named(spec), length, ErrnoText(error)));
}

absl::Status MapBlock(const BlockSpec& spec, GuestBlock* block) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (spec.backing == Backing::kMemfd) {
    ScopedFd created(memfd_create(spec.name.c_str(), MFD_CLOEXEC));
    if (created.get() < 0 ||
        ftruncate(created.get(), static_cast<off_t>(block->length)) != 0) {
      return MapFailure(spec, block->length, errno);
    }
    block->fd = created.release();
    flags = MAP_SHARED | MAP_NORESERVE;
  } else if (spec.backing == Backing::kHugetlb) {
    // Reserved, so that a lack of huge pages shows here and not as SIGBUS.
    flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
    block->host_page_size = kHugePage;
  }
  void* base =
      mmap(nullptr, block->length, PROT_READ | PROT_WRITE, flags, block->fd, 0);
  if (base == MAP_FAILED) {
    absl::Status status = MapFailure(spec, block->length, errno);
    if (block->fd >= 0) close(block->fd);
    block->fd = -1;
    return status;
  }
  block->base = static_cast<std::byte*>(base);
  // Where transparent huge pages are always on, a write would make 2 MiB
  // resident, and soft-dirty would report them all. Without them there is
  // nothing to turn off, so failure does not matter.
  if (spec.backing != Backing::kHugetlb) {
    (void)madvise(base, block->length, MADV_NOHUGEPAGE);
  }
  return absl::OkStatus();
}

// Holes stay holes, so that a sparse image makes a sparse guest.
absl::Status LoadImage(const BlockSpec& spec, int fd, uint64_t file_size,
                       const GuestBlock& block) {
  const uint64_t want = std::min(file_size, block.length);
  uint64_t at = 0;
  while (at < want) {
    const off_t data = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data > 0) at = std::max(at, static_cast<uint64_t>(data));
    if (at >= want) break;
    const size_t piece = std::min<uint64_t>(want - at, uint64_t{4} << 20);
    const ssize_t got =
        pread(fd, block.base + at, piece, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: reading '%s' at %u failed: %s: give a file that can be read "
          "and does not change",
          Named(spec), spec.path, at,
          got == 0 ? std::string("it became shorter") : ErrnoText(errno)));
    }
    at += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

// For kernels without MADV_POPULATE_WRITE (before 5.14). Atomic, since the
// guest may be writing the same byte.
void TouchPages(std::byte* start, uint64_t length, uint64_t page) {
  for (uint64_t at = 0; at < length; at += page) {
    std::atomic_ref<unsigned char>(
        *reinterpret_cast<unsigned char*>(start + at))
        .fetch_or(0, std::memory_order_relaxed);
  }
}

}  // namespace

absl::StatusOr<GuestMemory> GuestMemory::Create(
    const std::vector<BlockSpec>& specs) {
  if (specs.empty()) {
    return absl::InvalidArgumentError(
        "guest memory of 0 blocks: give at least one, as in ram:256M");
  }
  GuestMemory memory;
  for (const BlockSpec& spec : specs) {
    if (memory.FindBlock(spec.name) != nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s is given twice: give each block its own name", Named(spec)));
    }
    absl::Status status = memory.AddBlock(spec);
    if (!status.ok()) return status;
  }
  return memory;
}

absl::Status GuestMemory::AddBlock(const BlockSpec& spec) {
  uint64_t file_size = 0;
  int image_fd = -1;
  if (spec.backing == Backing::kFile) {
    absl::StatusOr<int> opened = OpenImage(spec, &file_size);
    if (!opened.ok()) return opened.status();
    image_fd = *opened;
  }
  const ScopedFd closer(image_fd);
  absl::StatusOr<uint64_t> length = BlockLength(spec, file_size);
  if (!length.ok()) return length.status();
  GuestBlock block;
  block.name = spec.name;
  block.id = static_cast<uint32_t>(blocks_.size());
  block.length = *length;
  block.backing = spec.backing;
  absl::Status status = MapBlock(spec, &block);
  if (!status.ok()) return status;
  blocks_.push_back(block);
  if (image_fd >= 0) return LoadImage(spec, image_fd, file_size, block);
  return absl::OkStatus();
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : blocks_(std::exchange(other.blocks_, {})) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  if (this != &other) {
    Release();
    blocks_ = std::exchange(other.blocks_, {});
  }
  return *this;
}

GuestMemory::~GuestMemory() { Release(); }

void GuestMemory::Release() {
  for (const GuestBlock& block : blocks_) {
    munmap(block.base, block.length);
    if (block.fd >= 0) close(block.fd);
  }
  blocks_.clear();
}

const GuestBlock* GuestMemory::FindBlock(absl::string_view name) const {
  for (const GuestBlock& block : blocks_) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

uint64_t GuestMemory::total_pages() const {
  uint64_t pages = 0;
  for (const GuestBlock& block : blocks_) pages += block.pages();
  return pages;
}

uint64_t GuestMemory::total_bytes() const {
  uint64_t bytes = 0;
  for (const GuestBlock& block : blocks_) bytes += block.length;
  return bytes;
}

absl::Status GuestMemory::Zero() {
  for (const GuestBlock& block : blocks_) {
    const int result =
        block.fd >= 0
            ? fallocate(block.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        static_cast<off_t>(block.length))
            : madvise(block.base, block.length, MADV_DONTNEED);
    if (result != 0) {
      return absl::InternalError(absl::StrFormat(
          "block '%s': cannot give %u bytes back to the kernel: %s", block.name,
          block.length, ErrnoText(errno)));
    }
  }
  return absl::OkStatus();
}

absl::Status GuestMemory::Prefault(unsigned threads) {
  std::atomic<int> failure{0};
  for (const GuestBlock& block : blocks_) {
    const uint64_t slices =
        (block.length + kPrefaultSlice - 1) / kPrefaultSlice;
    ParallelFor(slices, threads, [&](uint64_t slice) {
      std::byte* start = block.base + slice * kPrefaultSlice;
      const uint64_t length =
          std::min(kPrefaultSlice, block.length - slice * kPrefaultSlice);
      if (madvise(start, length, MADV_POPULATE_WRITE) == 0) return;
      if (errno == EINVAL) {
        TouchPages(start, length, block.host_page_size);
      } else {
        failure = errno;
      }
    });
    if (failure != 0) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "block '%s': faulting in %u bytes failed: %s: give the guest less "
          "memory, or the machine more",
          block.name, block.length, ErrnoText(failure)));
    }
  }
  return absl::OkStatus();
}

}  // namespace mig::sim
