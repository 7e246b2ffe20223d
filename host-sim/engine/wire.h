// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_WIRE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_WIRE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mig::sim {

// Puts integers in network order and counted strings one after another.
class WireWriter {
 public:
  template <std::unsigned_integral T>
  void Put(T value) {
    for (size_t i = sizeof(T); i-- > 0;) {
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }
  void PutBytes(absl::Span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // At most 65535 bytes; what is beyond is left out.
  void PutString(absl::string_view text) {
    text = text.substr(0, UINT16_MAX);
    Put(static_cast<uint16_t>(text.size()));
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    PutBytes({data, text.size()});
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Takes them off again. What is short reads as zero or empty and is remembered,
// so a parser asks once, at its end, whether all was there and nothing is left.
class WireReader {
 public:
  explicit WireReader(absl::Span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T Get() {
    T value = 0;
    for (const std::byte byte : GetBytes(sizeof(T))) {
      value = static_cast<T>((value << 8) | static_cast<T>(byte));
    }
    return value;
  }
  // Points into the bytes that the reader was given.
  absl::Span<const std::byte> GetBytes(uint64_t count) {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const absl::Span<const std::byte> taken = rest_.subspan(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string GetString() {
    const absl::Span<const std::byte> bytes = GetBytes(Get<uint16_t>());
    return std::string(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
  }
  // A peer's text reaches a person's terminal and log: control characters in
  // it become '?'.
  std::string GetPrintable() {
    std::string text = GetString();
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    }
    return text;
  }

  size_t remaining() const { return rest_.size(); }
  // Whether nothing was short so far.
  bool good() const { return good_; }
  // Whether nothing was short and nothing is left.
  bool complete() const { return good_ && rest_.empty(); }

 private:
  absl::Span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_WIRE_H_
