// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_DRAW_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_DRAW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "guest/random.h"

namespace mig::model {

// Draws from a seed. The order of the calls is part of what a seed means.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_{seed} {}

  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  uint64_t Between(uint64_t least, uint64_t most) {
    return least + random_.Below(most - least + 1);
  }
  // As likely to be small as large, from `least` (over 0) to `most`.
  uint64_t Scaled(uint64_t least, uint64_t most);
  bool Percent(uint32_t percent) { return random_.Below(100) < percent; }
  template <typename T, size_t kCount>
  const T& Of(const std::array<T, kCount>& values) {
    return values[random_.Below(kCount)];
  }
  uint64_t Next() { return random_.Next(); }

 private:
  sim::Random random_;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_DRAW_H_
