// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/reproduce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mig::fabric {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kPageSize = 4096;
// The last round of the published pinned migrations: downtime x bandwidth is
// 3,855 and 3,929 MiB.
constexpr uint64_t kHot = 3900 * kMib;
constexpr uint64_t kRate = uint64_t{20} << 30;
constexpr uint32_t kRoundTrips = 1000;

struct Published {
  bool dynamic;
  bool many;
  double mib;
  double downtime_ms;
};
constexpr Published kPublished[] = {
    {false, false, 9952, 396.7},
    {false, true, 11639, 345.7},
    {true, false, 5605, 248.7},
    {true, true, 9826, 191.1},
};
struct PublishedChunk {
  uint64_t chunk;
  double mb;
};
constexpr PublishedChunk kPublishedChunks[] = {
    {kMib, 1007}, {32 * kMib, 2260}, {1024 * kMib, 17529}};

// A side that registers what it writes next, one after the other.
std::vector<std::string> ChangesOf(const ReproduceSettings& settings,
                                   const Way& way) {
  std::vector<std::string> changes;
  if (!way.as_shipped) changes.emplace_back("max-msg-size=2M");
  if (!way.many) changes.emplace_back("register-threads=1");
  changes.insert(changes.end(), settings.changes.begin(),
                 settings.changes.end());
  return changes;
}

ExperimentSettings SettingsOf(const ReproduceSettings& settings,
                              const Way& way) {
  ExperimentSettings experiment;
  experiment.options = {
      {"device", DeviceOption(*settings.profile, ChangesOf(settings, way))},
      {"threads", "0"},
      {"registration", way.dynamic ? "dynamic" : "pinned"},
      {"chunk-size", absl::StrCat(way.chunk / kMib, "M")},
      {"writes-per-chunk", way.many ? "many" : "1"},
      {"drain", way.drains_often ? "iterate" : "round"},
  };
  experiment.guest = {.memory = settings.memory,
                      .page_size = kPageSize,
                      .hot = kHot,
                      .rate = kRate};
  return experiment;
}

std::string NameOf(const Way& way) {
  return absl::StrCat(way.dynamic ? "dynamic" : "pinned", ", ",
                      way.many ? "many" : "one", " a chunk, drain at ",
                      way.drains_often ? "iterate" : "round");
}

class Reproducer {
 public:
  Reproducer(std::shared_ptr<const sim::Plugin> plugin,
             const ReproduceSettings& settings,
             const std::function<void(const std::string&)>& progress)
      : plugin_(std::move(plugin)), settings_(settings), progress_(progress) {}

