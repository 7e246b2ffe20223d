// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The option network through the ABI, as a simulating host uses it.
#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mig_transport.h"

extern "C" int32_t mig_transport_query(uint32_t host_abi_min,
                                       uint32_t host_abi_max,
                                       const struct mig_transport_ops** ops,
                                       struct mig_error* error);

namespace mig::tcp {
namespace {

using ::testing::HasSubstr;

const struct mig_transport_ops& Ops() {
  const struct mig_transport_ops* ops = nullptr;
  EXPECT_EQ(mig_transport_query(1, 1, &ops, nullptr), MIG_OK);
  return *ops;
}

class Host {
 public:
  explicit Host(uint32_t flags, uint64_t* now_ns) {
    struct mig_host_services services = {};
    services.size = sizeof(services);
    services.flags = flags;
    services.host = now_ns;
    services.clock_ns = [](void* now) { return *static_cast<uint64_t*>(now); };
    error.size = sizeof(error);
    EXPECT_EQ(Ops().context_create(&services, &context, &error), MIG_OK);
  }
  ~Host() {
    Ops().session_destroy(session);
    Ops().context_destroy(context);
  }
  int32_t Create(uint32_t role, const char* network) {
    EXPECT_EQ(Ops().option_set(context, "network", network, &error), MIG_OK);
    struct mig_session_params params = {};
    params.size = sizeof(params);
    params.role = role;
    params.attempt = 1;
    return Ops().session_create(context, &params, &session, &error);
  }
  // Progress if it is busy; whether it was.
  bool Step(uint64_t* deadline_ns) {
    if (Ops().arm(session, deadline_ns, nullptr) != MIG_BUSY) return false;
    std::array<struct mig_event, 4> events;
    size_t count = 0;
    EXPECT_EQ(Ops().progress(session, events.data(), events.size(),
                             sizeof(events[0]), 0, &count, &error),
              MIG_OK);
    for (size_t i = 0; i < count; ++i) {
      if (events[i].type == MIG_EVENT_CONNECTED)
        connected_ns = events[i].time_ns;
    }
    return true;
  }

  struct mig_context* context = nullptr;
  struct mig_session* session = nullptr;
  struct mig_error error = {};
  uint64_t connected_ns = 0;
};

TEST(SimPluginTest, TwoContextsOfOneNameConnect) {
  uint64_t now_ns = 5;
  Host source(MIG_HOST_SIMULATED_CLOCK, &now_ns);
  Host destination(MIG_HOST_SIMULATED_CLOCK, &now_ns);
  ASSERT_EQ(source.Create(MIG_ROLE_SOURCE, "sim:abi,seed=1,latency=1ms"),
            MIG_OK);
  ASSERT_EQ(
      destination.Create(MIG_ROLE_DESTINATION, "sim:abi,seed=2,latency=2ms"),
      MIG_OK);
  ASSERT_EQ(Ops().listen(destination.session, "tcp://:0", nullptr), MIG_OK);
  std::array<char, 64> uri;
  size_t needed = 0;
  ASSERT_EQ(Ops().local_address(destination.session, uri.data(), uri.size(),
                                &needed, nullptr),
            MIG_OK);
  EXPECT_STREQ(uri.data(), "tcp://[::]:49152");
  ASSERT_EQ(Ops().connect(source.session, uri.data(), nullptr), MIG_OK);
  while (source.connected_ns == 0 || destination.connected_ns == 0) {
    std::array<uint64_t, 2> due;
    const bool source_stepped = source.Step(&due[0]);
    if (destination.Step(&due[1]) || source_stepped) continue;
    ASSERT_GT(std::min(due[0], due[1]), now_ns);
    ASSERT_NE(std::min(due[0], due[1]), MIG_NO_DEADLINE);
    now_ns = std::min(due[0], due[1]);
  }
  // SYN and its answer, HELLOs, then the AUTHs: three times there and back.
  EXPECT_EQ(source.connected_ns, 5u + 9'000'000);
  EXPECT_EQ(destination.connected_ns, 5u + 7'000'000);
}

TEST(SimPluginTest, IsRefusedUnderARealClockAndWhenItIsWrong) {
  uint64_t now_ns = 0;
  Host real(0, &now_ns);
  EXPECT_EQ(real.Create(MIG_ROLE_SOURCE, "sim:abi"), MIG_E_OPTION);
  EXPECT_THAT(real.error.message, HasSubstr("clock is simulated"));
  EXPECT_EQ(real.Create(MIG_ROLE_SOURCE, ""), MIG_OK);
  Host simulated(MIG_HOST_SIMULATED_CLOCK, &now_ns);
  EXPECT_EQ(simulated.Create(MIG_ROLE_SOURCE, "sym:abi"), MIG_E_OPTION);
  EXPECT_THAT(simulated.error.message, HasSubstr("sim:NAME"));
  EXPECT_EQ(simulated.Create(MIG_ROLE_SOURCE, "sim:abi,latency=fast"),
            MIG_E_OPTION);
  EXPECT_THAT(simulated.error.message, HasSubstr("a time"));
}

}  // namespace
}  // namespace mig::tcp
