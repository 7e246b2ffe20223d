// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/round_sender.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "report/console.h"

namespace mig::sim {
namespace {

constexpr size_t kRangesPerWrite = 512;

}  // namespace

absl::Status RoundSender::WriteAll(std::vector<mig_range>* batch) {
  absl::Span<mig_range> rest(batch->data(), batch->size());
  while (!rest.empty()) {
    driver_->ExpectWriteReady();
    auto taken = driver_->session().Write(rest);
    if (!taken.ok()) return driver_->Explain(taken.status());
    const auto [whole, partial] = *taken;
    rest.remove_prefix(whole);
    if (rest.empty()) break;
    rest.front().offset += partial;
    rest.front().length -= partial;
    absl::Status status = driver_->PumpUntil(
        "waiting to write", 0, [this] { return driver_->state().write_ready; });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RoundSender::WaitForBudget() {
  for (;;) {
    const uint64_t now = MonotonicNs();
    if (limiter_.Allowed(now) > 0) return absl::OkStatus();
    absl::Status status =
        driver_->Pump(std::max<uint64_t>(limiter_.WaitNs(now), 100'000));
    if (!status.ok()) return status;
  }
}

absl::Status RoundSender::SendBatches(RangeSource* source, bool final,
                                      const AfterBatch& after_batch) {
  std::vector<mig_range> batch;
  for (;;) {
    uint64_t budget = UINT64_MAX;
    if (!final) {
      absl::Status status = WaitForBudget();
      if (!status.ok()) return status;
      budget = limiter_.Allowed(MonotonicNs());
    }
    const uint64_t before = source->data_bytes();
    source->Next(kRangesPerWrite, budget, &batch);
    if (batch.empty()) return absl::OkStatus();
    absl::Status status = WriteAll(&batch);
    if (status.ok()) status = driver_->session().Flush();
    if (status.ok()) status = driver_->Pump(0);
    if (!status.ok()) return status;
    bytes_taken_ = source->data_bytes();
    if (!final) limiter_.Take(bytes_taken_ - before);
    status = after_batch();
    if (!status.ok()) return status;
  }
}

absl::StatusOr<RoundReport> RoundSender::Send(uint64_t number,
                                              const PageSet& pages, bool final,
                                              ZeroScanner* scanner,
                                              const AfterBatch& after_batch) {
  const uint64_t start = MonotonicNs();
  uint32_t flags = strict_ ? MIG_ROUND_STRICT : 0;
  if (final) flags |= MIG_ROUND_FINAL;
  bytes_taken_ = 0;
  absl::Status status = driver_->session().RoundBegin(number, flags);
  if (!status.ok()) return driver_->Explain(status);
  RangeSource source(*memory_, pages, scanner);
  status = SendBatches(&source, final, after_batch);
  if (!status.ok()) return status;
  status = driver_->session().RoundEnd(number);
  if (!status.ok()) return driver_->Explain(status);
  status = driver_->PumpUntil(
      absl::StrCat("waiting for the end of round ", number), 0,
      [this, number] { return driver_->state().round_done >= number; });
  if (!status.ok()) return status;
  RoundReport report;
  report.number = number;
  report.pages = source.pages();
  report.zero_pages = source.zero_pages();
  report.bytes = source.data_bytes();
  report.duration_ns = MonotonicNs() - start;
  report.final = final;
  return report;
}

}  // namespace mig::sim
