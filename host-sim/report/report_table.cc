// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/convergence.h"
#include "report/downtime.h"

namespace mig::sim {
namespace {

constexpr double kMiB = 1 << 20;

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }
double MiB(uint64_t bytes) { return static_cast<double>(bytes) / kMiB; }

double Rate(uint64_t bytes, uint64_t ns) {
  return RatePerSecond(bytes, ns) / kMiB;
}

void AppendRounds(const SourceReport& report, std::string* text) {
  absl::StrAppend(text,
                  "  round      pages       zero      MiB         ms    MiB/s"
                  "      dirty  dirty MiB/s  slowed\n");
  for (const RoundReport& round : report.rounds) {
    absl::StrAppendFormat(
        text, "  %4u%c %10u %10u %8.1f %10.1f %8.1f %10u %12.1f %6u%%\n",
        round.number, round.final ? '*' : ' ', round.pages, round.zero_pages,
        MiB(round.bytes), Ms(round.duration_ns),
        Rate(round.bytes, round.duration_ns), round.dirty_pages,
        Rate(round.dirty_bytes, round.duration_ns), round.throttle_percent);
  }
  if (!report.rounds.empty() && report.rounds.back().final) {
    absl::StrAppend(text, "  (* with the guest stopped)\n");
  }
}

void AppendDowntime(const SourceReport& report, std::string* text) {
  const Downtime downtime = MeasureDowntime(report);
  absl::StrAppendFormat(text,
                        "  downtime   %.2f ms: stop %.2f, last round %.2f, "
                        "state %.2f, resume %.2f\n",
                        Ms(downtime.total), Ms(downtime.stop),
                        Ms(downtime.last_round), Ms(downtime.state),
                        Ms(downtime.resume));
  if (!downtime.one_clock) {
    absl::StrAppend(text,
                    "             (measured at the source alone, up to "
                    "COMMITTED: the two sides share no clock)\n");
  }
}

}  // namespace

std::string SourceTable(const Plugin& plugin, const SourceReport& report) {
  uint64_t round_ns = 0, zero = 0, pages = 0;
  for (const RoundReport& round : report.rounds) {
    round_ns += round.duration_ns;
    zero += round.zero_pages;
    pages += round.pages;
  }
  std::string text =
      absl::StrFormat("%s over %s %s\n", SourceEndName(report.end),
                      plugin.ops().name, plugin.ops().version);
  AppendRounds(report, &text);
  absl::StrAppendFormat(
      &text,
      "  total      %.1f ms, %u rounds, %u pages (%u zero), %.1f MiB, "
      "%.1f MiB/s\n",
      Ms(MigrationNs(report)), report.rounds.size(), pages, zero,
      MiB(BytesSent(report)), Rate(BytesSent(report), round_ns));
  if (report.end != SourceEnd::kMigrated) return text;
  AppendDowntime(report, &text);
  if (IsVerified(report)) {
    absl::StrAppendFormat(&text,
                          "  verified   in %.1f ms, not in the downtime\n",
                          Ms(report.result->verify_ns));
  } else {
    absl::StrAppend(&text, "  NOT verified: ", UnverifiedReason(report), "\n");
  }
  return text;
}

std::string SourceProgressLine(const SourceProgress& progress,
                               uint64_t now_ns) {
  if (progress.round == 0 || progress.phase >= Phase::kState) {
    return std::string(PhaseText(progress.phase));
  }
  std::string line = absl::StrFormat(
      "round %u: %.0f of %.0f MiB, %.0f MiB/s", progress.round,
      MiB(progress.sent_bytes), MiB(progress.pending_bytes),
      Rate(progress.sent_bytes, now_ns - progress.round_start_ns));
  if (progress.round > 1) {
    absl::StrAppendFormat(&line, ", dirtied %.0f MiB/s",
                          progress.dirty_bytes_per_second / kMiB);
  }
  if (progress.throttle_percent != 0) {
    absl::StrAppendFormat(&line, ", guest slowed by %u%%",
                          progress.throttle_percent);
  }
  return line;
}

std::string DestinationProgressLine(const SessionState& state, Phase phase,
                                    uint64_t bytes_received) {
  if (phase == Phase::kRound1 || phase == Phase::kRounds) {
    return absl::StrFormat("round %u: %.0f MiB received so far",
                           state.round_done + 1, MiB(bytes_received));
  }
  return std::string(PhaseText(phase));
}

std::string RunOnLine(const RunOnReport& run_on) {
  return absl::StrFormat(
      "the guest runs on here: %u steps in %.0f ms; in all %s; %s",
      run_on.steps, Ms(run_on.ran_ns), run_on.work,
      run_on.check.ok() ? "its memory is right"
                        : absl::StrCat("NOT RIGHT: ", run_on.check.message()));
}

}  // namespace mig::sim
