// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// How a fuzz target says that an input broke something: libFuzzer keeps the
// input of a process that aborts.
#ifndef TESTS_FUZZ_CHECK_H_
#define TESTS_FUZZ_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

// Not assert, which a build type can take away.
#define FUZZ_CHECK(condition)                                                \
  do {                                                                       \
    if (!(condition)) {                                                      \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, \
                   #condition);                                              \
      std::abort();                                                          \
    }                                                                        \
  } while (false)

namespace mig::fuzz {

// Gives an input to the one of a target's parsers that its first byte says;
// what is left is the parser's.
template <typename Parsers>
void Dispatch(const Parsers& parsers, const uint8_t* data, size_t size) {
  const size_t choice = size == 0 ? 0 : data[0] % parsers.size();
  const size_t taken = size == 0 ? 0 : 1;
  parsers[choice](std::span<const uint8_t>(data + taken, size - taken));
}

}  // namespace mig::fuzz

#endif  // TESTS_FUZZ_CHECK_H_
