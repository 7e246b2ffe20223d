// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_MEMORY_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mig_transport.h"

namespace mig::model {

struct BlockShape {
  uint64_t pages = 0;
  bool zeroed = false;  // MIG_BLOCK_ZEROED; else full of rubbish at first
};

struct GuestShape {
  uint64_t page_size = 4096;  // at most the system's own
  std::vector<BlockShape> blocks;

  uint64_t Pages() const;
};

// One side's copy of the guest's memory. Pages are numbered over all blocks.
// Each block lies between pages that nobody may touch, so that a byte written
// outside of one ends the process.
class GuestMemory {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<GuestMemory>> Create(
      const GuestShape& shape);
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory();

  const GuestShape& shape() const { return shape_; }
  std::span<uint64_t> Page(uint64_t page) const;
  // Where a page lies, as a range of its block.
  mig_range RangeOf(uint64_t page) const;
  uint64_t FirstPage(size_t block) const { return blocks_[block].first; }
  // What describes block `index` to a plugin: its id is kFirstId + index.
  mig_block Describe(size_t index) const;
  size_t blocks() const { return blocks_.size(); }

  static constexpr uint32_t kFirstId = 1;

 private:
  struct Area {
    unsigned char* at = nullptr;
    uint64_t first = 0;  // page
    uint64_t bytes = 0;
    uint64_t mapped = 0;
    std::string name;
  };
  explicit GuestMemory(GuestShape shape) : shape_(std::move(shape)) {}
  const Area& AreaOf(uint64_t page) const;

  const GuestShape shape_;
  std::vector<Area> blocks_;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_MEMORY_H_
