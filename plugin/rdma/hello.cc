// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/hello.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/peer_error.h"
#include "common/wire_bytes.h"

namespace mig::rdma {
namespace {

constexpr HelloLayout kHelloLayout = {
    {'M', 'I', 'G', 'R', 'D', 'M', '\r', '\n'}, 124, kHelloFixedSize};

// What no right peer of version 1 offers.
absl::Status CheckChunkSize(const Hello& theirs) {
  if (theirs.chunk_size >= kLeastChunkSize &&
      theirs.chunk_size <= kMostChunkSize &&
      std::has_single_bit(theirs.chunk_size)) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_PEER_MISMATCH,
      absl::StrCat("the peer offers chunks of ", theirs.chunk_size,
                   " bytes: version 1 asks for a power of two from 1 MiB to "
                   "1 GiB"));
}

}  // namespace

std::vector<uint8_t> EncodeHello(const Hello& hello) {
  std::vector<uint8_t> bytes = EncodeCommonHello(hello, kHelloLayout);
  Put<uint64_t>(bytes.data() + 104, hello.chunk_size);
  Put<uint32_t>(bytes.data() + 120, hello.data_qps);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t> payload) {
  Hello hello;
  MIG_RETURN_IF_ERROR(DecodeCommonHello(payload, kHelloLayout, &hello));
  hello.chunk_size = Get<uint64_t>(payload.data() + 104);
  hello.data_qps = Get<uint32_t>(payload.data() + 120);
  return hello;
}

absl::StatusOr<Agreement> Negotiate(const Hello& ours, const Hello& theirs,
                                    bool* other_vm) {
  MIG_RETURN_IF_ERROR(CheckIdentity(ours, theirs, other_vm));
  if (ours.data_qps != theirs.data_qps) {
    return PeerDiffers("data-qps", absl::StrCat(ours.data_qps),
                       absl::StrCat(theirs.data_qps));
  }
  const auto common = AgreeOnCommon(ours, theirs);
  if (!common.ok()) return common.status();
  MIG_RETURN_IF_ERROR(CheckChunkSize(theirs));
  Agreement agreement{*common};
  agreement.chunk_size = std::min(ours.chunk_size, theirs.chunk_size);
  agreement.data_qps = ours.data_qps;
  return agreement;
}

}  // namespace mig::rdma
