// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_GUEST_MEMORY_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_GUEST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::sim {

inline constexpr uint64_t kPageSize = 4096;

enum class Backing { kAnon, kMemfd, kFile, kHugetlb };

// What a block is to be made of.
struct BlockSpec {
  std::string name;
  std::optional<uint64_t> size;  // bytes; only kFile can do without
  Backing backing = Backing::kAnon;
  std::string path;  // of kFile
};

// Reads `NAME:SIZE[,backing=anon|memfd|hugetlb|file:PATH]`. PATH is all that
// is left of the text, and with it `NAME,backing=file:PATH` will do. The name
// is 1 to 64 of [A-Za-z0-9._-]. InvalidArgument in one line. Any thread.
absl::StatusOr<BlockSpec> ParseBlockSpec(absl::string_view text);

// One contiguous piece of guest memory, mapped read-write.
struct GuestBlock {
  std::string name;
  uint32_t id = 0;                      // its index in GuestMemory::blocks()
  std::byte* base = nullptr;            // aligned to host_page_size
  uint64_t length = 0;                  // bytes, a multiple of page_size
  uint64_t page_size = kPageSize;       // of dirty tracking and transfer
  uint64_t host_page_size = kPageSize;  // 2 MiB for kHugetlb
  int fd = -1;                          // of kMemfd; owned by GuestMemory
  Backing backing = Backing::kAnon;

  uint64_t pages() const { return length / page_size; }
};

// The memory of one guest: one or more named blocks. Owns the mappings.
// Moving keeps every address, but not the addresses of the GuestBlocks, nor
// the pointer that workloads and trackers were given: move it before.
//
// Live migration reads guest pages while the guest writes them. That is done
// by the kernel only (sendmsg and the like); code in this process reads guest
// memory when the guest is stopped. A page that was torn is dirty again.
class GuestMemory {
 public:
  // Maps the blocks, zero-filled, or with the file's image. Never touches
  // anonymous pages: a sparse guest costs nothing. InvalidArgument for bad
  // sizes, names or files; ResourceExhausted where the memory is not there.
  static absl::StatusOr<GuestMemory> Create(
      const std::vector<BlockSpec>& specs);

  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory();

  const std::vector<GuestBlock>& blocks() const { return blocks_; }
  // Null if there is no such block. The result lives as long as this object.
  const GuestBlock* FindBlock(absl::string_view name) const;
  uint64_t total_pages() const;
  uint64_t total_bytes() const;

  // Makes every byte zero and gives the pages back to the kernel. It replaces
  // pages, so never while a transport or a dirty tracker holds the memory;
  // the guest is stopped.
  absl::Status Zero();

  // Touches every page without changing it, from `threads` threads (0: one a
  // CPU), so that first touches are not part of what is timed. The guest may
  // run.
  absl::Status Prefault(unsigned threads = 0);

 private:
  GuestMemory() = default;
  absl::Status AddBlock(const BlockSpec& spec);
  void Release();

  std::vector<GuestBlock> blocks_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_GUEST_MEMORY_H_
