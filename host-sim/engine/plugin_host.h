// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_PLUGIN_HOST_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_PLUGIN_HOST_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mig_loader.h"
#include "mig_transport.h"

namespace mig::sim {

// Copies an array that a plugin gave: `count` elements, `element_size` apart.
// What an older plugin's elements lack reads as zero.
template <typename T>
std::vector<T> CopyArray(const T* first, uint64_t count,
                         uint64_t element_size) {
  std::vector<T> result;
  if (first == nullptr) return result;
  const auto* at = reinterpret_cast<const char*>(first);
  for (uint64_t i = 0; i < count; ++i, at += element_size) {
    T element = {};
    std::memcpy(&element, at, std::min<uint64_t>(sizeof(T), element_size));
    result.push_back(element);
  }
  return result;
}

// One loaded plugin. Stays mapped to the end of the process.
class Plugin {
 public:
  // By name or path, as mig_loader_open. NotFound-like failures come with each
  // path that was tried, in one line. Any thread.
  static absl::StatusOr<std::shared_ptr<const Plugin>> Open(
      absl::string_view name_or_path);

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() { mig_loader_close(plugin_); }

  // The completed table; no op in it is NULL.
  const mig_transport_ops& ops() const { return *ops_; }
  // The file it came from.
  std::string path() const { return mig_plugin_path(plugin_); }
  // The table's size as the plugin gave it.
  uint32_t ops_size() const { return mig_plugin_ops_size(plugin_); }
  std::vector<mig_option> options() const;
  std::vector<mig_counter> counters() const;

 private:
  explicit Plugin(mig_plugin* plugin)
      : plugin_(plugin), ops_(mig_plugin_ops(plugin)) {}

  mig_plugin* plugin_;
  const mig_transport_ops* ops_;
};

// The directories in which plugins are looked for, in order.
std::vector<std::string> PluginSearchDirs();

// A plugin with host services and options. Calls are serialised by the caller.
class PluginContext {
 public:
  // `services` is copied, its `host` must outlive the context.
  static absl::StatusOr<std::unique_ptr<PluginContext>> Create(
      std::shared_ptr<const Plugin> plugin, const mig_host_services& services);

  PluginContext(const PluginContext&) = delete;
  PluginContext& operator=(const PluginContext&) = delete;
  // After every session of it.
  ~PluginContext();

  const Plugin& plugin() const { return *plugin_; }
  const mig_transport_ops& ops() const { return plugin_->ops(); }
  mig_context* get() const { return context_; }

  // Sets one option from its text. InvalidArgument names option and range.
  absl::Status SetOption(const std::string& name, const std::string& value);
  // The value that holds now, as text.
  absl::StatusOr<std::string> GetOption(const std::string& name) const;
  // What can be used on this machine. Unimplemented is an empty list.
  absl::StatusOr<std::vector<mig_device>> Probe() const;

 private:
  PluginContext(std::shared_ptr<const Plugin> plugin, mig_context* context)
      : plugin_(std::move(plugin)), context_(context) {}

  std::shared_ptr<const Plugin> plugin_;
  mig_context* context_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_PLUGIN_HOST_H_
