// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the command line says about the plugin under test, and the little that
// differs between plugins. Everything else is the same for each of them.
#ifndef TESTS_CONFORMANCE_CONFIG_H_
#define TESTS_CONFORMANCE_CONFIG_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "mig_loader.h"
#include "mig_transport.h"

namespace mig::conformance {

struct Config {
  std::string plugin;  // a name or a path
  // Where destinations listen. {n} becomes a number that is used once in this
  // process, {pid} the process.
  std::string listen_uri;
  std::vector<std::pair<std::string, std::string>> options;
  // False for a plugin whose device or library keeps time by itself.
  bool simulated_clock = true;
  // How long a call that must not block may take before it counts as blocking.
  // The contract says "does not wait"; this is far above any scheduling delay.
  std::chrono::milliseconds call_limit{1000};
  // How long a test waits for what must happen. The contract's own bounds are
  // seconds; only a failing test waits as long as this.
  std::chrono::seconds bound{30};
  // Cycles of connect, migrate and close in the leak test; handovers by chance
  // are as many, but 300 at most.
  int cycles = 1000;
  // What a test may need of memory, in GiB; those that need more are skipped.
  int memory_gib = 1024;
  // What is registered with the device is populated by that, sent or not.
  bool populates = false;
};

// The one of this process; main fills it before the first test.
Config& GlobalConfig();

// The plugin under test, loaded once; null before main has loaded it.
const mig_transport_ops* Ops();
mig_plugin* LoadedPlugin();
// Loads GlobalConfig().plugin and fills what follows from its name. Answers an
// empty string, or why it can't be used.
std::string LoadPlugin();

// An URI that no earlier test listened at.
std::string NextListenUri();

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_CONFIG_H_
