// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What tests in the virtual machine share. They change its devices as they
// like: it is thrown away.
#ifndef MIGTRANSPORT_TESTS_VM_MACHINE_H_
#define MIGTRANSPORT_TESTS_VM_MACHINE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "migration.h"
#include "process.h"

namespace mig::test {

// An emulated machine on a busy one: what is right takes its time.
constexpr Millis kLimit(180000);

// The first word of a file, 0 if there is none.
uint64_t NumberIn(const std::string& path);
// Bytes that went over the wire between the two hosts.
uint64_t WireBytes();
// Of a counter in a source's or destination's report; 0 if it has none.
uint64_t CounterOf(const nlohmann::json& report, const std::string& name);
// The text of one of its capabilities.
std::string CapabilityText(const nlohmann::json& report,
                           const std::string& name);

// A migration to `uri` that has to work: answers the source's report. With
// `destination` and `source`, more arguments for each side.
nlohmann::json Migrate(const std::string& uri, const Arguments& destination,
                       const Arguments& source);

// A file of a guest's memory, with contents in every page.
std::string MakeImage(const TempDir& dir, uint64_t size);

}  // namespace mig::test

#endif  // MIGTRANSPORT_TESTS_VM_MACHINE_H_