  absl::Status Inflight() {
    for (const Published& published : kPublished) {
      for (const bool often : {true, false}) {
        const Way way = {.dynamic = published.dynamic,
                         .many = published.many,
                         .drains_often = often};
        // The published ones change both at once: one and often, many and not.
        const bool same = often != published.many;
        absl::Status status = AddInflight(way, same ? &published : nullptr);
        if (!status.ok()) return status;
      }
    }
    for (const bool dynamic : {false, true}) {
      const Way way = {.dynamic = dynamic, .many = true, .as_shipped = true};
      absl::Status status = AddInflight(way, nullptr);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Chunks() {
    for (const PublishedChunk& published : kPublishedChunks) {
      ChunkRow row = {.chunk = published.chunk, .published_mb = published.mb};
      for (const bool many : {false, true}) {
        Way way = {.dynamic = true, .many = many, .drains_often = !many};
        way.chunk = published.chunk;
        const auto result =
            Run(SettingsOf(settings_, way),
                absl::StrCat("chunks of ", published.chunk / kMib, " MiB"));
        if (!result.ok()) return result.status();
        const RoundFigures& first = result->rounds.front();
        (many ? row.many_mb : row.one_mb) =
            first.MibPerSecond() * static_cast<double>(kMib) / 1e6;
      }
      done_.chunks.push_back(row);
    }
    return absl::OkStatus();
  }

  absl::Status RoundTrips() {
    for (const bool is_inline : {true, false}) {
      RoundTripRow row = {.is_inline = is_inline};
      for (const bool sleeps : {false, true}) {
        ReproduceSettings settings = settings_;
        settings.memory = 64 * kMib;
        if (!sleeps) settings.changes.emplace_back("wake-cost=0ns");
        ExperimentSettings experiment = SettingsOf(settings, {.many = true});
        experiment.guest.hot = 0;
        experiment.round_trips = kRoundTrips;
        experiment.options.emplace_back("control-inline",
                                        is_inline ? "56" : "0");
        const auto result = Run(experiment, "round trips");
        if (!result.ok()) return result.status();
        (sleeps ? row.sleeping_us : row.polling_us) =
            result->round_trip_ns / 1000;
      }
      done_.round_trips.push_back(row);
    }
    return absl::OkStatus();
  }

  Reproduction Done() { return std::move(done_); }

 private:
  absl::StatusOr<ExperimentResult> Run(const ExperimentSettings& experiment,
                                       const std::string& name) {
    return RunExperiment(plugin_, experiment, [&](const std::string& line) {
      progress_(absl::StrCat(name, ": ", line));
    });
  }

  absl::Status AddInflight(const Way& way, const Published* published) {
    auto result = Run(SettingsOf(settings_, way), NameOf(way));
    if (!result.ok()) return result.status();
    InflightRow row = {.way = way, .result = *std::move(result)};
    if (published != nullptr) {
      row.published_mib = published->mib;
      row.published_downtime_ms = published->downtime_ms;
    }
    done_.inflight.push_back(std::move(row));
    return absl::OkStatus();
  }

  const std::shared_ptr<const sim::Plugin> plugin_;
  const ReproduceSettings& settings_;
  const std::function<void(const std::string&)>& progress_;
  Reproduction done_;
};

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string OrNothing(double value) {
  if (value == 0) return "";
  return value < 1000 ? absl::StrFormat("%.1f", value)
                      : absl::StrFormat("%.0f", value);
}

}  // namespace

absl::StatusOr<Reproduction> ReproduceInflight(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const ReproduceSettings& settings,
    const std::function<void(const std::string&)>& progress) {
  Reproducer reproducer(plugin, settings, progress);
  absl::Status status = reproducer.Inflight();
  if (status.ok()) status = reproducer.Chunks();
  if (status.ok()) status = reproducer.RoundTrips();
  if (!status.ok()) return status;
  return reproducer.Done();
}

std::string ReproductionText(const Profile& profile,
                             const Reproduction& reproduction) {
  const double line_mib = profile.line_bits / 8 / static_cast<double>(kMib);
  std::string text =
      "| memory | writes a chunk | drain | last round, MiB/s | of the line | "
      "downtime, ms | published | ms | setup, s | rounds | all, s |\n"
      "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const InflightRow& row : reproduction.inflight) {
    const double mib = row.result.rounds.back().MibPerSecond();
    absl::StrAppendFormat(
        &text,
        "| %s | %s | %s | %.0f | %.1f %% | %.1f | %s | %s | %.1f | %d | "
        "%.1f |\n",
        row.way.dynamic ? "dynamic" : "pinned",
        row.way.as_shipped ? "many, as shipped"
        : row.way.many     ? "many"
                           : "one",
        row.way.drains_often ? "iterate" : "round", mib, 100 * mib / line_mib,
        Seconds(row.result.downtime_ns) * 1000, OrNothing(row.published_mib),
        OrNothing(row.published_downtime_ms), Seconds(row.result.setup_ns),
        row.result.rounds.size(), Seconds(row.result.total_ns));
  }
  absl::StrAppend(&text,
                  "\n| chunk, MiB | one write, first round, MB/s | many | "
                  "published, another system |\n|---:|---:|---:|---:|\n");
  for (const ChunkRow& row : reproduction.chunks) {
    absl::StrAppendFormat(&text, "| %d | %.0f | %.0f | %.0f |\n",
                          row.chunk / kMib, row.one_mb, row.many_mb,
                          row.published_mb);
  }
  absl::StrAppend(&text,
                  "\n| control messages | round trip, polling, us | sleeping, "
                  "us |\n|---|---:|---:|\n");
  for (const RoundTripRow& row : reproduction.round_trips) {
    absl::StrAppendFormat(&text, "| %s | %.2f | %.2f |\n",
                          row.is_inline ? "inline" : "fetched", row.polling_us,
                          row.sleeping_us);
  }
  return text;
}

}  // namespace mig::fabric
