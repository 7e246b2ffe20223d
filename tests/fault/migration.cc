// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "migration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <sstream>

namespace mig::test {
namespace {

constexpr Millis kStart(20000);

std::string Setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? otherwise : value;
}

// One time in which a side ran the guest.
struct Interval {
  std::string side;
  uint64_t start, end;
};

std::vector<Interval> ReadIntervals(const std::string& log) {
  std::vector<Interval> intervals;
  std::istringstream lines(log);
  std::string side, what;
  uint64_t time = 0;
  while (lines >> side >> what >> time) {
    if (what == "run") {
      intervals.push_back({side, time, UINT64_MAX});
      continue;
    }
    for (Interval& each : intervals) {
      if (each.side == side && each.end == UINT64_MAX) each.end = time;
    }
  }
  return intervals;
}

}  // namespace

std::string HostSim() { return Setting("MIG_HOST_SIM", MIG_HOST_SIM_PATH); }

std::string PluginName() {
  const std::string plugin = Setting("MIG_TEST_PLUGIN", "tcp");
  return plugin.substr(0, plugin.find(' '));
}

Arguments PluginArguments() {
  std::istringstream words(Setting("MIG_TEST_PLUGIN", "tcp"));
  std::string word;
  words >> word;
  Arguments arguments = {"--plugin", word};
  while (words >> word) {
    arguments.emplace_back("--plugin-option");
    arguments.push_back(word);
  }
  return arguments;
}

std::string ListenHost() { return Setting("MIG_TEST_HOST", "127.0.0.1"); }

std::string LocalUri() { return PluginName() + "://" + ListenHost() + ":0"; }

Arguments Join(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void Migration::StartDestination(const Arguments& more,
                                 const std::string& uri) {
  const Arguments base = {HostSim(), "destination",
                          uri.empty() ? LocalUri() : uri, "--run-log",
                          dir_.Path("run.log")};
  destination_ = std::make_unique<Process>(
      dir_, Join(Join(base, PluginArguments()), more));
  const std::string mark = "listening at ";
  ASSERT_TRUE(destination_->WaitForText(mark, kStart))
      << destination_->Stderr();
  const std::string text = destination_->Stderr();
  const size_t at = text.find(mark) + mark.size();
  address_ = text.substr(at, text.find('\n', at) - at);
}

void Migration::StartSource(const Arguments& more) {
  const Arguments base = {HostSim(), "source", address_, "--run-log",
                          dir_.Path("run.log")};
  source_ = std::make_unique<Process>(
      dir_, Join(Join(base, PluginArguments()), more));
}

std::string Migration::Transcript() const {
  std::string text = "--- destination\n";
  if (destination_) text += destination_->Stderr();
  text += "--- source\n";
  if (source_) text += source_->Stderr();
  return text + "--- run log\n" + RunLog();
}

bool Migration::Ran(const std::string& side) const {
  return RunLog().find(side + " run") != std::string::npos;
}

std::string Migration::Overlap(const std::string& killed_side,
                               uint64_t killed_ns) const {
  std::vector<Interval> intervals = ReadIntervals(RunLog());
  for (Interval& each : intervals) {
    if (each.side == killed_side && each.end > killed_ns) each.end = killed_ns;
  }
  for (const Interval& one : intervals) {
    for (const Interval& other : intervals) {
      if (one.side < other.side && one.start < other.end &&
          other.start < one.end) {
        return std::to_string(std::max(one.start, other.start));
      }
    }
  }
  return "";
}

uint64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace mig::test
