// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "loaded.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#if defined(__SANITIZE_THREAD__)
// The dynamic linker fills a link_map, and allocates what belongs to it, under
// a lock that tsan doesn't see.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {
  return "race:find_query\nrace:rtld-malloc.h\n";
}
#endif

namespace mig::abi {
namespace {

size_t CountEntries(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Loaded::Loaded(const std::string& name_or_path) {
  code_ = mig_loader_open(name_or_path.c_str(), &plugin_, &error_);
}

TempDir::TempDir() {
  std::string name = std::filesystem::temp_directory_path() / "mig-abi-XXXXXX";
  path_ = mkdtemp(name.data()) == nullptr ? "/nonexistent" : name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

// Tests change the environment from their only thread.
PluginPath::PluginPath(const std::string& value) {
  const char* before =
      getenv(MIG_LOADER_PATH_VARIABLE);  // NOLINT(concurrency-mt-unsafe)
  before_ = before == nullptr ? "" : before;
  setenv(MIG_LOADER_PATH_VARIABLE, value.c_str(),
         1);  // NOLINT(concurrency-mt-unsafe)
}

PluginPath::~PluginPath() {
  setenv(MIG_LOADER_PATH_VARIABLE, before_.c_str(),
         1);  // NOLINT(concurrency-mt-unsafe)
}

size_t CountFds() { return CountEntries("/proc/self/fd"); }

size_t CountThreads() { return CountEntries("/proc/self/task"); }

size_t CountMappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

size_t AnonymousKib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  size_t kib = 0;
  while (rollup >> word) {
    if (word == "Anonymous:") rollup >> kib;
  }
  return kib;
}

}  // namespace mig::abi
