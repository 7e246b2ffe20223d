// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The second half of SourceEngine: from stopping the guest to letting it go.
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "engine/source_engine.h"
#include "guest/digest.h"
#include "report/console.h"

namespace mig::sim {
namespace {

// More than any region has pages of; a peer that asks for more is refused.
constexpr size_t kMaxQueries = 64;
constexpr uint64_t kPumpNs = 50'000'000;
constexpr uint64_t kSaveLimitNs = 60'000'000'000;
constexpr uint64_t kReportLimitNs = 600'000'000'000;

ByteSpan AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

absl::Status SourceEngine::Switchover() {
  report_.times.stop_asked = MonotonicNs();
  absl::Status status = guest_.Stop();
  if (!status.ok()) return WithContext(status, "stopping the guest");
  report_.times.stopped = MonotonicNs();
  Enter(Phase::kStopped);
  // The pages left over from the last fetch, and those dirtied since.
  for (const GuestBlock& block : memory_.blocks()) {
    absl::StatusOr<uint64_t> found =
        tracker_.FetchAndClear(block, &pending_.blocks[block.id]);
    if (!found.ok()) return found.status();
  }
  absl::StatusOr<RoundReport> last = SendRound(/*final=*/true);
  if (!last.ok()) return last.status();
  report_.rounds.push_back(*last);
  report_.times.last_round_done = MonotonicNs();
  status = SendState();
  if (status.ok()) status = OfferGuest();
  if (!status.ok()) return status;
  // The migration is done, whatever becomes of the comparison.
  report_.digest_status = ServeVerification();
  return absl::OkStatus();
}

absl::Status SourceEngine::SendPieces(
    MessageType type, ByteSpan whole,
    const std::function<void()>& after_first) {
  const uint64_t piece = PieceBytes(report_.caps.max_message);
  for (uint64_t offset = 0; offset < whole.size(); offset += piece) {
    absl::Status status = driver_.Send(
        type, EncodePiece(whole, offset, report_.caps.max_message));
    if (!status.ok()) return status;
    if (offset == 0 && after_first) after_first();
  }
  return absl::OkStatus();
}

absl::StatusOr<Bytes> SourceEngine::SaveState() {
  // One long call without progress: the destination must not take this side
  // for dead. If the link is broken, the next progress says so.
  driver_.SayBusy(kSaveLimitNs);
  absl::StatusOr<StateSections> sections = guest_.SaveState();
  if (!sections.ok()) {
    return WithContext(sections.status(), "saving the device state");
  }
  if (!filler_.empty()) (*sections)[kSectionFiller] = std::move(filler_);
  Bytes state = EncodeState(*sections);
  driver_.SayBusy(0);
  return state;
}

absl::Status SourceEngine::SendState() {
  absl::StatusOr<Bytes> saved = SaveState();
  if (!saved.ok()) return saved.status();
  const Bytes& state = *saved;
  report_.state_bytes = state.size();
  return SendPieces(kStateMessage, state, [this] { Enter(Phase::kState); });
}

absl::Status SourceEngine::OfferGuest() {
  // From here on only what the session says decides whether the guest may run
  // here again (rule 12); an error from the call means that nothing left.
  absl::Status status = driver_.session().Handover();
  if (!status.ok()) return driver_.Explain(status);
  report_.times.offered = MonotonicNs();
  offered_ = true;
  Enter(Phase::kHandover);
  const SessionState& state = driver_.state();
  bool closing = false;
  while (!state.offer_decided() && !state.closed) {
    status = driver_.Pump(kPumpNs);
    if (status.ok() || closing || state.offer_decided()) continue;
    // Something is wrong on this side: withdraw, and learn what came of it.
    closing = true;
    driver_.session().Close();
  }
  if (state.committed) {
    report_.times.committed = state.committed_ns;
    report_.end = SourceEnd::kMigrated;
    return absl::OkStatus();
  }
  if (!state.offer_decided()) {
    return absl::InternalError(
        "the plugin closed the session and left the offer undecided");
  }
  if (!state.refused) return state.error;
  if (closing) return status;
  status = driver_.session().Error();
  return status.ok() ? absl::UnavailableError(
                           "the destination has refused the "
                           "guest: its messages say why")
                     : status;
}

absl::Status SourceEngine::AnswerPageQueries() {
  if (queries_.size() > kMaxQueries) {
    return absl::InvalidArgumentError(
        absl::StrCat("the destination asks for the pages of ", queries_.size(),
                     " regions at once: run the same mig-host-sim there"));
  }
  for (const PageQueryMessage& query : std::exchange(queries_, {})) {
    absl::StatusOr<std::vector<uint64_t>> hashes =
        PageHashes(memory_, {query.block, query.offset, query.length});
    if (!hashes.ok()) return hashes.status();
    absl::Status status =
        driver_.Send(kPagesMessage, Encode(PagesMessage{query, *hashes}));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The guest is the destination's; its memory here must not change until the
// destination has compared it. None of this is downtime.
absl::Status SourceEngine::ServeVerification() {
  Enter(Phase::kVerify);
  absl::Status status;
  if (options_.verify) {
    Bytes proof;
    status = driver_.RunWhilePumping([this, &proof] {
      const std::string table = SerializeDigests(ComputeDigests(memory_));
      const ByteSpan digests = AsBytes(table);
      proof =
          EncodeState({{kSectionDigests, Bytes(digests.begin(), digests.end())},
                       {kSectionExpected, guest_.SaveExpected()}});
      return absl::OkStatus();
    });
    if (status.ok()) status = SendPieces(kProofMessage, proof, nullptr);
  }
  while (status.ok() && !report_.result.has_value()) {
    status = driver_.PumpUntil(
        "waiting for the destination's report", kReportLimitNs,
        [this] { return report_.result.has_value() || !queries_.empty(); });
    if (status.ok()) status = AnswerPageQueries();
  }
  // What follows the report, such as the peer's closing, is no failure.
  return report_.result.has_value() ? absl::OkStatus() : status;
}

void SourceEngine::Settle(const absl::Status& status) {
  report_.status = status;
  if (tracking_) {
    absl::Status stopped = tracker_.Stop();
    if (!stopped.ok()) Note(std::string(stopped.message()));
  }
  if (report_.end == SourceEnd::kMigrated) {
    Enter(Phase::kDone);
    return;
  }
  if (offered_ && !driver_.state().certainly_here()) {
    report_.end = SourceEnd::kInDoubt;
    return;
  }
  const bool interrupted = interrupted_ != nullptr && *interrupted_;
  if (interrupted) report_.end = SourceEnd::kGaveUp;
  // Tell the peer why before the session goes.
  if (report_.end == SourceEnd::kGaveUp) driver_.session().Cancel();
  guest_.SetThrottle(0);
  if (guest_.running()) return;
  absl::Status resumed = guest_.Run();
  if (!resumed.ok()) {
    Note(absl::StrCat("the guest cannot be resumed: ", resumed.message()));
  }
}

}  // namespace mig::sim
