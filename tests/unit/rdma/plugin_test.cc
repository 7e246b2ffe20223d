// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the plugin says of itself.
#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mig_transport.h"

extern "C" int32_t mig_transport_query(uint32_t host_abi_min,
                                       uint32_t host_abi_max,
                                       const struct mig_transport_ops** ops,
                                       struct mig_error* error);

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RdmaPlugin : public ::testing::Test {
 protected:
  RdmaPlugin() {
    EXPECT_EQ(mig_transport_query(1, 1, &ops_, nullptr), MIG_OK);
    mig_host_services services = {};
    services.size = sizeof(services);
    EXPECT_EQ(ops_->context_create(&services, &context_, nullptr), MIG_OK);
  }
  ~RdmaPlugin() override { ops_->context_destroy(context_); }
  // What making a source with these options answers, and says.
  int32_t CreateSource() {
    mig_session_params params = {};
    params.size = sizeof(params);
    params.role = MIG_ROLE_SOURCE;
    params.attempt = 1;
    mig_session* session = nullptr;
    mig_error error = {};
    error.size = sizeof(error);
    const int32_t status =
        ops_->session_create(context_, &params, &session, &error);
    message_ = error.message;
    return status;
  }

  std::vector<mig_device> Probe(const char* device) {
    EXPECT_EQ(ops_->option_set(context_, "device", device, nullptr), MIG_OK);
    std::vector<mig_device> devices(16);
    size_t count = 0;
    EXPECT_EQ(ops_->probe(context_, devices.data(), devices.size(),
                          sizeof(devices[0]), &count, nullptr),
              MIG_OK);
    devices.resize(count);
    return devices;
  }

  const struct mig_transport_ops* ops_ = nullptr;
  struct mig_context* context_ = nullptr;
  std::string message_;
};

TEST_F(RdmaPlugin, EveryDefaultIsValid) {
  for (uint32_t i = 0; i < ops_->option_count; ++i) {
    const struct mig_option& option = ops_->options[i];
    if (option.type == MIG_OPTION_STRING) continue;
    EXPECT_EQ(
        ops_->option_set(context_, option.name, option.default_value, nullptr),
        MIG_OK)
        << option.name;
  }
}

TEST_F(RdmaPlugin, C19WithoutADeviceItNeverFallsBackSilently) {
  ASSERT_EQ(ops_->option_set(context_, "device", "soft:nonsense", nullptr),
            MIG_OK);
  EXPECT_EQ(CreateSource(), MIG_E_OPTION) << message_;
}

TEST_F(RdmaPlugin, ProbeShowsPortsGidsAndWhatTheLadderComesTo) {
  const std::vector<mig_device> devices = Probe("soft:mlx5,addresses=10.0.0.1");
  ASSERT_EQ(devices.size(), 5u);
  EXPECT_EQ(devices[0].flags, MIG_DEVICE_USABLE);
  EXPECT_EQ(devices[0].port, 1u);
  EXPECT_EQ(devices[0].speed_bps, 100'000'000'000u);
  EXPECT_THAT(devices[0].detail, HasSubstr("RoCE, MTU 4096"));
  EXPECT_THAT(devices[0].detail, HasSubstr("gave 32/2/"));
  EXPECT_THAT(devices[0].detail, Not(HasSubstr("suggests")));
  // rdma_cm connects by version 2.
  EXPECT_EQ(devices[3].flags, 0u);
  EXPECT_THAT(devices[3].detail, HasSubstr("GID 2=::ffff:10.0.0.1, RoCE v1"));
  EXPECT_EQ(devices[4].flags, MIG_DEVICE_USABLE);
  EXPECT_STREQ(devices[4].address, "10.0.0.1");
  EXPECT_STREQ(devices[4].detail, "GID 3=::ffff:10.0.0.1, RoCE v2");
}

TEST_F(RdmaPlugin, ProbeSuggestsOptionsByWhatTheDeviceHas) {
  EXPECT_THAT(
      Probe("soft:mlx5,odp=on,max-qp-wr=256,inline-grant=half").front().detail,
      HasSubstr("suggests control-inline=28, queue-depth=256, "
                "registration=odp"));
}

TEST_F(RdmaPlugin, ProbeOfIwarpListsNoGids) {
  const std::vector<mig_device> devices = Probe("soft:siw");
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_THAT(devices[0].detail, HasSubstr("iWARP"));
  EXPECT_THAT(devices[0].detail,
              HasSubstr("ex EOPNOTSUPP, plain gave 32/2/56"));
}

// Each a wrong value of an option that chooses the path.
TEST_F(RdmaPlugin, APathThatCanNotBeIsRefusedWhenASessionIsMade) {
  ASSERT_EQ(ops_->option_set(context_, "device", "soft:mlx5,addresses=10.0.0.1",
                             nullptr),
            MIG_OK);
  const std::array<std::array<const char*, 3>, 4> wrong = {{
      {"service-level", "16", "'16' does not exist: give 0 to 15"},
      {"service-level", "high", "'high' does not exist"},
      {"gid", "10.0.0.7", "3=::ffff:10.0.0.1"},
      {"gid", "2", "not RoCE v2"},
  }};
  for (const auto& [name, value, message] : wrong) {
    ASSERT_EQ(ops_->option_set(context_, name, value, nullptr), MIG_OK);
    EXPECT_EQ(CreateSource(), MIG_E_OPTION);
    EXPECT_THAT(message_, HasSubstr(message));
    ASSERT_EQ(ops_->option_set(context_, name, "", nullptr), MIG_OK);
  }
  ASSERT_EQ(ops_->option_set(context_, "gid", "3", nullptr), MIG_OK);
  ASSERT_EQ(ops_->option_set(context_, "source-address", "10.0.0.1", nullptr),
            MIG_OK);
  EXPECT_EQ(CreateSource(), MIG_E_OPTION);
  EXPECT_THAT(message_, HasSubstr("leave one out"));
}

TEST_F(RdmaPlugin, AChunkSizeThatIsNoPowerOfTwoIsRefused) {
  ASSERT_EQ(ops_->option_set(context_, "device", "soft", nullptr), MIG_OK);
  ASSERT_EQ(ops_->option_set(context_, "chunk-size", "3M", nullptr), MIG_OK);
  EXPECT_EQ(CreateSource(), MIG_E_OPTION);
}

}  // namespace
}  // namespace mig::rdma
