// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/destination_host.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/host_setup.h"
#include "engine/mig_status.h"
#include "guest/parse.h"
#include "report/insight.h"
#include "report/report_table.h"

namespace mig::sim {
namespace {

constexpr char kSide[] = "destination";

// Memory like the source's; a file's image comes by the migration.
absl::StatusOr<std::vector<BlockSpec>> SpecsLike(const GuestMessage& message,
                                                 uint64_t max_memory) {
  std::vector<BlockSpec> specs;
  uint64_t total = 0;
  for (const GuestMessage::Block& block : message.blocks) {
    BlockSpec spec;
    spec.name = block.name;
    spec.size = block.length;
    const auto backing = static_cast<Backing>(block.backing);
    if (backing == Backing::kMemfd || backing == Backing::kHugetlb) {
      spec.backing = backing;
    }
    specs.push_back(spec);
    total += block.length;  // at most 64 x 2^46
  }
  if (total > max_memory) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the guest has ", FormatSize(total), " where at most ",
        FormatSize(max_memory),
        " are allowed here: raise --max-memory at the destination"));
  }
  return specs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DestinationHost>> DestinationHost::Create(
    const RawOptions& raw) {
  absl::StatusOr<CommonSettings> common = ReadCommon(raw);
  if (!common.ok()) return common.status();
  absl::StatusOr<MigrationSettings> migration = ReadMigration(raw);
  if (!migration.ok()) return migration.status();
  absl::StatusOr<DestinationSettings> settings = ReadDestination(raw);
  if (!settings.ok()) return settings.status();
  std::unique_ptr<DestinationHost> host(new DestinationHost(
      *std::move(common), *std::move(migration), *std::move(settings)));
  absl::StatusOr<std::unique_ptr<PluginContext>> context =
      OpenPlugin(host->common_, &host->console_);
  if (!context.ok()) return context.status();
  host->context_ = *std::move(context);
  return host;
}

absl::Status DestinationHost::MakeMemory(const std::vector<BlockSpec>& specs) {
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(specs);
  if (!memory.ok()) return memory.status();
  memory_ = std::make_unique<GuestMemory>(*std::move(memory));
  return settings_.prefault ? memory_->Prefault() : absl::OkStatus();
}

absl::StatusOr<DestinationGuest> DestinationHost::MakeGuest(
    const GuestMessage& message) {
  if (memory_ == nullptr) {
    absl::StatusOr<std::vector<BlockSpec>> specs = settings_.memory;
    if (settings_.memory.empty()) {
      specs = SpecsLike(message, settings_.max_memory);
    }
    if (!specs.ok()) return specs.status();
    absl::Status status = MakeMemory(*specs);
    if (!status.ok()) return status;
  }
  guest_ = std::make_unique<SimGuest>(memory_.get(),
                                      RunLog(migration_.run_log, kSide));
  return DestinationGuest{memory_.get(), guest_.get()};
}

DestinationEngine::Hooks DestinationHost::Hooks() {
  DestinationEngine::Hooks hooks;
  hooks.on_phase = [this](Phase phase) {
    MaybePause(&migration_.pause_at, phase, &console_);
  };
  hooks.on_address = [this](const std::string& address) {
    if (on_address_) return on_address_(address);
    console_.Say(absl::StrCat("listening at ", address));
  };
  hooks.make_guest = [this](const GuestMessage& message) {
    return MakeGuest(message);
  };
  hooks.on_progress = [this](const SessionState& state, Phase phase) {
    constexpr uint64_t kEveryNs = 200'000'000;
    const uint64_t now = MonotonicNs();
    if (!console_.shows_progress() || now < next_progress_ns_) return;
    next_progress_ns_ = now + kEveryNs;
    uint64_t received = 0;
    for (const auto& [name, value] : session_->Stats()) {
      if (name == "bytes-received") received = value;
    }
    console_.Progress(DestinationProgressLine(state, phase, received));
  };
  hooks.on_running = [this] { console_.Note("the guest runs here"); };
  return hooks;
}

ExitCode DestinationHost::Serve() {
  // As a hypervisor does: memory that is known is there before the source is.
  if (settings_.prefault && !settings_.memory.empty()) {
    absl::Status status = MakeMemory(settings_.memory);
    if (!status.ok()) {
      console_.Say(status.message());
      return kExitFailed;
    }
  }
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(*context_, MIG_ROLE_DESTINATION, migration_.id);
  if (!session.ok()) {
    console_.Say(session.status().message());
    return kExitFailed;
  }
  session_ = session->get();
  DestinationOptions options;
  options.uri = migration_.uri;
  options.peer_wait_ns = migration_.peer_wait_ns;
  options.verify = migration_.verify;
  options.load_delay_ns = settings_.load_delay_ns;
  options.say_busy = settings_.say_busy;
  DestinationEngine engine(options, session_, InterruptFlag(), Hooks());
  report_ = engine.Run();
  console_.Progress("");
  // The link is not needed any more; the guest runs on without it.
  session_ = nullptr;
  session->reset();
  return Finish();
}

std::string DestinationHost::table() const {
  if (report_.end != DestinationEnd::kTaken) return "";
  const Plugin& plugin = context_->plugin();
  return absl::StrCat("taken over ", plugin.ops().name, " ",
                      plugin.ops().version, "\n",
                      InsightText(plugin.counters(), json_));
}

ExitCode DestinationHost::Finish() {
  const bool taken = report_.end == DestinationEnd::kTaken;
  if (!taken) {
    const bool bad_input =
        report_.address.empty() &&
        report_.status.code() == absl::StatusCode::kInvalidArgument;
    console_.Say(report_.address.empty()
                     ? std::string(report_.status.message())
                     : absl::StrCat("failed ", PhaseText(report_.phase), ": ",
                                    report_.status.message(),
                                    "; the guest is not here"));
    if (bad_input) return kExitUsage;
    json_ = DestinationJson(*context_, report_, nullptr);
    return kExitFailed;
  }
  RunOnReport run_on = RunOn(kSide, guest_.get(), migration_.after);
  if (run_on.check.ok()) run_on.check = report_.status;
  console_.Note(RunOnLine(run_on));
  json_ = DestinationJson(*context_, report_, &run_on);
  const bool wanted = migration_.verify && report_.guest->proof_follows;
  if (wanted && report_.result.outcome != VerifyOutcome::kVerified) {
    console_.Say(absl::StrCat("NOT verified: ", report_.result.text));
    return kExitUnverified;
  }
  if (!run_on.check.ok()) {
    console_.Say(run_on.check.message());
    return kExitUnverified;
  }
  return kExitOk;
}

}  // namespace mig::sim
