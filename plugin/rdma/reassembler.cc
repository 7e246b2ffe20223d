// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/reassembler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {

absl::StatusOr<bool> Reassembler::Add(const FrameHeader& header,
                                      std::span<const uint8_t> part,
                                      std::vector<uint8_t>* whole) {
  const size_t total = LongTotal(header.argument);
  if (!in_frame_) {
    in_frame_ = true;
    type_ = header.type;
    argument_ = header.argument;
    bytes_ = std::vector<uint8_t>();
    bytes_.reserve(total);
  }
  const size_t due = std::min(total - bytes_.size(), kMaxFragment);
  if (header.type != type_ || header.argument != argument_ ||
      part.size() != due) {
    return MakeError(MIG_E_PEER_PROTOCOL,
                     absl::StrCat("the peer sent ", part.size(), " bytes of a ",
                                  FrameName(header.type), " frame where ", due,
                                  " of a ", FrameName(type_),
                                  " frame were due: it is faulty or hostile"));
  }
  bytes_.insert(bytes_.end(), part.begin(), part.end());
  if (bytes_.size() < total) return false;
  in_frame_ = false;
  *whole = std::move(bytes_);
  bytes_ = std::vector<uint8_t>();
  return true;
}

}  // namespace mig::rdma
