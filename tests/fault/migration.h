// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_TESTS_FAULT_MIGRATION_H_
#define MIGTRANSPORT_TESTS_FAULT_MIGRATION_H_

#include <memory>
#include <string>
#include <vector>

#include "process.h"

namespace mig::test {

using Arguments = std::vector<std::string>;

// The program under test, as the build or MIG_HOST_SIM has it.
std::string HostSim();
// What it migrates over: MIG_TEST_PLUGIN, "NAME [OPTION=VALUE ...]".
std::string PluginName();
Arguments PluginArguments();
// The place of this machine, or of another if MIG_TEST_HOST names one.
std::string ListenHost();
// Where a destination may listen there.
std::string LocalUri();

Arguments Join(Arguments first, const Arguments& second);

// Two sides that a test starts one by one, and what both wrote into their run
// log.
class Migration {
 public:
  // Starts the destination and waits until it listens. An empty `uri` is a free
  // port on this machine.
  void StartDestination(const Arguments& more, const std::string& uri = "");
  // Starts a source that migrates to where the destination listens.
  void StartSource(const Arguments& more);

  Process& source() { return *source_; }
  Process& destination() { return *destination_; }
  // Where the destination listens.
  const std::string& address() const { return address_; }
  const TempDir& dir() const { return dir_; }

  // Everything that either side said, for failures.
  std::string Transcript() const;
  std::string RunLog() const { return ReadFile(dir_.Path("run.log")); }
  // Whether `side` ever let the guest run.
  bool Ran(const std::string& side) const;
  // The time at which both sides ran a guest, "" if there was none. A side that
  // was killed at `killed_ns` ran no longer than that.
  std::string Overlap(const std::string& killed_side, uint64_t killed_ns) const;

 private:
  TempDir dir_;
  std::string address_;
  std::unique_ptr<Process> destination_, source_;
};

// CLOCK_MONOTONIC, as run logs have it.
uint64_t NowNs();

}  // namespace mig::test

#endif  // MIGTRANSPORT_TESTS_FAULT_MIGRATION_H_
