// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/draw.h"

#include <bit>

namespace mig::model {

uint64_t Draw::Scaled(uint64_t least, uint64_t most) {
  const int bits = std::bit_width(most / least);
  const uint64_t scale = least << random_.Below(static_cast<uint64_t>(bits));
  const uint64_t value = scale + random_.Below(scale);
  return value < most ? value : most;
}

}  // namespace mig::model
