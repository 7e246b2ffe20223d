// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/verbs_error.h"

#include <limits>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::verbs {
namespace {

TEST(VerbsError, EveryConventionComesToAPositiveErrno) {
  EXPECT_EQ(ErrnoOfCall([] { return 0; }), 0);
  EXPECT_EQ(ErrnoOfCall([] { return ENOMEM; }), ENOMEM);
  EXPECT_EQ(ErrnoOfCall([] { return -ENOMEM; }), ENOMEM);
  EXPECT_EQ(ErrnoOfCall([] {
              errno = ENOSPC;
              return -1;
            }),
            ENOSPC);
}

TEST(VerbsError, AFailureWithoutAReasonIsStillOne) {
  errno = EINVAL;  // what an earlier call left is not this one's reason
  EXPECT_EQ(ErrnoOfCall([] { return -1; }), kNoReason);
  EXPECT_EQ(ErrnoOf(std::numeric_limits<int>::min(), 0), kNoReason);
  int failure = 0;
  errno = EINVAL;
  EXPECT_EQ(ObjectOfCall(&failure, []() -> int* { return nullptr; }), nullptr);
  EXPECT_EQ(failure, kNoReason);
}

TEST(VerbsError, ASuccessIgnoresErrno) {
  int object = 0;
  int failure = -1;
  EXPECT_EQ(ObjectOfCall(&failure,
                         [&object] {
                           errno = EINVAL;
                           return &object;
                         }),
            &object);
  EXPECT_EQ(failure, 0);
  EXPECT_EQ(ErrnoOfCall([] {
              errno = EINVAL;
              return 0;
            }),
            0);
}

TEST(VerbsError, ANullTellsItsErrno) {
  int failure = 0;
  ObjectOfCall(&failure, []() -> int* {
    errno = ENOSPC;
    return nullptr;
  });
  EXPECT_EQ(failure, ENOSPC);
}

// C18: a port in use is told by two errnos.
TEST(VerbsError, C18CodesSayWhatBroke) {
  EXPECT_EQ(CodeOfErrno(EADDRINUSE), MIG_E_ADDRESS);
  EXPECT_EQ(CodeOfErrno(EADDRNOTAVAIL), MIG_E_ADDRESS);
  EXPECT_EQ(CodeOfErrno(EMFILE), MIG_E_LIMIT);
  EXPECT_EQ(CodeOfErrno(EACCES), MIG_E_PERMISSION);
  EXPECT_EQ(CodeOfErrno(ENOMEM), MIG_E_MEMORY);
  EXPECT_EQ(CodeOfErrno(EIO), MIG_E_DEVICE);
  EXPECT_TRUE(StatusOfErrno("x", 0).ok());
  const absl::Status status = StatusOfErrno("can't make a queue", ENOSPC);
  EXPECT_EQ(ErrorErrno(status), ENOSPC);
  EXPECT_EQ(std::string(status.message()),
            "can't make a queue: No space left on device");
}

}  // namespace
}  // namespace mig::verbs
