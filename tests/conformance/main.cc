// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// mig-conformance: proves each rule of mig_transport(7) on any plugin.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "config.h"
#include "pair.h"
#include "rules.h"
#include "signals.h"

namespace mig::conformance {
namespace {

constexpr int kUsageError = 2;

int Complain(const std::string& what) {
  fprintf(stderr, "mig-conformance: %s\n", what.c_str());
  return kUsageError;
}

// Answers an empty string, or what is wrong with them.
std::string ParseOptions(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      return "--option '" + option + "' is not NAME=VALUE";
    }
    GlobalConfig().options.emplace_back(option.substr(0, equals),
                                        option.substr(equals + 1));
  }
  return "";
}

// One migration before the first test, so that what a library opens once and
// keeps (a log, a random device) is not taken for a leak of the first test.
class WarmUp : public testing::Environment {
  void SetUp() override {
    Pair pair;
    (void)static_cast<bool>(pair.Ready());
  }
};

int Run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return Complain(std::string("unknown flag ") + argv[1]);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (GlobalConfig().plugin.empty()) {
    return Complain("--plugin is missing: give a plugin's name or path");
  }
  const std::string why = LoadPlugin();
  if (!why.empty()) return Complain(why);
  printf("plugin %s %s from %s, listening at %s\n", Ops()->name, Ops()->version,
         mig_plugin_path(LoadedPlugin()), GlobalConfig().listen_uri.c_str());
  InstallSigpipeCounter();
  StartWatchdog(300);
  testing::AddGlobalTestEnvironment(new WarmUp);  // gtest owns it
  const int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0 &&
      // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
      getenv("GTEST_TOTAL_SHARDS") == nullptr) {
    return Complain("no test has the name that --gtest_filter asks for");
  }
  return result;
}

// What the command line says, as it is parsed.
struct Arguments {
  std::vector<std::string> options;
  bool list_rules = false;
  bool real_time_only = false;
  int call_limit_ms = static_cast<int>(GlobalConfig().call_limit.count());
  int bound_seconds = static_cast<int>(GlobalConfig().bound.count());
};

void Define(CLI::App& app, Arguments& arguments) {
  Config& config = GlobalConfig();
  app.add_option("--plugin", config.plugin, "name or path of the plugin");
  app.add_option("--listen-uri", config.listen_uri,
                 "where destinations listen; {n} and {pid} are replaced");
  app.add_option("--option", arguments.options,
                 "an option of the plugin, NAME=VALUE; can be repeated")
      ->take_all()
      ->expected(1);
  app.add_flag("--no-simulated-clock", arguments.real_time_only,
               "leave out the tests in which the host's clock is simulated");
  app.add_option("--call-limit-ms", arguments.call_limit_ms,
                 "how long a call that must not wait may take")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--bound-seconds", arguments.bound_seconds,
                 "how long a test waits for what must happen")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--memory-gib", config.memory_gib,
                 "skip tests that need more, where guest memory is pinned")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--populates", config.populates,
               "the device populates the memory that is registered with it: "
               "pages that were not sent may be resident");
  app.add_option("--cycles", config.cycles,
                 "migrations of the leak test; of the random ones too, but 300 "
                 "at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--list-rules", arguments.list_rules,
               "print which tests prove which rule, and end");
  app.allow_extras();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Proves each rule of mig_transport(7) on a plugin. Every --gtest_... "
      "flag of GoogleTest is understood too.");
  Arguments arguments;
  Define(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  GlobalConfig().simulated_clock = !arguments.real_time_only;
  GlobalConfig().call_limit = milliseconds(arguments.call_limit_ms);
  GlobalConfig().bound = std::chrono::seconds(arguments.bound_seconds);
  std::vector<char*> gtest_arguments = {argv[0]};
  std::vector<std::string> extras = app.remaining();
  for (std::string& extra : extras) {
    if (extra.rfind("--gtest_", 0) != 0) {
      return Complain("unknown argument '" + extra + "': see --help");
    }
    gtest_arguments.push_back(extra.data());
  }
  const std::string wrong = ParseOptions(arguments.options);
  if (!wrong.empty()) return Complain(wrong);
  if (arguments.list_rules) return ListRules();
  const int count = static_cast<int>(gtest_arguments.size());
  gtest_arguments.push_back(nullptr);
  return Run(count, gtest_arguments.data());
}

}  // namespace
}  // namespace mig::conformance

int main(int argc, char** argv) { return mig::conformance::Main(argc, argv); }
