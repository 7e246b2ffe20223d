// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// source and destination on two hosts: two network namespaces, joined by a veth
// pair, over IPv4 and link-local IPv6 with a scope.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "migration.h"

namespace mig::test {
namespace {

constexpr Millis kLimit(60000);
constexpr char kIp[] = "/sbin/ip";

// Two namespaces that go with the object.
class TwoHosts {
 public:
  TwoHosts() : one_(Name("a")), two_(Name("b")) {
    good_ = Shell("exec 2>/dev/null; ip netns add " + one_ +
                  " && ip netns add " + two_ + " && ip -n " + one_ +
                  " link add v0 type veth peer name v0 netns " + two_) == 0;
    for (const auto& [host, number] : {std::pair(one_, std::string("1")),
                                       std::pair(two_, std::string("2"))}) {
      const std::string ip = "ip -n " + host;
      std::string set_up;
      for (const std::string& step :
           {" addr add 10.77.0." + number + "/24 dev v0 && ",
            " addr add fe80::" + number + "/64 dev v0 nodad && ",
            std::string(" link set v0 up && "),
            std::string(" link set lo up")}) {
        set_up.append(ip).append(step);
      }
      good_ = good_ && Shell(set_up) == 0;
    }
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  ~TwoHosts() {
    Shell("ip netns del " + one_ + " 2>/dev/null; ip netns del " + two_ +
          " 2>/dev/null");
  }

  bool good() const { return good_; }
  Arguments OnOne() const { return {kIp, "netns", "exec", one_}; }
  Arguments OnTwo() const { return {kIp, "netns", "exec", two_}; }

 private:
  static std::string Name(const char* which) {
    return "mig-test-" + std::to_string(getpid()) + which;
  }
  const std::string one_, two_;
  bool good_ = false;
};

class NetnsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NetnsTest, MigratesBetweenTwoHosts) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  const TwoHosts hosts;
  if (!hosts.good()) GTEST_SKIP() << "no network namespaces or veth here";
  const TempDir dir;
  const std::string uri = GetParam();
  Process destination(
      dir, Join(hosts.OnTwo(), {HostSim(), "destination", uri, "--plugin",
                                PluginName(), "--after", "100ms"}));
  ASSERT_TRUE(destination.WaitForText("listening at ", kLimit))
      << destination.Stderr();
  Process source(dir, Join(hosts.OnOne(), {HostSim(), "source", uri, "--plugin",
                                           PluginName(), "--memory", "32M",
                                           "--workload", "bank", "--json"}));
  EXPECT_EQ(source.Wait(kLimit), 0) << source.Stderr();
  EXPECT_EQ(destination.Wait(kLimit), 0) << destination.Stderr();
  const nlohmann::json json =
      nlohmann::json::parse(source.Stdout(), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.value("verified", false), true) << json.dump(2);
}

INSTANTIATE_TEST_SUITE_P(Addresses, NetnsTest,
                         ::testing::Values("tcp://10.77.0.2:7700",
                                           "tcp://[fe80::2%v0]:7700"));

}  // namespace
}  // namespace mig::test
