// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Small things that the tests of loader and ABI share.
#ifndef TESTS_ABI_LOADED_H_
#define TESTS_ABI_LOADED_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "mig_loader.h"

namespace mig::abi {

// A zeroed struct of the ABI with its size set.
template <typename T>
T Sized() {
  T object = {};
  object.size = sizeof(object);
  return object;
}

// What mig_loader_open answered; closes the plugin.
class Loaded {
 public:
  explicit Loaded(const std::string& name_or_path);
  ~Loaded() { mig_loader_close(plugin_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  int32_t code() const { return code_; }
  std::string message() const { return error_.message; }
  bool ok() const { return plugin_ != nullptr; }
  const mig_plugin* plugin() const { return plugin_; }
  const mig_transport_ops& ops() const { return *mig_plugin_ops(plugin_); }
  std::string path() const { return mig_plugin_path(plugin_); }

 private:
  mig_loader_error error_ = Sized<mig_loader_error>();
  mig_plugin* plugin_ = nullptr;
  int32_t code_;
};

// A directory that goes away with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// MIG_TRANSPORT_PLUGIN_PATH for a scope.
class PluginPath {
 public:
  explicit PluginPath(const std::string& value);
  ~PluginPath();
  PluginPath(const PluginPath&) = delete;
  PluginPath& operator=(const PluginPath&) = delete;

 private:
  std::string before_;
};

// What this process holds.
size_t CountFds();
size_t CountThreads();
size_t CountMappings();
// Memory of its own in place, exactly: pages of files come and go with the
// page cache (proc_pid_smaps_rollup; statm counts those too, and in batches).
size_t AnonymousKib();

}  // namespace mig::abi

#endif  // TESTS_ABI_LOADED_H_
