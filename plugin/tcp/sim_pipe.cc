// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/sim_pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mig::tcp {
namespace {

// What arrives at once; more would come late with a bandwidth.
constexpr size_t kMostPart = 64u << 10;
constexpr uint64_t kSecondNs = 1'000'000'000;

}  // namespace

uint64_t SimPipe::ArrivalNs(size_t size, uint64_t now_ns) {
  if (cut_) return kNever;
  line_free_ns_ = std::max(line_free_ns_, now_ns);
  if (bandwidth_ > 0) {
    line_free_ns_ += (size * kSecondNs + bandwidth_ - 1) / bandwidth_;
  }
  return std::max(line_free_ns_ + latency_ns_, stalled_until_ns_);
}

void SimPipe::Append(const uint8_t* from, size_t size, uint64_t now_ns) {
  const uint64_t due_ns = ArrivalNs(size, now_ns);
  if (parts_.empty() || parts_.back().due_ns != due_ns ||
      parts_.back().bytes.size() + size > kMostPart) {
    parts_.push_back({due_ns, {}});
  }
  std::vector<uint8_t>& bytes = parts_.back().bytes;
  bytes.insert(bytes.end(), from, from + size);
  held_ += size;
}

size_t SimPipe::Put(std::span<const struct iovec> from, size_t most,
                    uint64_t now_ns) {
  const size_t room = std::min(most, Room());
  size_t done = 0;
  for (const struct iovec& piece : from) {
    const auto* at = static_cast<const uint8_t*>(piece.iov_base);
    size_t left = std::min(piece.iov_len, room - done);
    done += left;
    while (left > 0) {
      const size_t step = std::min(left, kMostPart);
      Append(at, step, now_ns);
      at += step;
      left -= step;
    }
  }
  return done;
}

void SimPipe::End(int error, uint64_t now_ns) {
  if (std::exchange(ended_, true)) return;
  end_error_ = error;
  end_ns_ = ArrivalNs(0, now_ns);
}

size_t SimPipe::Take(std::span<const struct iovec> to, size_t most,
                     uint64_t now_ns) {
  size_t done = 0;
  for (const struct iovec& piece : to) {
    auto* at = static_cast<uint8_t*>(piece.iov_base);
    size_t left = std::min(piece.iov_len, most - done);
    while (left > 0 && FirstNs() <= now_ns) {
      const std::vector<uint8_t>& bytes = parts_.front().bytes;
      const size_t step = std::min(left, bytes.size() - front_taken_);
      std::memcpy(at, bytes.data() + front_taken_, step);
      at += step;
      left -= step;
      done += step;
      front_taken_ += step;
      if (front_taken_ == bytes.size()) {
        parts_.pop_front();
        front_taken_ = 0;
      }
    }
  }
  held_ -= done;
  return done;
}

void SimPipe::DropUnsent(uint64_t now_ns) {
  while (!parts_.empty() && parts_.back().due_ns > now_ns &&
         parts_.back().due_ns - now_ns > latency_ns_) {
    held_ -= parts_.back().bytes.size();
    parts_.pop_back();
  }
  line_free_ns_ = std::min(line_free_ns_, now_ns);
}

void SimPipe::Clear() {
  parts_.clear();
  front_taken_ = 0;
  held_ = 0;
}

void SimPipe::Cut(uint64_t at_ns) {
  cut_ = true;
  for (Part& part : parts_) {
    if (part.due_ns > at_ns) part.due_ns = kNever;
  }
  if (end_ns_ > at_ns) end_ns_ = kNever;
}

void SimPipe::Stall(uint64_t at_ns, uint64_t until_ns) {
  stalled_until_ns_ = std::max(stalled_until_ns_, until_ns);
  for (Part& part : parts_) {
    if (part.due_ns > at_ns) part.due_ns = std::max(part.due_ns, until_ns);
  }
  if (end_ns_ > at_ns) end_ns_ = std::max(end_ns_, until_ns);
}

}  // namespace mig::tcp
