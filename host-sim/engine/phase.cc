// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/phase.h"

#include <array>
#include <cstddef>

namespace mig::sim {
namespace {

struct Names {
  absl::string_view name, text;
};

constexpr std::array<Names, 10> kNames = {{
    {"connect", "while connecting"},
    {"exchange", "while agreeing on memory"},
    {"round1", "in round 1"},
    {"rounds", "in a later round"},
    {"stopped", "with the guest stopped, in the last round"},
    {"state", "in the device state"},
    {"handover", "in the handover"},
    {"taken", "after the guest was taken"},
    {"verify", "while verifying"},
    {"done", "after the migration"},
}};

const Names& Of(Phase phase) { return kNames.at(static_cast<size_t>(phase)); }

}  // namespace

absl::string_view PhaseName(Phase phase) { return Of(phase).name; }

absl::string_view PhaseText(Phase phase) { return Of(phase).text; }

std::vector<std::string> PhaseNames() {
  std::vector<std::string> names;
  names.reserve(kNames.size());
  for (const Names& each : kNames) names.emplace_back(each.name);
  return names;
}

}  // namespace mig::sim
