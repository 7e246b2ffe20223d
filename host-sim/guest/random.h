// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_RANDOM_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_RANDOM_H_

#include <bit>
#include <cstdint>

namespace mig::sim {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// A bijection of 64-bit values that spreads every bit over all (the finaliser
// of SplitMix64).
constexpr uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// SplitMix64. Plain data, so that it can live in guest memory and go on at the
// destination where it was.
struct Random {
  uint64_t state = 0;

  uint64_t Next() { return Mix(state += kGolden); }

  // Uniform in [0, bound); `bound` is not 0. By multiplication, whose bias is
  // below 2^-30 for anything counted in pages.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{Next()} * bound) >> 64);
  }
};

// Where a pseudo-random permutation of [0, size), chosen by `key`, takes
// `index`. `size` is not 0 and below 2^62. A Feistel network over the next
// power of four, walked until it lands inside.
constexpr uint64_t Permute(uint64_t index, uint64_t size, uint64_t key) {
  const int half = (std::bit_width(size - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t left = index >> half;
      const uint64_t right = index & mask;
      index = (right << half) |
              (left ^ (Mix(right ^ key ^ round * kGolden) & mask));
    }
  } while (index >= size);
  return index;
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_RANDOM_H_
