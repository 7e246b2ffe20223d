// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/source_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "report/console.h"

namespace mig::sim {
namespace {

// Preparing memory (pinning) may take long; a peer that never begins may not.
constexpr uint64_t kExchangeLimitNs = 600'000'000'000;
constexpr uint64_t kCloseLimitNs = 10'000'000'000;

}  // namespace

SourceEngine::SourceEngine(SourceOptions options, Session* session,
                           const std::atomic<bool>* interrupted,
                           const GuestMemory* memory, DirtyTracker* tracker,
                           GuestPort* guest, Hooks hooks)
    : options_(std::move(options)),
      driver_(session, interrupted),
      interrupted_(interrupted),
      memory_(*memory),
      tracker_(*tracker),
      guest_(*guest),
      hooks_(std::move(hooks)),
      sender_(&driver_, memory, options_.max_bandwidth, options_.strict),
      policy_(options_.limits),
      rtt_(&driver_),
      pending_(*memory),
      filler_(options_.device_state_bytes) {
  for (size_t i = 0; i < filler_.size(); ++i) {
    filler_[i] = static_cast<std::byte>(i * 167 >> 3);
  }
  driver_.set_message_handler([this](uint32_t type, ByteSpan data) {
    return HandleMessage(type, data);
  });
  driver_.set_tick([this] { Tick(); });
}

SourceReport SourceEngine::Run() {
  report_.started_ns = MonotonicNs();
  Settle(Migrate());
  report_.finished_ns = MonotonicNs();
  report_.rtt = rtt_.report();
  // Closing takes registrations away.
  report_.counters = driver_.session().Stats();
  driver_.CloseAndWait(kCloseLimitNs);
  return std::move(report_);
}

absl::Status SourceEngine::Migrate() {
  absl::Status status = Connect();
  if (status.ok()) status = AgreeOnMemory();
  if (status.ok()) status = RunRounds();
  if (status.ok()) status = Switchover();
  return status;
}

void SourceEngine::Enter(Phase phase) {
  report_.phase = progress_.phase = phase;
  if (hooks_.on_phase) hooks_.on_phase(phase);
}

void SourceEngine::Tick() {
  progress_.sent_bytes = sender_.bytes_taken();
  if (hooks_.on_progress) hooks_.on_progress(progress_);
}

void SourceEngine::Note(const std::string& text) {
  if (!text.empty() && hooks_.note) hooks_.note(text);
}

absl::Status SourceEngine::Connect() {
  Enter(Phase::kConnect);
  absl::Status status = driver_.session().Connect(options_.uri);
  if (!status.ok()) return status;
  status = driver_.PumpUntil(absl::StrCat("connecting to '", options_.uri, "'"),
                             options_.peer_wait_ns,
                             [this] { return driver_.state().connected; });
  if (!status.ok()) return status;
  absl::StatusOr<CapsReport> caps = driver_.session().Caps();
  if (caps.ok()) report_.caps = *std::move(caps);
  if (report_.caps.max_message == 0) {
    report_.caps.max_message = MIG_MIN_MESSAGE_MAX;
  }
  return absl::OkStatus();
}

absl::Status SourceEngine::AgreeOnMemory() {
  Enter(Phase::kExchange);
  GuestMessage message;
  message.proof_follows = options_.verify;
  message.seed = options_.seed;
  message.workload = options_.workload;
  message.machine = MachineId();
  for (const GuestBlock& block : memory_.blocks()) {
    message.blocks.push_back({block.name, block.length, block.page_size,
                              static_cast<uint32_t>(block.backing)});
  }
  absl::Status status = driver_.Send(kGuestMessage, Encode(message));
  for (const GuestBlock& block : memory_.blocks()) {
    if (!status.ok()) return status;
    mig_block added = {};
    added.size = sizeof added;
    added.id = block.id;
    added.name = block.name.c_str();
    added.address = block.base;
    added.length = block.length;
    added.page_size = block.page_size;
    added.fd = block.fd;
    added.flags = block.fd >= 0 ? MIG_BLOCK_FD : 0;
    status = driver_.session().AddBlock(added);
  }
  if (status.ok()) status = driver_.session().Exchange();
  if (!status.ok()) return driver_.Explain(status);
  status = driver_.PumpUntil("agreeing on memory", kExchangeLimitNs,
                             [this] { return driver_.state().blocks_ready; });
  return status.ok() ? rtt_.MeasureIdle() : status;
}

absl::Status SourceEngine::FetchDirty() {
  for (const GuestBlock& block : memory_.blocks()) {
    DirtyBitmap* const pages = &pending_.blocks[block.id];
    pages->ClearAll();
    absl::StatusOr<uint64_t> found = tracker_.FetchAndClear(block, pages);
    if (!found.ok()) return found.status();
  }
  return absl::OkStatus();
}

absl::Status SourceEngine::AfterBatch() {
  if (!phase_told_) {
    phase_told_ = true;
    Enter(report_.phase);
  }
  // Never with the guest stopped: it would wait for the measurement.
  if (report_.phase == Phase::kRound1 || report_.phase == Phase::kRounds) {
    absl::Status status = rtt_.MayPing();
    if (!status.ok()) return status;
  }
  const ConvergeLimits& limits = options_.limits;
  if (limits.time_ns != 0 && limits.mode != ConvergeMode::kStop &&
      guest_.running() && MonotonicNs() - report_.started_ns > limits.time_ns) {
    report_.end = SourceEnd::kGaveUp;
    return absl::DeadlineExceededError(absl::StrCat(
        "the time limit of ", limits.time_ns / 1'000'000,
        " ms is over: allow more time or rate, or use --converge stop"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RoundReport> SourceEngine::SendRound(bool final) {
  const uint64_t number = report_.rounds.size() + 1;
  if (!final) {
    report_.phase = progress_.phase =
        number == 1 ? Phase::kRound1 : Phase::kRounds;
    rtt_.BeginRound();
  }
  phase_told_ = final;
  progress_.round = number;
  progress_.pending_bytes = pending_.bytes(memory_);
  progress_.round_start_ns = MonotonicNs();
  const bool detect =
      options_.zero_detect == ZeroDetect::kEvery ||
      (options_.zero_detect == ZeroDetect::kFirst && number == 1);
  absl::StatusOr<RoundReport> round =
      sender_.Send(number, pending_, final, detect ? &scanner_ : nullptr,
                   [this] { return AfterBatch(); });
  if (!round.ok()) return round;
  round->throttle_percent = report_.throttle_percent;
  return round;
}

absl::Status SourceEngine::RunRounds() {
  // Tracking begins before the first page is read: what the guest writes from
  // here on is found by the next fetch (C25).
  absl::Status status = tracker_.Start();
  if (!status.ok()) return WithContext(status, "starting dirty tracking");
  tracking_ = true;
  pending_.SetAll();
  for (;;) {
    absl::StatusOr<RoundReport> round = SendRound(/*final=*/false);
    if (!round.ok()) return round.status();
    status = FetchDirty();
    if (!status.ok()) return status;
    round->dirty_pages = pending_.pages();
    round->dirty_bytes = pending_.bytes(memory_);
    report_.rounds.push_back(*round);
    progress_.dirty_bytes_per_second =
        RatePerSecond(round->dirty_bytes, round->duration_ns);
    const Decision decision = policy_.AfterRound(
        {round->bytes, round->duration_ns, round->dirty_bytes},
        MonotonicNs() - report_.started_ns, options_.device_state_bytes);
    Note(decision.word);
    report_.expected_downtime_ns = decision.expected_downtime_ns;
    if (decision.next == NextStep::kGiveUp) {
      report_.end = SourceEnd::kGaveUp;
      return absl::AbortedError(decision.word);
    }
    report_.forced_stop = decision.next == NextStep::kForcedStop;
    if (decision.next != NextStep::kRound) return absl::OkStatus();
    report_.throttle_percent = progress_.throttle_percent =
        decision.throttle_percent;
    guest_.SetThrottle(decision.throttle_percent);
  }
}

absl::Status SourceEngine::HandleMessage(uint32_t type, ByteSpan data) {
  if (type == kPageQueryMessage) {
    absl::StatusOr<PageQueryMessage> query = ParsePageQuery(data);
    if (!query.ok()) return query.status();
    queries_.push_back(*query);
    return absl::OkStatus();
  }
  if (type == kResultMessage) {
    absl::StatusOr<ResultMessage> result = ParseResult(data);
    if (!result.ok()) return result.status();
    report_.result = *std::move(result);
    return absl::OkStatus();
  }
  if (type == kReasonMessage) {
    absl::StatusOr<ReasonMessage> reason = ParseReason(data);
    if (!reason.ok()) return reason.status();
    report_.peer_reason = reason->text;
    return absl::OkStatus();
  }
  if (type == kPongMessage) return rtt_.TakeAnswer(data);
  return absl::InvalidArgumentError(
      absl::StrCat("the destination sent a message of unknown type ", type,
                   ": run the same mig-host-sim on both sides"));
}

}  // namespace mig::sim
