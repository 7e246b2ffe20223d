// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The unit tests' helpers say what they expect by GoogleTest: what does not
// hold ends a fuzzer like any other finding.
#include "gtest/gtest.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  testing::GTEST_FLAG(break_on_failure) = true;
  return 0;
}
