// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Each bad command line gives one line that says what was given, what is wrong
// and what to do, a code that is not zero, and leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "migration.h"

namespace mig::test {
namespace {

using ::testing::HasSubstr;

constexpr int kUsage = 2;

struct BadInput {
  Arguments arguments;
  const char* names;  // what the line must have of the input
  int code = kUsage;
};

void ExpectOneLine(const BadInput& bad, const TempDir& dir) {
  Process process(dir, Join({HostSim()}, bad.arguments));
  std::string shown;
  for (const std::string& each : bad.arguments) shown += each + " ";
  EXPECT_EQ(process.Wait(Millis(30000)), bad.code) << shown << process.Stderr();
  const std::string text = process.Stderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << shown << text;
  EXPECT_THAT(text, HasSubstr(bad.names)) << shown;
  EXPECT_EQ(process.Stdout(), "") << shown;
}

TEST(BadInputTest, ArgumentsOfAnyCommand) {
  const TempDir dir;
  const std::vector<BadInput> table = {
      {{}, "--help"},
      {{"fly"}, "--help"},
      {{"run", "--bogus"}, "--bogus"},
      {{"compare"}, "compare"},
      {{"compare", "/nonexistent/report.json"}, "/nonexistent/report.json"},
      {{"compare", "/proc/self/status"}, "/proc/self/status"},
      {{"run", "extra"}, "extra"},
      {{"source"}, "URI"},
      {{"destination"}, "URI"},
      {{"run", "--memory"}, "--memory"},
      {{"run", "--plugin-option", "novalue"}, "NAME=VALUE"},
      {{"run", "--plugin-option", "no-such=1"}, "no-such"},
      {{"run", "--plugin-option", "peer-timeout=7"}, "peer-timeout"},
      {{"run", "--log-level", "loud"}, "loud"},
      {{"run", "--vm-uuid", "1234"}, "1234"},
      {{"run", "--attempt", "0"}, "--attempt"},
      {{"run", "--after", "later"}, "later"},
      {{"run", "--peer-wait", "3"}, "--peer-wait"},
      {{"run", "--downtime-limit", "-1ms"}, "-1ms"},
      {{"run", "--converge", "hope"}, "hope"},
      {{"run", "--time-limit", "1y"}, "1y"},
      {{"run", "--max-rounds", "many"}, "many"},
      {{"run", "--max-bandwidth", "fast"}, "fast"},
      {{"run", "--device-state", "9T"}, "9T"},
      {{"run", "--zero-detect", "maybe"}, "maybe"},
      {{"run", "--seed", "x"}, "--seed"},
      {{"run", "--tracker", "guess"}, "guess"},
      {{"destination", "tcp://127.0.0.1:0", "--max-memory", "x"}, "x"},
  };
  for (const BadInput& bad : table) ExpectOneLine(bad, dir);
}

TEST(BadInputTest, MemoryAndWorkloads) {
  const TempDir dir;
  const std::string empty = dir.Path("empty");
  std::filesystem::create_directories(dir.Path("folder"));
  std::ofstream(empty).close();
  const std::vector<BadInput> table = {
      {{"run", "--memory", "100001"}, "100001"},
      {{"run", "--memory", "0"}, "0"},
      {{"run", "--memory", "ram:12Q"}, "12Q"},
      {{"run", "--memory", "99999999999999999999"}, "99999999999999999999"},
      {{"run", "--memory", "a b:4M"}, "a b"},
      {{"run", "--memory", "a:4M", "--memory", "a:4M"}, "'a'"},
      {{"run", "--memory", "a:4M,backing=disk"}, "disk"},
      {{"run", "--memory", "a,backing=file:/nonexistent"}, "/nonexistent"},
      {{"run", "--memory", "a,backing=file:" + empty}, empty.c_str()},
      {{"run", "--memory", "a,backing=file:" + dir.Path("folder")}, "folder"},
      {{"run", "--memory", "a:1M,backing=file:" + empty}, "1048576"},
      {{"run", "--workload", "dance"}, "dance"},
      {{"run", "--workload", "uniform:speed=1"}, "speed"},
      {{"run", "--workload", "hotset:share=2"}, "share"},
      {{"run", "--workload", "trace:/nonexistent"}, "/nonexistent"},
      {{"run", "--memory", "4K"}, "ram"},
  };
  for (const BadInput& bad : table) ExpectOneLine(bad, dir);
}

TEST(BadInputTest, Plugins) {
  const TempDir dir;
  const std::string text = dir.Path("text.so");
  std::ofstream(text) << "no plugin\n";
  const std::vector<BadInput> table = {
      {{"run", "--plugin", "no-such"}, "no-such"},
      {{"probe", "--plugin", "no-such"}, "no-such"},
      {{"options", "--plugin", "no-such"}, "no-such"},
      {{"run", "--plugin", text}, "text.so"},
      {{"run", "--plugin", "/lib/x86_64-linux-gnu/libc.so.6"}, "libc.so.6"},
  };
  for (const BadInput& bad : table) ExpectOneLine(bad, dir);
}

TEST(BadInputTest, Uris) {
  if (PluginName() != "tcp") GTEST_SKIP() << "these are URIs of tcp";
  const TempDir dir;
  const Arguments small = {"--memory", "1M", "--after", "1ms"};
  for (const char* uri : {"nonsense", "http://a:1", "tcp://", "tcp://127.0.0.1",
                          "tcp://127.0.0.1:70000", "tcp://127.0.0.1:x",
                          "tcp://[::1", "unix:", "fd:x", "fd:9999"}) {
    ExpectOneLine({Join({"source", uri}, small), uri}, dir);
    ExpectOneLine({{"destination", uri}, uri}, dir);
    ExpectOneLine({Join({"run", "--listen", uri}, small), uri}, dir);
  }
  ExpectOneLine({{"destination", "tcp://192.0.2.123:0"}, "192.0.2.123", 1},
                dir);
  ExpectOneLine({{"destination", "unix:/nonexistent/s"}, "/nonexistent", 1},
                dir);
}

TEST(BadInputTest, APortInUse) {
  Migration migration;
  migration.StartDestination({"--peer-wait", "0"});
  const TempDir dir;
  ExpectOneLine(
      {{"destination", migration.address()}, migration.address().c_str(), 1},
      dir);
}

}  // namespace
}  // namespace mig::test
