// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_WIRE_BYTES_H_
#define PLUGIN_COMMON_WIRE_BYTES_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "mig_transport.h"

namespace mig {

// Unsigned integers of fixed width in network byte order, at any alignment.
template <std::unsigned_integral T>
void Put(uint8_t* to, T value) {
  for (size_t i = sizeof(T); i-- > 0;) {
    to[i] = static_cast<uint8_t>(value);
    if constexpr (sizeof(T) > 1) value >>= 8;
  }
}

template <std::unsigned_integral T>
T Get(const uint8_t* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(static_cast<uint64_t>(value) << 8 | from[i]);
  }
  return value;
}

// "01234567-89ab-..." for messages.
std::string FormatUuid(std::span<const uint8_t, MIG_UUID_SIZE> uuid);

}  // namespace mig

#endif  // PLUGIN_COMMON_WIRE_BYTES_H_
