// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/world.h"

#include "absl/strings/str_cat.h"

namespace mig::model {
namespace {

constexpr uint64_t kManyWrites = 5000;

}  // namespace

World::World(const Scenario* scenario, VirtualClock* clock, EventLog* log,
             GuestMemory* source, GuestMemory* destination)
    : scenario_(scenario),
      clock_(clock),
      log_(log),
      source_(source),
      destination_(destination),
      oracle_(source, destination),
      draw_(sim::Mix(scenario->seed + 3)),
      dirty_(scenario->guest.Pages(), true),
      dirty_pages_(scenario->guest.Pages()) {}

void World::Violate(Actor actor, absl::string_view rule,
                    absl::string_view what) {
  Log(actor, "VIOLATION", 0, 0, absl::StrCat(rule, ": ", what));
  if (!verdict_.ok()) return;
  verdict_ = absl::DataLossError(
      absl::StrCat(ActorName(actor), ", ", rule, ": ", what));
}

void World::RunGuest(Actor side) {
  Log(side, "runs the guest");
  if (runs_at_ != Actor::kModel && runs_at_ != side) {
    Violate(side, "rule 12", "two guests run");
  }
  if (side == Actor::kSource && taken_) {
    Violate(side, "rule 12",
            "the source runs a guest that the destination has taken");
  }
  runs_at_ = side;
  next_write_ns_ = now_ns() + draw_.Below(2 * habits().write_interval_ns);
}

void World::StopGuest(Actor side) {
  Log(side, "stops the guest");
  runs_at_ = Actor::kModel;
  next_write_ns_ = UINT64_MAX;
}

void World::GuestTaken() {
  Log(Actor::kDestination, "takes the guest");
  if (!offered_) {
    Violate(Actor::kDestination, "rule 12",
            "a guest is taken that the source does not offer, or no longer");
  }
  const absl::Status whole = oracle_.CheckWhole();
  if (!whole.ok()) {
    Violate(Actor::kDestination, "rule 8 at the handover", whole.message());
  }
  taken_ = true;
  oracle_.Taken();
}

uint64_t World::NextWriteNs() const { return next_write_ns_; }

void World::StepGuest() {
  const Habits& habits = scenario_->habits;
  const uint64_t pages = scenario_->guest.Pages();
  const uint64_t page =
      draw_.Below(draw_.Percent(80) ? habits.hot_pages : pages);
  Part part = Part::kWhole;
  if (draw_.Percent(habits.torn_percent)) {
    part = draw_.Percent(50) ? Part::kFirst : Part::kSecond;
  }
  oracle_.Write(page, part, draw_.Percent(habits.zero_percent));
  if (runs_at_ == Actor::kSource) MarkDirty(page);
  // While hosts wait for a timeout, there is nothing to be learned from it.
  const uint64_t slower = oracle_.writes() > kManyWrites ? 1000 : 1;
  next_write_ns_ =
      now_ns() + 1 + draw_.Below(2 * slower * habits.write_interval_ns);
}

void World::MarkDirty(uint64_t page) {
  if (dirty_[page]) return;
  dirty_[page] = true;
  ++dirty_pages_;
}

void World::ClearDirty(uint64_t page) {
  if (!dirty_[page]) return;
  dirty_[page] = false;
  --dirty_pages_;
}

}  // namespace mig::model
