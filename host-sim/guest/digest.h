// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_DIGEST_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_DIGEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "guest/guest_memory.h"

namespace mig::sim {

inline constexpr uint64_t kRegionSize = uint64_t{2} << 20;

// XXH3-128 of one region.
struct RegionHash {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const RegionHash&) const = default;
};

struct BlockDigest {
  std::string name;
  uint64_t length = 0;              // bytes
  std::vector<RegionHash> regions;  // of kRegionSize; the last may be shorter
};

// Hashes of all guest memory: what the two sides compare.
struct DigestTable {
  std::vector<BlockDigest> blocks;
};

// A piece of a block, in bytes.
struct Region {
  std::string block;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const Region&) const = default;
};

// Hashes every region of every block from `threads` threads (0: one a CPU).
// The guest is stopped. Pages never written are not touched; for what dirty
// tracking has to do with that, see PresenceMap.
DigestTable ComputeDigests(const GuestMemory& memory, unsigned threads = 0);

// The table as bytes for a control message, and back. Parse refuses whatever
// Serialize cannot have written.
std::string SerializeDigests(const DigestTable& table);
absl::StatusOr<DigestTable> ParseDigests(absl::string_view bytes);

// The regions in which the two differ, in block order. InvalidArgument, naming
// both values, if the blocks differ in number, name, order or length.
absl::StatusOr<std::vector<Region>> CompareDigests(const DigestTable& ours,
                                                   const DigestTable& theirs);

// XXH3-64 of each page of `region`, to be sent to the other side when the
// region's hashes differ. OutOfRange if the region is not in `memory`. The
// guest is stopped.
absl::StatusOr<std::vector<uint64_t>> PageHashes(const GuestMemory& memory,
                                                 const Region& region);

// One line that names block, pages and offsets where the two lists for `region`
// differ (the first few, and how many in all); empty if they do not.
std::string DescribePageMismatches(const Region& region,
                                   const std::vector<uint64_t>& ours,
                                   const std::vector<uint64_t>& theirs);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_DIGEST_H_
