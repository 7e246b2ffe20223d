// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_REASSEMBLER_H_
#define PLUGIN_RDMA_REASSEMBLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma/wire.h"

namespace mig::rdma {

// Puts long frames together. One is under way at a time; frames that are not
// long may come between its parts. Not thread-safe.
class Reassembler {
 public:
  // Takes one part of a long frame whose header DecodeHeader has passed. True:
  // it was the last, and *whole is the frame's payload. Allocates once a
  // frame, and no more than its type allows. Errors: PROTOCOL for a part of
  // another frame than the one under way, or of another length than is due.
  absl::StatusOr<bool> Add(const FrameHeader& header,
                           std::span<const uint8_t> part,
                           std::vector<uint8_t>* whole);
  bool in_frame() const { return in_frame_; }

 private:
  bool in_frame_ = false;
  FrameType type_ = FrameType::kMessage;
  uint64_t argument_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_REASSEMBLER_H_
