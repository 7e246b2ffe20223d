// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/session_options.h"

#include <algorithm>
#include <array>
#include <string>

#include "common/abi_glue.h"
#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

constexpr std::array kTable = {kKeyOption,
                               kKeyFileOption,
                               kPeerTimeoutOption,
                               kConnectTimeoutOption,
                               kHandshakeTimeoutOption,
                               kCloseTimeoutOption,
                               kMaxMessageOption};

mig_session_params Params() {
  mig_session_params params = {};
  params.size = sizeof(params);
  params.role = MIG_ROLE_SOURCE;
  params.attempt = 3;
  std::fill_n(params.vm_uuid, MIG_UUID_SIZE, uint8_t{0x42});
  return params;
}

TEST(SessionOptionsTest, EveryDefaultOfTheSharedOptionsIsValid) {
  Options options(kTable);
  for (const mig_option& option : kTable) {
    EXPECT_TRUE(options.Set(option.name, option.default_value).ok())
        << option.name;
  }
}

TEST(SessionOptionsTest, AHelloSaysWhatParametersAndOptionsDo) {
  Options options(kTable);
  ASSERT_TRUE(options.Set("max-message", "2M").ok());
  ASSERT_TRUE(options.Set("peer-timeout", "7s").ok());
  CommonHello hello;
  std::string key = "old";
  ASSERT_TRUE(FillHello(Params(), options, &hello, &key).ok());
  EXPECT_EQ(key, "");
  EXPECT_EQ(hello.auth, 0u);
  EXPECT_EQ(hello.role, uint32_t{MIG_ROLE_SOURCE});
  EXPECT_EQ(hello.attempt, 3u);
  EXPECT_EQ(hello.uuid[15], 0x42);
  EXPECT_EQ(hello.max_message, 2u << 20);
  EXPECT_EQ(hello.window, 8u << 20);
  EXPECT_EQ(hello.peer_timeout_ns, 7'000'000'000u);
  ASSERT_TRUE(options.Set("key", "secret").ok());
  ASSERT_TRUE(FillHello(Params(), options, &hello, &key).ok());
  EXPECT_EQ(key, "secret");
  EXPECT_EQ(hello.auth, 1u);
}

TEST(SessionOptionsTest, AHelloIsNotMadeOfWhatIsWrong) {
  Options options(kTable);
  CommonHello hello;
  std::string key;
  mig_session_params params = Params();
  params.attempt = 0;
  EXPECT_EQ(ErrorCode(FillHello(params, options, &hello, &key)),
            MIG_E_ARGUMENT);
  ASSERT_TRUE(options.Set("key-file", "/nonexistent/key").ok());
  EXPECT_EQ(ErrorCode(FillHello(Params(), options, &hello, &key)),
            MIG_E_OPTION);
}

TEST(AnswerQueryTest, OnlyThisVersionIsSpokenAndTheOtherIsNamed) {
  mig_transport_ops table = {};
  table.name = "some";
  const mig_transport_ops* ops = nullptr;
  mig_error error = {};
  error.size = sizeof(error);
  EXPECT_EQ(AnswerQuery(1, 1, &table, &ops, nullptr), MIG_OK);
  EXPECT_EQ(ops, &table);
  EXPECT_EQ(AnswerQuery(2, 9, &table, &ops, &error), MIG_E_VERSION);
  EXPECT_THAT(std::string(error.message),
              testing::HasSubstr("the some plugin speaks ABI version 1 only"));
  EXPECT_EQ(AnswerQuery(0, 0, &table, &ops, nullptr), MIG_E_VERSION);
  EXPECT_EQ(AnswerQuery(1, 1, &table, nullptr, &error), MIG_E_ARGUMENT);
}

}  // namespace
}  // namespace mig
