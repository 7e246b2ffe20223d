// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the plugin says of itself, and its boundary.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "common/error.h"
#include "common/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tcp/counters.h"
#include "tcp/stream.h"

extern "C" int32_t mig_transport_query(uint32_t host_abi_min,
                                       uint32_t host_abi_max,
                                       const struct mig_transport_ops** ops,
                                       struct mig_error* error);

namespace mig::tcp {
namespace {

const struct mig_transport_ops& Ops() {
  const struct mig_transport_ops* ops = nullptr;
  EXPECT_EQ(mig_transport_query(1, 1, &ops, nullptr), MIG_OK);
  return *ops;
}

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() {
    struct mig_host_services services = {};
    services.size = sizeof(services);
    EXPECT_EQ(ops.context_create(&services, &context, nullptr), MIG_OK);
    error.size = sizeof(error);
    params.size = sizeof(params);
    params.attempt = 1;
    params.role = MIG_ROLE_SOURCE;
  }
  ~PluginTest() override { ops.context_destroy(context); }
  int32_t Create() {
    struct mig_session* session = nullptr;
    const int32_t code = ops.session_create(context, &params, &session, &error);
    ops.session_destroy(session);
    return code;
  }
  const struct mig_transport_ops& ops = Ops();
  struct mig_context* context = nullptr;
  struct mig_session_params params = {};
  struct mig_error error = {};
};

TEST_F(PluginTest, EveryOptionsDefaultIsInItsOwnRange) {
  const std::span table(ops.options, ops.option_count);
  Options options(table);
  std::set<std::string> names;
  for (const struct mig_option& option : table) {
    EXPECT_TRUE(names.insert(option.name).second);
    EXPECT_NE(std::string(option.help), "");
    EXPECT_TRUE(options.Set(option.name, option.default_value).ok())
        << option.name;
    EXPECT_EQ(
        ops.option_set(context, option.name, option.default_value, nullptr),
        MIG_OK);
  }
}

TEST_F(PluginTest, CountersHaveUniqueNamesAndThoseThatEveryPluginHas) {
  std::set<std::string> names;
  ASSERT_EQ(ops.counter_count, kCounterCount);
  for (uint32_t i = 0; i < ops.counter_count; ++i) {
    EXPECT_TRUE(names.insert(ops.counters[i].name).second);
  }
  for (const char* name :
       {"bytes-accepted", "bytes-sent", "bytes-received", "rounds-done"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(PluginTest, AKeyFileIsReadWithoutItsLineEndAndBadOnesAreNamed) {
  std::string path = ::testing::TempDir() + "keyXXXXXX";
  const UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  const auto write_key = [&file](const std::string& key) {
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    ASSERT_EQ(pwrite(file.get(), key.data(), key.size(), 0),
              static_cast<ssize_t>(key.size()));
  };
  ASSERT_EQ(ops.option_set(context, "key-file", path.c_str(), nullptr), MIG_OK);
  write_key("secret\r\n");
  EXPECT_EQ(Create(), MIG_OK);
  write_key(std::string(4096, 'k') + "\n");
  EXPECT_EQ(Create(), MIG_OK);
  for (const std::string& bad :
       {std::string(), std::string("\n\n"), std::string(4097, 'k'),
        std::string(100000, 'k')}) {
    write_key(bad);
    EXPECT_EQ(Create(), MIG_E_OPTION);
    EXPECT_THAT(error.message, ::testing::HasSubstr(path));
  }
  for (const char* other : {"/", "/no/such/file", "/dev/zero"}) {
    ops.option_set(context, "key-file", other, nullptr);
    EXPECT_EQ(Create(), MIG_E_OPTION) << other;
    EXPECT_THAT(error.message, ::testing::HasSubstr(other));
  }
  unlink(path.c_str());
}

TEST_F(PluginTest, ElementsShorterThanVersionOneAreRefused) {  // rule 1.3
  struct mig_session* session = nullptr;
  ASSERT_EQ(ops.session_create(context, &params, &session, nullptr), MIG_OK);
  struct mig_event event;
  size_t count = 0;
  EXPECT_EQ(
      ops.progress(session, &event, 1, sizeof(event) - 8, 0, &count, &error),
      MIG_E_STRUCT_SIZE);
  EXPECT_EQ(ops.progress(session, nullptr, 0, 0, 0, &count, &error), MIG_OK);
  struct mig_device device;
  EXPECT_EQ(ops.probe(context, &device, 1, sizeof(device) - 8, &count, &error),
            MIG_E_STRUCT_SIZE);
  ops.session_destroy(session);
}

TEST_F(PluginTest, ExtensionsAreRefusedUnlessOptional) {
  params.extensions = "a?,b?";
  EXPECT_EQ(Create(), MIG_OK);
  params.extensions = "a?,b";
  EXPECT_EQ(Create(), MIG_E_UNSUPPORTED);
  params.extensions = nullptr;
  params.role = 3;
  EXPECT_EQ(Create(), MIG_E_ARGUMENT);
  params.role = 1;
  params.flags = 1;
  EXPECT_EQ(Create(), MIG_E_ARGUMENT);
  params.flags = 0;
  params.size -= 8;
  EXPECT_EQ(Create(), MIG_E_STRUCT_SIZE);
}

}  // namespace
}  // namespace mig::tcp
