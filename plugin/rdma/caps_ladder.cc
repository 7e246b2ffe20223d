// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/caps_ladder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {
namespace {

// Below the header of a control message, inline room is of no use.
constexpr uint32_t kLeastUsefulInline = 16;
// From here on providers' limits lie close together.
constexpr uint32_t kFineInline = 64;
constexpr uint32_t kFineStep = 8;

uint32_t LessInline(uint32_t inline_bytes) {
  if (inline_bytes <= kLeastUsefulInline) return 0;
  if (inline_bytes > kFineInline) {
    return std::max(inline_bytes / 2, kFineInline);
  }
  return (inline_bytes - 1) / kFineStep * kFineStep;
}

uint32_t LessDepth(uint32_t depth, uint32_t least) {
  return std::max(depth / 2, std::min(depth, least));
}

// The next rung below `cap`; false if that was the lowest.
bool StepDown(const QpWants& wants, ibv_qp_cap* cap) {
  if (cap->max_inline_data > 0) {
    cap->max_inline_data = LessInline(cap->max_inline_data);
    return true;
  }
  if (cap->max_send_sge > 1) {
    --cap->max_send_sge;
    return true;
  }
  const ibv_qp_cap above = *cap;
  cap->max_send_wr = LessDepth(cap->max_send_wr, wants.least_send_depth);
  cap->max_recv_wr = LessDepth(cap->max_recv_wr, wants.least_receive_depth);
  return cap->max_send_wr < above.max_send_wr ||
         cap->max_recv_wr < above.max_recv_wr;
}

bool TooLittle(const QpWants& wants, const ibv_qp_cap& granted) {
  const bool receives = wants.most.max_recv_wr > 0;
  return granted.max_send_wr < wants.least_send_depth ||
         granted.max_recv_wr < wants.least_receive_depth ||
         granted.max_send_sge < 1 || (receives && granted.max_recv_sge < 1);
}

// One creation; true if it can be worked with.
bool Try(const QpWants& wants, const ibv_qp_cap& cap, bool extended,
         QpMaker* maker, QpGrant* grant) {
  QpAttempt attempt{.extended = extended, .asked = cap};
  attempt.granted = cap;
  attempt.failure = maker->Make(extended, &attempt.granted);
  if (attempt.failure == 0 && TooLittle(wants, attempt.granted)) {
    attempt.too_little = true;
    maker->Unmake();
  }
  grant->attempts.push_back(attempt);
  if (attempt.failure != 0 || attempt.too_little) return false;
  grant->extended = extended;
  grant->asked = cap;
  grant->granted = attempt.granted;
  return true;
}

std::string FormatCap(const ibv_qp_cap& cap) {
  return absl::StrCat(cap.max_send_wr, "/", cap.max_send_sge, "/",
                      cap.max_inline_data);
}

std::string FormatOutcome(const QpAttempt& attempt) {
  const char* const call = attempt.extended ? "ex" : "plain";
  if (attempt.too_little) {
    return absl::StrCat(call, " gave ", FormatCap(attempt.granted), " with ",
                        attempt.granted.max_recv_wr, " receives");
  }
  if (attempt.failure == 0) {
    return absl::StrCat(call, " gave ", FormatCap(attempt.granted));
  }
  const char* const name = strerrorname_np(attempt.failure);
  return name != nullptr ? absl::StrCat(call, " ", name)
                         : absl::StrCat(call, " errno ", attempt.failure);
}

}  // namespace

absl::Status ClimbDown(const QpWants& wants, QpMaker* maker, QpGrant* grant) {
  *grant = QpGrant();
  ibv_qp_cap cap = wants.most;
  bool has_extended = true;
  do {
    if (has_extended) {
      if (Try(wants, cap, true, maker, grant)) return absl::OkStatus();
      const int failure = grant->attempts.back().failure;
      has_extended = failure != EOPNOTSUPP && failure != ENOSYS;
    }
    if (Try(wants, cap, false, maker, grant)) return absl::OkStatus();
  } while (StepDown(wants, &cap));
  return MakeError(
      MIG_E_DEVICE,
      absl::StrCat("the device makes no queue pair of ", wants.least_send_depth,
                   " sends and ", wants.least_receive_depth,
                   " receives or more: ", FormatAttempts(grant->attempts),
                   "; choose another device, or free queue pairs and locked "
                   "memory"),
      grant->attempts.back().failure);
}

// Attempts on one rung are told together, and rungs of the same outcome too:
// an error's text is short, and all of them have to fit.
std::string FormatAttempts(const std::vector<QpAttempt>& attempts) {
  std::string text;
  std::string last_outcome;
  for (size_t i = 0; i < attempts.size(); ++i) {
    std::string outcome = FormatOutcome(attempts[i]);
    const std::string cap = FormatCap(attempts[i].asked);
    const bool pair = attempts[i].extended && i + 1 < attempts.size() &&
                      !attempts[i + 1].extended;
    if (pair) absl::StrAppend(&outcome, ", ", FormatOutcome(attempts[++i]));
    if (outcome == last_outcome) {
      absl::StrAppend(&text, " ", cap);
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : "; ", outcome, " at ",
                    text.empty() ? "depth/sges/inline " : "", cap);
    last_outcome = outcome;
  }
  return text;
}

}  // namespace mig::rdma
