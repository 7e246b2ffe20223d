// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Reads an input as a script, front to back, so that what is appended to it or
// spliced into it changes nothing before.
#ifndef TESTS_FUZZ_SCRIPT_H_
#define TESTS_FUZZ_SCRIPT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mig::fuzz {

class Script {
 public:
  Script(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool ended() const { return rest_.empty(); }
  // Zeros behind the end.
  template <typename T>
  T Take() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T) && !rest_.empty(); ++i) {
      value = static_cast<T>(value | uint64_t{rest_.front()} << (8 * i));
      rest_ = rest_.subspan(1);
    }
    return value;
  }
  uint8_t Byte() { return Take<uint8_t>(); }
  size_t Below(size_t end) { return Byte() % end; }
  // As many as a byte says, and as there are.
  std::string Bytes() {
    const size_t told = Byte();
    const size_t count = std::min(told, rest_.size());
    std::string bytes(rest_.begin(), rest_.begin() + static_cast<long>(count));
    rest_ = rest_.subspan(count);
    return bytes;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace mig::fuzz

#endif  // TESTS_FUZZ_SCRIPT_H_
