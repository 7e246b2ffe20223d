// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef TESTS_ABI_MIGRATE_H_
#define TESTS_ABI_MIGRATE_H_

#include <string>

#include "mig_transport.h"

namespace mig::abi {

// Migrates a few pages and a message between two sessions of this process,
// hands the guest over, closes, and destroys everything. Answers an empty
// string, or what went wrong.
std::string Migrate(const mig_transport_ops& ops);

}  // namespace mig::abi

#endif  // TESTS_ABI_MIGRATE_H_
