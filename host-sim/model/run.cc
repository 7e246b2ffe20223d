// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "model/destination_host.h"
#include "model/source_host.h"

namespace mig::model {
namespace {

// A run that is not over by then hangs; no timeout of a session is as long.
constexpr uint64_t kMaxVirtualNs = 900'000'000'000;
constexpr uint64_t kMaxSteps = 2'000'000;
// When one side has ended, the other learns of it within its timeouts: 10 s of
// silence, 5 s to connect, 3 s to prove itself, and the end of its own.
constexpr uint64_t kMaxApartNs = 25'000'000'000;

// Open descriptors of this process: what a run leaves is a leak.
int OpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<int>(std::distance(begin(fds), end(fds)));
}

class Run {
 public:
  Run(const Scenario& scenario, std::FILE* every_line)
      : scenario_(scenario),
        log_(every_line),
        draw_(sim::Mix(scenario.seed + 5)) {}

  absl::Status Make(const std::shared_ptr<const sim::Plugin>& plugin);
  void Go();
  void Judge();
  void Fill(RunResult* result);

 private:
  bool StepOne();
  bool Advance();
  void EndLonely();
  void JudgeOwner();

  const Scenario& scenario_;
  VirtualClock clock_;
  const uint64_t start_ns_ = clock_.now_ns;
  EventLog log_;
  Draw draw_;
  std::unique_ptr<GuestMemory> source_memory_;
  std::unique_ptr<GuestMemory> destination_memory_;
  std::unique_ptr<World> world_;
  std::unique_ptr<SourceHost> source_;
  std::unique_ptr<DestinationHost> destination_;
  uint64_t steps_ = 0;
};

absl::Status Run::Make(const std::shared_ptr<const sim::Plugin>& plugin) {
  // Always the same, for it is in messages; gone with the run's contexts.
  const std::string network = "model";
  auto source = GuestMemory::Create(scenario_.guest);
  if (!source.ok()) return source.status();
  auto destination = GuestMemory::Create(scenario_.guest);
  if (!destination.ok()) return destination.status();
  source_memory_ = *std::move(source);
  destination_memory_ = *std::move(destination);
  world_ =
      std::make_unique<World>(&scenario_, &clock_, &log_, source_memory_.get(),
                              destination_memory_.get());
  source_ = std::make_unique<SourceHost>(world_.get(), &clock_, &log_);
  destination_ =
      std::make_unique<DestinationHost>(world_.get(), &clock_, &log_);
  world_->RunGuest(Actor::kSource);
  absl::Status status = destination_->Start(plugin, network);
  if (status.ok()) status = source_->Start(plugin, network);
  return status;
}

// One of those that have something to do.
bool Run::StepOne() {
  std::array<Actor, 3> ready;
  size_t count = 0;
  if (source_->Ready()) ready[count++] = Actor::kSource;
  if (destination_->Ready()) ready[count++] = Actor::kDestination;
  if (world_->NextWriteNs() <= clock_.now_ns) ready[count++] = Actor::kGuest;
  if (count == 0) return false;
  ++steps_;
  switch (ready[draw_.Below(count)]) {
    case Actor::kSource:
      source_->Step();
      break;
    case Actor::kDestination:
      destination_->Step();
      break;
    default:
      world_->StepGuest();
      break;
  }
  clock_.now_ns += draw_.Below(scenario_.habits.step_ns + 1);
  return true;
}

// Nobody has anything to do: on to when somebody has. The guest alone does not
// count, for it would go on for ever.
bool Run::Advance() {
  const uint64_t hosts = std::min(source_->NextNs(), destination_->NextNs());
  if (hosts == UINT64_MAX) return false;
  clock_.now_ns =
      std::max(clock_.now_ns, std::min(hosts, world_->NextWriteNs()));
  return true;
}

// A side whose peer will never come waits as long as its host lets it.
void Run::EndLonely() {
  const auto lonely = [this](const Host& one, const Host& other) {
    return one.over() && !other.over() && !other.paused() &&
           clock_.now_ns > one.ended_ns() + kMaxApartNs;
  };
  if (lonely(*source_, *destination_)) destination_->GiveUp();
  if (lonely(*destination_, *source_)) source_->GiveUp();
}

void Run::Go() {
  const uint64_t every = 8 + scenario_.guest.Pages() / 2;
  while (world_->verdict().ok()) {
    EndLonely();
    if (source_->over() && destination_->over()) return;
    if (!StepOne() && !Advance()) {
      // Only a destination that nobody ever connects to waits for ever.
      if (source_->over() || destination_->over()) {
        clock_.now_ns += 2 * kMaxApartNs;
        continue;
      }
      return world_->Violate(Actor::kModel, "rule 15",
                             "both sides wait, for nothing that will come");
    }
    if (clock_.now_ns - start_ns_ > kMaxVirtualNs || steps_ > kMaxSteps) {
      return world_->Violate(Actor::kModel, "rule 15",
                             absl::StrCat("no end after ", steps_, " steps"));
    }
    if (steps_ % every == 0) {
      const absl::Status status = world_->oracle().CheckDestination();
      if (!status.ok()) {
        world_->Violate(Actor::kModel, "rule 8", status.message());
      }
    }
  }
}

// Who has the guest, and whether both sides know (rule 12).
void Run::JudgeOwner() {
  const Outcome outcome = source_->outcome();
  const bool taken = world_->taken();
  if (outcome == Outcome::kCommitted && !taken) {
    world_->Violate(Actor::kModel, "rule 12", "the guest is lost");
  }
  if ((outcome == Outcome::kRefused || outcome == Outcome::kError) && taken &&
      !source_->killed()) {
    world_->Violate(Actor::kModel, "rule 12", "both sides have the guest");
  }
  if (outcome == Outcome::kInDoubt && scenario_.faults.empty()) {
    world_->Violate(Actor::kModel, "rule 12", "doubt, where nothing failed");
  }
  const Host& owner =
      taken ? static_cast<Host&>(*destination_) : static_cast<Host&>(*source_);
  if (owner.killed()) return;
  const absl::Status status = world_->oracle().CheckOwner();
  if (!status.ok()) {
    world_->Violate(Actor::kModel, "memory of who has the guest",
                    status.message());
  }
}

void Run::Judge() {
  if (!world_->verdict().ok()) return;
  JudgeOwner();
  if (scenario_.faults.empty() &&
      (source_->outcome() != Outcome::kCommitted || !world_->taken())) {
    world_->Violate(
        Actor::kModel, "success",
        absl::StrCat("nothing went wrong, and there was no migration: source '",
                     source_->why(), "', destination '", destination_->why(),
                     "'"));
  }
}

void Run::Fill(RunResult* result) {
  result->source = source_->outcome();
  result->taken = world_->taken();
  result->source_why = source_->why();
  result->destination_why = destination_->why();
  result->steps = steps_;
  result->virtual_ns = clock_.now_ns - start_ns_;
  result->guest_writes = world_->oracle().writes();
  result->pages_compared = world_->oracle().compared();
  source_.reset();
  destination_.reset();
  result->verdict = world_->verdict();
  result->hash = log_.hash();
  result->events = log_.count();
  result->last_lines = log_.LastLines();
}

}  // namespace

RunResult RunScenario(const std::shared_ptr<const sim::Plugin>& plugin,
                      const Scenario& scenario, std::FILE* every_line) {
  RunResult result;
  const int fds = OpenFds();
  {
    Run run(scenario, every_line);
    result.verdict = run.Make(plugin);
    if (!result.verdict.ok()) return result;
    run.Go();
    run.Judge();
    run.Fill(&result);
  }
  const int left = OpenFds() - fds;
  if (left != 0 && result.verdict.ok()) {
    result.verdict = absl::DataLossError(
        absl::StrCat("leak: ", left, " more file descriptors are open"));
  }
  return result;
}

std::string OutcomeText(const RunResult& result) {
  static constexpr std::array kNames = {"no outcome", "committed", "refused",
                                        "failed",     "in doubt",  "taken"};
  return absl::StrCat(kNames[static_cast<size_t>(result.source)],
                      result.taken ? ", the destination has the guest" : "");
}

}  // namespace mig::model
