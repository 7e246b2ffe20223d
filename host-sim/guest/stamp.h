// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_STAMP_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_STAMP_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace mig::sim {

// Whose page it is.
struct StampId {
  uint64_t seed = 0;
  uint32_t block = 0;
  uint64_t page = 0;  // of the block, below 2^40
};

// Fills the page with contents that are a function of `id` and `version`, and
// carry both. `version` is not 0: that is the page of zeros.
void WriteStamp(std::byte* page, const StampId& id, uint32_t version);

// The version that the page says it has; 0 for a page that says nothing.
uint32_t StampVersion(const std::byte* page);

// Empty if the page is all zero or all of one version of `id`. Else what is
// wrong with it: torn between versions, another page's, or damaged, and from
// which byte on.
std::string ExplainStamp(const std::byte* page, const StampId& id);

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_STAMP_H_
