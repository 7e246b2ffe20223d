// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A byte stream inside one process that moves as little, as unevenly and as
// seldom as a network may (C28).
#ifndef TESTS_UNIT_TCP_UNKIND_STREAM_H_
#define TESTS_UNIT_TCP_UNKIND_STREAM_H_

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <span>

#include "tcp/stream.h"

namespace mig::tcp {

class UnkindStream final : public ByteStream {
 public:
  // How many bytes the next call moves; 0: EAGAIN.
  using Appetite = std::function<size_t()>;
  explicit UnkindStream(Appetite appetite) : appetite_(std::move(appetite)) {}

  static Appetite Always(size_t bytes) {
    return [bytes] { return bytes; };
  }
  // 1 to `most` bytes, and nothing every third time or so.
  static Appetite Random(uint64_t seed, size_t most) {
    return [random = std::mt19937_64(seed), most]() mutable {
      return random() % 3 == 0 ? 0 : 1 + random() % most;
    };
  }

  ssize_t Read(std::span<const struct iovec> to) override {
    if (bytes.empty() && ended) return 0;
    size_t room = std::min(appetite_(), bytes.size());
    if (room == 0) return -EAGAIN;
    ssize_t moved = 0;
    for (const struct iovec& piece : to) {
      const size_t step = std::min(room, piece.iov_len);
      std::copy_n(bytes.begin(), step, static_cast<uint8_t*>(piece.iov_base));
      bytes.erase(bytes.begin(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(step));
      room -= step;
      moved += static_cast<ssize_t>(step);
    }
    return moved;
  }
  ssize_t Write(std::span<const struct iovec> from) override {
    if (write_error != 0) return -write_error;
    size_t room = appetite_();
    if (room == 0) return -EAGAIN;
    ssize_t moved = 0;
    most_pieces = std::max(most_pieces, from.size());
    for (const struct iovec& piece : from) {
      const size_t step = std::min(room, piece.iov_len);
      const auto* const base = static_cast<const uint8_t*>(piece.iov_base);
      bytes.insert(bytes.end(), base, base + step);
      room -= step;
      moved += static_cast<ssize_t>(step);
    }
    return moved;
  }
  void ShutdownWrite() override { ended = true; }
  int fd() const override { return -1; }

  std::deque<uint8_t> bytes;
  bool ended = false;
  int write_error = 0;
  size_t most_pieces = 0;

 private:
  Appetite appetite_;
};

}  // namespace mig::tcp

#endif  // TESTS_UNIT_TCP_UNKIND_STREAM_H_
