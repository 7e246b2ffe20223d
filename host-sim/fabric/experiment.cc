// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/experiment.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fabric/side.h"

namespace mig::fabric {
namespace {

// No migration here takes an hour of virtual time.
constexpr uint64_t kMostNs = 3'600'000'000'000;

// Whoever has something to do does it; when nobody has, time goes on.
absl::Status RunSides(SourceSide* source, DestinationSide* destination,
                      model::VirtualClock* clock,
                      const std::function<void()>& after_step) {
  const uint64_t end_ns = clock->now_ns + kMostNs;
  const std::array<Side*, 2> sides = {source, destination};
  while (!source->closed() || !destination->closed()) {
    bool stepped = false;
    for (Side* const side : sides) {
      const absl::StatusOr<bool> ready = side->Ready();
      if (!ready.ok()) return ready.status();
      if (!*ready) continue;
      stepped = true;
      absl::Status status = side->Step();
      if (!status.ok()) return status;
    }
    after_step();
    if (stepped) continue;
    const uint64_t next = std::min(source->next_ns(), destination->next_ns());
    if (next > end_ns) {
      return absl::DeadlineExceededError(
          "both sides wait, for nothing that comes within an hour");
    }
    clock->now_ns = next;
  }
  return absl::OkStatus();
}

}  // namespace

double RoundFigures::MibPerSecond() const {
  if (ns == 0) return 0;
  return static_cast<double>(bytes) / (1 << 20) /
         (static_cast<double>(ns) / 1e9);
}

absl::StatusOr<ExperimentResult> RunExperiment(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const ExperimentSettings& settings,
    const std::function<void(const std::string&)>& progress) {
  ExperimentResult result;
  model::VirtualClock clock;
  Meeting meeting;
  DestinationSide destination(&settings, &clock, &meeting);
  SourceSide source(&settings, &clock, &meeting, &result);
  absl::Status status = destination.Start(plugin);
  if (status.ok()) status = destination.Listen();
  if (status.ok()) status = source.Start(plugin);
  if (status.ok()) status = source.Connect();
  if (!status.ok()) return status;
  size_t told = 0;
  status = RunSides(&source, &destination, &clock, [&] {
    if (told == result.rounds.size()) return;
    told = result.rounds.size();
    progress(absl::StrFormat(
        "round %d: %.0f MiB at %.0f MiB/s", told,
        static_cast<double>(result.rounds.back().bytes) / (1 << 20),
        result.rounds.back().MibPerSecond()));
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace mig::fabric
