// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A small seeded generator: the same seed gives the same run on any machine.
#ifndef PLUGIN_COMMON_RANDOM_H_
#define PLUGIN_COMMON_RANDOM_H_

#include <cstdint>

namespace mig {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {  // splitmix64
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, bound); 0 for a bound of 0. The bias of the remainder is of no
  // matter for bounds this small.
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : Next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_RANDOM_H_
