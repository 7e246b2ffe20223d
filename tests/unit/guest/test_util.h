// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_TESTS_UNIT_GUEST_TEST_UTIL_H_
#define MIGTRANSPORT_TESTS_UNIT_GUEST_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "guest/guest_memory.h"

namespace mig::sim {

#define MIG_ASSERT_OK(expression)                          \
  do {                                                     \
    const absl::Status mig_status = (expression);          \
    ASSERT_TRUE(mig_status.ok()) << mig_status.ToString(); \
  } while (false)

#define MIG_EXPECT_OK(expression)                          \
  do {                                                     \
    const absl::Status mig_status = (expression);          \
    EXPECT_TRUE(mig_status.ok()) << mig_status.ToString(); \
  } while (false)

// Guest memory of block specs that must be good.
inline GuestMemory MakeMemory(const std::vector<std::string>& texts) {
  std::vector<BlockSpec> specs;
  specs.reserve(texts.size());
  for (const std::string& text : texts) {
    specs.push_back(ParseBlockSpec(text).value());
  }
  return GuestMemory::Create(specs).value();
}

// Copies as a transport does: the kernel reads the guest's memory, at any
// moment, so no thread of ours races with the guest's writes.
inline void KernelCopy(void* to, const void* from, size_t length) {
  while (length > 0) {
    iovec local = {to, length};
    iovec remote = {const_cast<void*>(from), length};
    const long copied =
        syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
    ASSERT_GT(copied, 0);
    to = static_cast<char*>(to) + copied;
    from = static_cast<const char*>(from) + copied;
    length -= static_cast<size_t>(copied);
  }
}

// Resident kilobytes of this process.
inline long ResidentKib() {
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  statm >> size >> resident;
  return resident * 4;
}

inline bool UnderSanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

// Expects an error of `code` whose one-line message has all of `parts`.
inline void ExpectError(const absl::Status& status, absl::StatusCode code,
                        const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  const std::string message(status.message());
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
  for (const std::string& part : parts) {
    EXPECT_THAT(message, testing::HasSubstr(part));
  }
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_TESTS_UNIT_GUEST_TEST_UTIL_H_
