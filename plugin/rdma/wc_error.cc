// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/wc_error.h"

#include "absl/strings/str_format.h"
#include "common/error.h"

namespace mig::rdma {
namespace {

struct Meaning {
  int32_t code;
  const char* advice;
};

Meaning MeaningOf(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return {MIG_E_PEER_TIMEOUT,
              "the peer did not answer within the retries: see that it runs "
              "and that the network path is up"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {MIG_E_PEER_TIMEOUT,
              "the peer had no receive posted within the retries: see that it "
              "runs"};
    case IBV_WC_WR_FLUSH_ERR:
      return {MIG_E_PEER_LOST,
              "the connection is down: the peer, the link or this side ended "
              "it before"};
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_OP_ERR:
      return {MIG_E_PEER_LOST,
              "the peer's device could not carry it out: see the peer's log"};
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return {MIG_E_PEER_PROTOCOL,
              "the peer's device refused the access: a key or address that "
              "the peer gave does not hold there"};
    case IBV_WC_LOC_PROT_ERR:
      return {MIG_E_GUEST_MEMORY,
              "this side's memory can't be read or written: its registration "
              "does not cover it, or the pages are gone"};
    default:
      return {MIG_E_DEVICE, "see the kernel's log for the device"};
  }
}

}  // namespace

absl::Status CompletionError(verbs::Verbs* verbs, const ibv_wc& wc,
                             absl::string_view what) {
  const Meaning meaning = MeaningOf(wc.status);
  const char* const text = verbs->WcStatusText(wc.status);
  return MakeError(
      meaning.code,
      absl::StrFormat("%s failed with status %d (%s), vendor code %#x: %s",
                      what, static_cast<int>(wc.status),
                      text != nullptr ? text : "unknown", wc.vendor_err,
                      meaning.advice));
}

}  // namespace mig::rdma
