// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_STATE_STREAM_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_STATE_STREAM_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/control_format.h"

namespace mig::sim {

// Sections of device state and proof; control_format.h has their layout.
enum StateSection : uint32_t {
  kSectionGuest = 1,     // state: what the guest needs beside its memory
  kSectionFiller = 2,    // state: stands for that of more devices
  kSectionDigests = 3,   // proof: the digest table, as guest/digest.h has it
  kSectionExpected = 4,  // proof: what the guest knows about its memory
};
using StateSections = std::map<uint32_t, Bytes>;

// Sections as one piece, and back. What is cut, too long,
// altered, or has a section twice is InvalidArgument. Any thread.
Bytes EncodeState(const StateSections& sections);
absl::StatusOr<StateSections> ParseState(ByteSpan data);

// The STATE or PROOF message of the piece of `whole` from `offset`, of at
// most `max_message` bytes.
Bytes EncodePiece(ByteSpan whole, uint64_t offset, uint64_t max_message);

// How many bytes of the whole a message of `max_message` bytes carries.
uint64_t PieceBytes(uint64_t max_message);

// Puts the pieces together at the destination.
class PieceAssembler {
 public:
  // `what` names the whole in errors; static.
  explicit PieceAssembler(const char* what) : what_(what) {}

  // Takes one message. InvalidArgument if it is malformed, does not continue
  // the last one, or is more than was announced.
  absl::Status Add(ByteSpan data);
  bool complete() const { return started_ && whole_.size() == total_; }
  const Bytes& whole() const { return whole_; }

 private:
  const char* what_;
  bool started_ = false;
  uint64_t total_ = 0;
  Bytes whole_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_STATE_STREAM_H_
