// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/error.h"

#include <cerrno>
#include <cstring>

#include "common/abi_glue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

TEST(ErrorTest, CodeAndErrnoSurviveAnnotation) {
  const absl::Status status = Annotate(
      MakeSystemError(MIG_E_PEER_LOST, "sending failed", EPIPE), "round 3: ");
  EXPECT_EQ(ErrorCode(status), MIG_E_PEER_LOST);
  EXPECT_EQ(ErrorErrno(status), EPIPE);
  EXPECT_EQ(status.message(), "round 3: sending failed: Broken pipe");
  EXPECT_EQ(ErrorCode(absl::OkStatus()), MIG_OK);
  EXPECT_EQ(ErrorCode(absl::InternalError("x")), MIG_E_INTERNAL);
}

// A peer's text may hold anything.
TEST(ErrorTest, AMessageIsOneLineWithoutControlCharacters) {
  struct mig_error error = {};
  error.size = sizeof(error);
  EXPECT_EQ(FillError(MakeError(MIG_E_PEER_FAILED, "a\nb\x1b[2J\x7f"), &error),
            MIG_E_PEER_FAILED);
  EXPECT_STREQ(error.message, "a b [2J ");
  EXPECT_EQ(
      FillError(MakeError(MIG_E_PEER_FAILED, std::string(9999, 'x')), &error),
      MIG_E_PEER_FAILED);
  EXPECT_EQ(std::strlen(error.message), sizeof(error.message) - 1);
}

// Rules 1.1 and 1.5.
TEST(ErrorTest, FillsExactlyWhatTheCallerHas) {
  struct {
    struct mig_error error;
    unsigned char newer[16];
    unsigned char canary;
  } caller;
  std::memset(&caller, 0xaa, sizeof(caller));
  caller.error.size = sizeof(caller.error) + sizeof(caller.newer);
  FillPlainError(MIG_E_MEMORY, "short", &caller.error);
  for (const unsigned char byte : caller.newer) EXPECT_EQ(byte, 0);
  EXPECT_EQ(caller.error.message[sizeof(caller.error.message) - 1], 0);
  EXPECT_EQ(caller.canary, 0xaa);
  std::memset(&caller, 0xaa, sizeof(caller));
  caller.error.size = 20;  // four bytes of message
  FillPlainError(MIG_E_MEMORY, "short", &caller.error);
  EXPECT_STREQ(caller.error.message, "sho");
  EXPECT_EQ(static_cast<unsigned char>(caller.error.message[4]), 0xaa);
  EXPECT_EQ(FillPlainError(MIG_E_MEMORY, "x", nullptr), MIG_E_MEMORY);
}

// Rule 1.4.
TEST(GlueTest, ALongerStructIsAcceptedIfItsRestIsZero) {
  unsigned char bytes[32] = {};
  EXPECT_EQ(ErrorCode(CheckStruct(bytes, 15, 16, 16, "x")), MIG_E_STRUCT_SIZE);
  EXPECT_TRUE(CheckStruct(bytes, 16, 16, 16, "x").ok());
  EXPECT_TRUE(CheckStruct(bytes, 32, 16, 16, "x").ok());
  bytes[31] = 1;
  EXPECT_EQ(ErrorCode(CheckStruct(bytes, 32, 16, 16, "x")), MIG_E_STRUCT_SIZE);
}

TEST(GlueTest, TextIsCopiedWithItsNulAndCutAtTheSize) {
  char text[4] = {'x', 'x', 'x', 'x'};
  size_t needed = 0;
  CopyText("hello", text, sizeof(text), &needed);
  EXPECT_STREQ(text, "hel");
  EXPECT_EQ(needed, 6u);
  CopyText("hello", nullptr, 0, &needed);
  EXPECT_EQ(needed, 6u);
}

}  // namespace
}  // namespace mig
