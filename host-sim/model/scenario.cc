// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/scenario.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "model/draw.h"
#include "model/plugin_draw.h"

namespace mig::model {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1'000'000;

GuestShape DrawGuest(Draw* draw, bool small) {
  GuestShape shape;
  shape.page_size = draw->Percent(70) ? 1024 : 4096;
  const uint64_t blocks = small ? 2 : draw->Between(1, 4);
  for (uint64_t i = 0; i < blocks; ++i) {
    // Now and then one that takes several chunks.
    const bool large = !small && draw->Percent(4);
    const uint64_t pages = small   ? draw->Between(3, 8)
                           : large ? draw->Between(1000, 2500)
                                   : draw->Scaled(4, 200);
    // Blocks are whole pages of the system.
    const uint64_t whole = 4096 / shape.page_size;
    shape.blocks.push_back({.pages = (pages + whole - 1) / whole * whole,
                            .zeroed = draw->Percent(50)});
  }
  return shape;
}

void DrawSmallRounds(Draw* draw, Habits* habits) {
  habits->rounds = draw->Between(1, 2);
  habits->state_messages = 1;
  habits->message_bytes = 200;
  habits->chat_percent = 0;
}

Habits DrawHabits(Draw* draw, const GuestShape& shape, bool small) {
  Habits habits;
  const uint64_t pages = shape.Pages();
  habits.step_ns = draw->Percent(20) ? 0 : draw->Scaled(200, 20 * kUs);
  habits.write_interval_ns = draw->Scaled(kUs, kMs);
  habits.hot_pages = draw->Scaled(1, pages);
  habits.zero_percent = draw->Percent(50) ? 0 : 20;
  habits.torn_percent = draw->Percent(50) ? 0 : 30;
  habits.rounds = draw->Between(1, 6);
  habits.few_pages = draw->Scaled(1, 20);
  habits.batch = static_cast<uint32_t>(draw->Scaled(1, 64));
  habits.run_pages = draw->Scaled(1, 64);
  habits.in_order = draw->Percent(50);
  habits.flush_percent = draw->Percent(50) ? 0 : 30;
  habits.begins_early = draw->Percent(50);
  habits.leave_percent = draw->Percent(70) ? 0 : 20;
  habits.finds_zero = draw->Percent(60);
  habits.strict = draw->Percent(40);
  habits.state_messages = draw->Below(6);
  habits.chat_percent = draw->Percent(50) ? 0 : 5;
  habits.message_bytes =
      draw->Percent(5) ? uint64_t{512} << 10 : draw->Scaled(64, 20000);
  habits.hold_ns = draw->Percent(50) ? 0 : draw->Scaled(kUs, 20 * kMs);
  habits.adds_before = draw->Percent(50);
  if (draw->Percent(20)) habits.load_ns = draw->Scaled(kMs, 20'000 * kMs);
  habits.says_busy = draw->Percent(80);
  if (small) DrawSmallRounds(draw, &habits);
  return habits;
}

Fault DrawHostFault(Draw* draw) {
  static constexpr std::array kKinds = {
      HostFault::kPause, HostFault::kPause,  HostFault::kCancel,
      HostFault::kClose, HostFault::kKill,   HostFault::kMisuse,
      HostFault::kTwice, HostFault::kRefuse, HostFault::kPeerKey};
  Fault fault;
  fault.side = draw->Percent(50) ? Actor::kSource : Actor::kDestination;
  fault.host = draw->Of(kKinds);
  fault.at = draw->Scaled(1, 400);
  if (fault.host == HostFault::kPause) {
    fault.length_ns = draw->Scaled(100 * kUs, 30'000 * kMs);
  }
  return fault;
}

}  // namespace

std::string FaultText(const Fault& fault) {
  const char* const side = ActorName(fault.side);
  switch (fault.host) {
    case HostFault::kNone:
      return absl::StrCat(side, " device: ", fault.device);
    case HostFault::kPause:
      return absl::StrCat(side, ": pauses for ", fault.length_ns,
                          " ns at step ", fault.at);
    case HostFault::kCancel:
      return absl::StrCat(side, ": cancels at step ", fault.at);
    case HostFault::kClose:
      return absl::StrCat(side, ": closes at step ", fault.at);
    case HostFault::kKill:
      return absl::StrCat(side, ": is killed at step ", fault.at);
    case HostFault::kMisuse:
      return absl::StrCat(side, ": calls what it may not at step ", fault.at);
    case HostFault::kTwice:
      return "source: gives a page twice, when a round is strict";
    case HostFault::kRefuse:
      return "destination: refuses the guest";
    case HostFault::kPeerKey:
      return absl::StrCat(side, ": has another key");
  }
  return "?";
}

Scenario DrawScenario(uint64_t seed, absl::string_view plugin,
                      const ScenarioLimits& limits) {
  Draw draw(sim::Mix(seed) + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.plugin = std::string(plugin);
  scenario.guest = DrawGuest(&draw, limits.small);
  scenario.habits = DrawHabits(&draw, scenario.guest, limits.small);
  DrawPluginOptions(&draw, &scenario);
  if (scenario.habits.load_ns > 0 && !scenario.habits.says_busy) {
    // Its peer may take it for dead, and is right.
    Fault silence;
    silence.side = Actor::kDestination;
    silence.host = HostFault::kPause;
    silence.at = UINT64_MAX;
    scenario.faults.push_back(silence);
  }
  // A quarter of the runs goes well.
  const uint64_t faults =
      draw.Percent(25) ? 0 : draw.Below(limits.max_faults + 1);
  for (uint64_t i = 0; i < faults; ++i) {
    scenario.faults.push_back(draw.Percent(45)
                                  ? DrawHostFault(&draw)
                                  : DrawDeviceFault(&draw, plugin));
  }
  return scenario;
}

}  // namespace mig::model
