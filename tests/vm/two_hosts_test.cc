// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Migrations over the wire between two RDMA devices of the kernel's.
#include <gtest/gtest.h>

#include <string>

#include "machine.h"

namespace mig::test {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMiB = 1 << 20;

// To `uri`, and over the wire, not inside one device.
void ExpectMigratesOverTheWire(const std::string& uri, const Arguments& more) {
  const uint64_t before = WireBytes();
  Migrate(uri, {},
          Join({"--memory", "16M", "--workload", "uniform:rate=4M"}, more));
  EXPECT_GT(WireBytes() - before, 16 * kMiB) << uri;
}

TEST(TwoHostsMigrate, Uniform) {
  ExpectMigratesOverTheWire("rdma://10.7.2.1:0", {});
}

TEST(TwoHostsMigrate, ByChunkOverFourQueuePairsWithAKey) {
  const Arguments options = {"--plugin-option", "registration=dynamic",
                             "--plugin-option", "chunk-size=1M",
                             "--plugin-option", "data-qps=4",
                             "--plugin-option", "key=two-hosts-two-hosts"};
  Migrate("rdma://10.7.2.1:0", options,
          Join({"--memory", "16M", "--workload", "uniform:rate=4M"}, options));
}

TEST(TwoHostsMigrate, ABankAndAFilesImage) {
  const TempDir dir;
  Migrate("rdma://10.7.2.1:0", {},
          {"--memory", "ram:16M", "--memory",
           "disk,backing=file:" + MakeImage(dir, 3000001), "--workload",
           "bank:accounts=2000"});
}

// No `--tracker`: what `auto` chooses has to converge with pinned memory.
TEST(TwoHostsMigrate, H09TheAutomaticTrackerConverges) {
  const Json json = Migrate(
      "rdma://10.7.2.1:0", {},
      {"--memory", "16M", "--workload", "hotset:size=1M,share=1", "--converge",
       "stop", "--max-rounds", "4", "--downtime-limit", "0"});
  ASSERT_GE(json["rounds"].size(), 3U);
  EXPECT_LT(json["rounds"].back().value("pages", 4096), 2048) << json.dump(2);
}

TEST(Ipv6Migrate, Global) {
  ExpectMigratesOverTheWire("rdma://[fd07:2::1]:0", {});
}

// Each side names its own end of the link.
TEST(Ipv6Migrate, LinkLocalWithScope) {
  Migration migration;
  migration.StartDestination({"--after", "100ms"}, "rdma://[fe80::2%v1]:7700");
  ASSERT_FALSE(HasFatalFailure());
  const TempDir dir;
  Process source(dir, {HostSim(), "source", "rdma://[fe80::2%v0]:7700",
                       "--plugin", "rdma", "--memory", "16M", "--json"});
  EXPECT_EQ(source.Wait(kLimit), 0)
      << source.Stderr() << migration.Transcript();
  EXPECT_EQ(migration.destination().Wait(kLimit), 0) << migration.Transcript();
  const Json json = Json::parse(source.Stdout(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << source.Stdout();
  EXPECT_EQ(json.value("verified", false), true);
}

}  // namespace
}  // namespace mig::test
