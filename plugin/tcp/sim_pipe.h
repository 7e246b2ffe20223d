// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One direction of a simulated connection: what was written and not yet read,
// and when each part of it arrives.
#ifndef PLUGIN_TCP_SIM_PIPE_H_
#define PLUGIN_TCP_SIM_PIPE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace mig::tcp {

// Not thread-safe. Times never go back.
class SimPipe {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  // `bandwidth` in bytes a second, 0: no limit. `buffer`: how much may be sent
  // and not read.
  SimPipe(uint64_t latency_ns, uint64_t bandwidth, uint64_t buffer)
      : latency_ns_(latency_ns), bandwidth_(bandwidth), buffer_(buffer) {}

  uint64_t latency_ns() const { return latency_ns_; }
  size_t Room() const { return buffer_ - held_; }
  // Sends the first bytes of `from`, at most Room(); how many.
  size_t Put(std::span<const struct iovec> from, size_t most, uint64_t now_ns);
  // Ends the stream after what was sent, with an errno or in order (0). Once
  // only: a later end is no end.
  void End(int error, uint64_t now_ns);
  bool ended() const { return ended_; }

  // When the first byte that was not read arrives.
  uint64_t FirstNs() const {
    return parts_.empty() ? kNever : parts_.front().due_ns;
  }
  // The same, or when the end arrives.
  uint64_t NextNs() const { return parts_.empty() ? end_ns_ : FirstNs(); }
  // The end has arrived, and there is nothing before it.
  bool AtEnd(uint64_t now_ns) const {
    return parts_.empty() && end_ns_ <= now_ns;
  }
  int end_error() const { return end_error_; }
  // Reads what has arrived, at most `most`; how many bytes.
  size_t Take(std::span<const struct iovec> to, size_t most, uint64_t now_ns);

  // What has not left the sender is lost.
  void DropUnsent(uint64_t now_ns);
  // Nobody reads any more.
  void Clear();
  // What has not arrived at `at_ns` never does, and nothing after it.
  void Cut(uint64_t at_ns);
  // What has not arrived at `at_ns` does so at `until_ns` at the earliest.
  void Stall(uint64_t at_ns, uint64_t until_ns);

 private:
  struct Part {
    uint64_t due_ns;
    std::vector<uint8_t> bytes;
  };
  void Append(const uint8_t* from, size_t size, uint64_t now_ns);
  // When what is sent now arrives.
  uint64_t ArrivalNs(size_t size, uint64_t now_ns);

  const uint64_t latency_ns_;
  const uint64_t bandwidth_;
  const uint64_t buffer_;
  std::deque<Part> parts_;  // by time
  size_t front_taken_ = 0;  // of the first part
  size_t held_ = 0;
  uint64_t line_free_ns_ = 0;
  uint64_t stalled_until_ns_ = 0;
  uint64_t end_ns_ = kNever;
  int end_error_ = 0;
  bool ended_ = false;
  bool cut_ = false;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SIM_PIPE_H_
