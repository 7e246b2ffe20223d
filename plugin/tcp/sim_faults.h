// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The fault schedule of one side of a simulated network: what goes wrong, and
// when. Text, one entry a line or separated by ';', '#' starts a comment:
//
//   read K ERRNO     the K-th read fails with ERRNO
//   write K ERRNO    the K-th write fails with ERRNO
//   short K N        the K-th write moves N bytes at most
//   reset WHEN       the connection is reset: both ends see ECONNRESET, and
//                    what was not read is lost
//   eof K            the K-th write fails (EPIPE), and the peer reads the end
//   of
//                    the stream after what was sent before
//   cut WHEN         nothing more is delivered, either way, and nobody is told
//   stall WHEN NS    what this side sends arrives NS later at the earliest
//   connect K ERRNO  the K-th connect fails with ERRNO
//   delay K NS       the K-th connect takes NS longer
//   accept K ERRNO   the K-th accept fails with ERRNO
//   listen K ERRNO   the K-th listen fails with ERRNO
//
// K counts from 1, over all connections of the side, the calls that found
// something to do: those that only learn that there is nothing now are not
// counted. WHEN is a write's number, and then of the connection that was
// written to; or "@NS", nanoseconds after the side was made, and then of all
// connections that the side has at that time. Later ones are not hurt.
#ifndef PLUGIN_TCP_SIM_FAULTS_H_
#define PLUGIN_TCP_SIM_FAULTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::tcp {

struct SimFault {
  enum class Kind {
    kRead,
    kWrite,
    kShort,
    kReset,
    kEof,
    kCut,
    kStall,
    kConnect,
    kDelay,
    kAccept,
    kListen
  };
  Kind kind = Kind::kRead;
  uint64_t number = 0;  // K; of a timed one 0
  uint64_t at_ns = 0;   // "@NS"
  bool timed = false;
  int error = 0;
  uint64_t value = 0;  // N or NS
};

// Errors: OPTION, naming the entry and what is allowed there.
absl::StatusOr<std::vector<SimFault>> ParseSimFaults(absl::string_view text);

// Keeps the counts. Not thread-safe.
class SimFaults {
 public:
  using Kind = SimFault::Kind;
  enum class Call : size_t {
    kRead,
    kWrite,
    kConnect,
    kAccept,
    kListen,
    kCount
  };

  explicit SimFaults(std::vector<SimFault> faults)
      : faults_(std::move(faults)) {}

  // Counts a call; its number.
  uint64_t Count(Call call) { return ++counts_[static_cast<size_t>(call)]; }
  // The fault of this kind that hits the call of this number, or null.
  const SimFault* Find(Kind kind, uint64_t number) const;
  // In the order of the text.
  std::span<const SimFault> all() const { return faults_; }

 private:
  const std::vector<SimFault> faults_;
  std::array<uint64_t, static_cast<size_t>(Call::kCount)> counts_ = {};
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SIM_FAULTS_H_
