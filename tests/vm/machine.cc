// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "machine.h"

#include <gtest/gtest.h>

#include <fstream>

namespace mig::test {

using Json = nlohmann::json;

uint64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  file >> number;
  return number;
}

uint64_t WireBytes() {
  return NumberIn("/sys/class/net/v0/statistics/tx_bytes");
}

uint64_t CounterOf(const Json& report, const std::string& name) {
  return report.value("counters", Json::object()).value(name, uint64_t{0});
}

std::string CapabilityText(const Json& report, const std::string& name) {
  for (const Json& each : report["caps"]["details"]) {
    if (each.value("name", "") == name) return each.value("text", "");
  }
  return "no capability " + name;
}

Json Migrate(const std::string& uri, const Arguments& destination,
             const Arguments& source) {
  Migration migration;
  migration.StartDestination(Join({"--after", "100ms"}, destination), uri);
  if (::testing::Test::HasFatalFailure()) return Json::object();
  migration.StartSource(Join({"--json"}, source));
  EXPECT_EQ(migration.source().Wait(kLimit), 0) << migration.Transcript();
  EXPECT_EQ(migration.destination().Wait(kLimit), 0) << migration.Transcript();
  Json json = Json::parse(migration.source().Stdout(), nullptr, false);
  if (!json.is_object()) json = Json::object();
  EXPECT_EQ(json.value("outcome", ""), "migrated") << migration.Transcript();
  EXPECT_EQ(json.value("verified", false), true) << migration.Transcript();
  return json;
}

std::string MakeImage(const TempDir& dir, uint64_t size) {
  std::string path = dir.Path("image");
  std::ofstream file(path, std::ios::binary);
  for (uint64_t i = 0; i < size; ++i) file.put(static_cast<char>(i * 7 >> 3));
  return path;
}

}  // namespace mig::test
