// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// How a fuzz target says that an input broke something: libFuzzer keeps the
// input of a process that aborts.
#ifndef TESTS_FUZZ_CHECK_H_
#define TESTS_FUZZ_CHECK_H_

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

// Which of a target's parsers an input is for: its first byte says it. What is
// left is the parser's.
inline unsigned Choose(unsigned parsers, std::span<const uint8_t>* input) {
  if (input->empty()) return 0;
  const unsigned choice = input->front() % parsers;
  *input = input->subspan(1);
  return choice;
}

}  // namespace mig::fuzz

#endif  // TESTS_FUZZ_CHECK_H_
