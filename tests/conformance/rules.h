// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef TESTS_CONFORMANCE_RULES_H_
#define TESTS_CONFORMANCE_RULES_H_

namespace mig::conformance {

// Prints each rule of mig_transport(7), and each case and hazard that a test
// names, with the tests that prove it. Answers 0, or 1 if a rule has none.
int ListRules();

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_RULES_H_
