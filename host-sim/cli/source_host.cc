// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/source_host.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/host_setup.h"
#include "engine/mig_status.h"
#include "report/report_table.h"

namespace mig::sim {
namespace {

constexpr char kSide[] = "source";

// What the plugin says before anything is connected; what is wrong with its
// options is told when the migration begins.
bool PinsMemory(const PluginContext& context, const MigrationId& id) {
  const absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(context, MIG_ROLE_SOURCE, id);
  if (!session.ok()) return false;
  const absl::StatusOr<CapsReport> caps = (*session)->Caps();
  return caps.ok() && caps->pins_memory;
}

}  // namespace

absl::Status SourceHost::Prepare() {
  absl::StatusOr<std::unique_ptr<PluginContext>> context =
      OpenPlugin(common_, &console_);
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(settings_.memory);
  if (!memory.ok()) return memory.status();
  memory_ = std::make_unique<GuestMemory>(*std::move(memory));
  absl::StatusOr<std::unique_ptr<SimGuest>> guest =
      SimGuest::Create(settings_.workload, memory_.get(), settings_.seed,
                       RunLog(migration_.run_log, kSide));
  if (!guest.ok()) return guest.status();
  guest_ = *std::move(guest);
  SimGuest* const running = guest_.get();
  absl::StatusOr<TrackerChoice> tracker = MakeDirtyTracker(
      settings_.tracker, memory_.get(),
      [running](const std::function<void()>& call) {
        running->RunPaused(call);
      },
      PinsMemory(*context_, migration_.id));
  if (!tracker.ok()) return tracker.status();
  tracker_ = std::move(tracker->tracker);
  tracker_why_ = tracker->why;
  if (tracker_->observer() == nullptr) return absl::OkStatus();
  return guest_->Observe(tracker_->observer());
}

SourceOptions SourceHost::EngineOptions() const {
  SourceOptions options;
  options.uri = migration_.uri;
  options.peer_wait_ns = migration_.peer_wait_ns;
  options.limits = settings_.limits;
  options.max_bandwidth = settings_.max_bandwidth;
  options.device_state_bytes = settings_.device_state_bytes;
  options.zero_detect = settings_.zero_detect;
  options.strict = settings_.strict;
  options.verify = migration_.verify;
  options.workload = settings_.workload;
  options.seed = settings_.seed;
  return options;
}

SourceEngine::Hooks SourceHost::Hooks() {
  SourceEngine::Hooks hooks;
  hooks.on_phase = [this](Phase phase) {
    if (phase == Phase::kExchange) {
      console_.Note(absl::StrCat("dirty tracking: ", tracker_why_));
    }
    MaybePause(&migration_.pause_at, phase, &console_);
  };
  hooks.on_progress = [this](const SourceProgress& progress) {
    constexpr uint64_t kEveryNs = 200'000'000;
    const uint64_t now = MonotonicNs();
    if (!console_.shows_progress() || now < next_progress_ns_) return;
    next_progress_ns_ = now + kEveryNs;
    console_.Progress(SourceProgressLine(progress, now));
  };
  hooks.note = [this](const std::string& text) { console_.Note(text); };
  return hooks;
}

absl::Status SourceHost::Migrate() {
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(*context_, MIG_ROLE_SOURCE, migration_.id);
  if (!session.ok()) return session.status();
  absl::Status status = guest_->Run();
  if (!status.ok()) return status;
  SourceEngine engine(EngineOptions(), session->get(), InterruptFlag(),
                      memory_.get(), tracker_.get(), guest_.get(), Hooks());
  report_ = engine.Run();
  console_.Progress("");
  return absl::OkStatus();
}

// What a person must know when it did not end well.
void SourceHost::Explain() {
  const std::string reason =
      report_.peer_reason.empty()
          ? ""
          : absl::StrCat("; the destination says: ", report_.peer_reason);
  if (report_.end == SourceEnd::kMigrated) {
    if (migration_.verify && !IsVerified(report_)) {
      console_.Say(absl::StrCat("migrated, but NOT verified: ",
                                UnverifiedReason(report_)));
    }
    return;
  }
  console_.Say(absl::StrCat(
      report_.end == SourceEnd::kGaveUp ? "gave up " : "failed ",
      PhaseText(report_.phase), ": ", report_.status.message(), reason));
  if (report_.end != SourceEnd::kInDoubt) return;
  console_.Say(
      "IN DOUBT: the guest was offered and no answer came, so the destination "
      "may be running it. It is stopped here and stays stopped. Ask the "
      "destination: if it took the guest, nothing is left to do here; if it "
      "did not and its process is gone, start it again here. If it can't be "
      "asked, fence it, and boot the guest anew from its disks: it may have "
      "run there and changed them. See HANDOVER in mig_transport(7).");
}

// Bad input that only the plugin could see: nothing had begun.
bool SourceHost::BadInput() const {
  return report_.end == SourceEnd::kFailed && report_.caps.max_message == 0 &&
         report_.status.code() == absl::StatusCode::kInvalidArgument;
}

ExitCode SourceHost::Finish() {
  if (BadInput()) {
    console_.Say(report_.status.message());
    return kExitUsage;
  }
  Explain();
  const bool here =
      report_.end == SourceEnd::kFailed || report_.end == SourceEnd::kGaveUp;
  RunOnReport run_on;
  if (here && guest_->running()) {
    run_on = RunOn(kSide, guest_.get(), migration_.after);
    console_.Say(RunOnLine(run_on));
  }
  const bool ran = !run_on.side.empty();
  json_ = SourceJson(*context_, report_, ran ? &run_on : nullptr);
  switch (report_.end) {
    case SourceEnd::kMigrated:
      return migration_.verify && !IsVerified(report_) ? kExitUnverified
                                                       : kExitOk;
    case SourceEnd::kGaveUp:
      return kExitCancelled;
    case SourceEnd::kInDoubt:
      return kExitInDoubt;
    case SourceEnd::kFailed:
      break;
  }
  return kExitFailed;
}

absl::StatusOr<std::unique_ptr<SourceHost>> SourceHost::Create(
    const RawOptions& raw) {
  absl::StatusOr<CommonSettings> common = ReadCommon(raw);
  if (!common.ok()) return common.status();
  absl::StatusOr<MigrationSettings> migration = ReadMigration(raw);
  if (!migration.ok()) return migration.status();
  absl::StatusOr<SourceSettings> settings = ReadSource(raw);
  if (!settings.ok()) return settings.status();
  std::unique_ptr<SourceHost> host(new SourceHost(
      *std::move(common), *std::move(migration), *std::move(settings)));
  absl::Status status = host->Prepare();
  if (!status.ok()) return status;
  return host;
}

std::string SourceHost::table() const {
  if (report_.rounds.empty()) return "";
  return SourceTable(context_->plugin(), report_);
}

}  // namespace mig::sim
