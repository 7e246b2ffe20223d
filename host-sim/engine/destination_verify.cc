// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The part of DestinationEngine that compares what arrived with what was sent.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/destination_engine.h"
#include "report/console.h"

namespace mig::sim {
namespace {

constexpr uint64_t kProofLimitNs = 600'000'000'000;
// Enough to see a pattern; a broken transport differs everywhere.
constexpr size_t kMaxLocated = 4;

absl::string_view AsText(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// The guest was taken and does not run yet, so that its memory can be compared
// with the source's, which stands still as well. Never fails the migration.
void DestinationEngine::Verify() {
  ResultMessage& result = report_.result;
  if (!options_.verify || !report_.guest->proof_follows) {
    result.text = "not asked for";
    return;
  }
  const uint64_t start = MonotonicNs();
  Enter(Phase::kVerify);
  DigestTable ours;
  absl::Status status = driver_.RunWhilePumping([this, &ours] {
    ours = ComputeDigests(*made_.memory);
    return absl::OkStatus();
  });
  if (status.ok()) status = Compare(ours);
  if (!status.ok() && result.text.empty()) {
    result.text = std::string(status.message());
  }
  result.verify_ns = MonotonicNs() - start;
}

absl::StatusOr<StateSections> DestinationEngine::AwaitProof() {
  absl::Status status =
      driver_.PumpUntil("waiting for the source's digests", kProofLimitNs,
                        [this] { return proof_.complete(); });
  if (!status.ok()) return status;
  return ParseState(proof_.whole());
}

// OK or a failure to find out; the verdict goes into the result.
absl::Status DestinationEngine::Compare(const DigestTable& ours) {
  ResultMessage& result = report_.result;
  absl::StatusOr<StateSections> proof = AwaitProof();
  if (!proof.ok()) return proof.status();
  absl::StatusOr<DigestTable> theirs =
      ParseDigests(AsText((*proof)[kSectionDigests]));
  if (!theirs.ok()) return theirs.status();
  absl::StatusOr<std::vector<Region>> differ = CompareDigests(ours, *theirs);
  if (!differ.ok()) return differ.status();
  if (!differ->empty()) {
    result.outcome = VerifyOutcome::kMismatch;
    absl::Status status = LocateMismatches(*differ, &result.text);
    if (!status.ok()) absl::StrAppend(&result.text, "; ", status.message());
    return absl::OkStatus();
  }
  // Memory is as it was there; now what the guest itself knows about it.
  absl::Status status = driver_.RunWhilePumping(
      [&] { return made_.guest->Check((*proof)[kSectionExpected]); });
  result.outcome =
      status.ok() ? VerifyOutcome::kVerified : VerifyOutcome::kMismatch;
  result.text = std::string(status.message());
  return absl::OkStatus();
}

absl::Status DestinationEngine::LocateMismatches(
    const std::vector<Region>& regions, std::string* text) {
  *text = absl::StrCat(regions.size(), " regions of ", kRegionSize,
                       " bytes differ");
  for (size_t i = 0; i < std::min(regions.size(), kMaxLocated); ++i) {
    const Region& region = regions[i];
    const PageQueryMessage query = {region.block, region.offset, region.length};
    pages_.reset();
    absl::Status status = driver_.Send(kPageQueryMessage, Encode(query));
    if (!status.ok()) return status;
    status = driver_.PumpUntil("asking for the hashes of pages", kProofLimitNs,
                               [this] { return pages_.has_value(); });
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<uint64_t>> ours =
        PageHashes(*made_.memory, region);
    if (!ours.ok()) return ours.status();
    absl::StrAppend(text, "; ",
                    DescribePageMismatches(region, *ours, pages_->hashes));
  }
  return absl::OkStatus();
}

}  // namespace mig::sim
