// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/plugin_host.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/mig_status.h"

namespace mig::sim {
namespace {

// The loader lists paths a line each; here every error is one line.
std::string JoinLines(const char* message) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(message, '\n', absl::SkipWhitespace());
  for (absl::string_view& line : lines) {
    line = absl::StripAsciiWhitespace(line);
  }
  std::string text;
  for (const absl::string_view line : lines) {
    const bool list = absl::EndsWith(text, ":");
    absl::StrAppend(&text, text.empty() ? "" : (list ? " " : "; "), line);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plugin>> Plugin::Open(
    absl::string_view name_or_path) {
  const std::string name(name_or_path);
  mig_plugin* plugin = nullptr;
  auto error = std::make_unique<mig_loader_error>();
  error->size = sizeof *error;
  const int32_t code = mig_loader_open(name.c_str(), &plugin, error.get());
  if (code != MIG_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("plugin '", name, "': ", JoinLines(error->message)));
  }
  return std::shared_ptr<const Plugin>(new Plugin(plugin));
}

std::vector<mig_option> Plugin::options() const {
  return CopyArray(ops_->options, ops_->option_count, ops_->option_size);
}

std::vector<mig_counter> Plugin::counters() const {
  return CopyArray(ops_->counters, ops_->counter_count, ops_->counter_size);
}

std::vector<std::string> PluginSearchDirs() {
  std::vector<std::string> dirs;
  for (size_t i = 0;; ++i) {
    const char* dir = mig_loader_search_dir(i);
    if (dir == nullptr) return dirs;
    dirs.emplace_back(dir);
  }
}

absl::StatusOr<std::unique_ptr<PluginContext>> PluginContext::Create(
    std::shared_ptr<const Plugin> plugin, const mig_host_services& services) {
  mig_context* context = nullptr;
  mig_error error = NewError();
  const int32_t code =
      plugin->ops().context_create(&services, &context, &error);
  if (code != MIG_OK) {
    return MigToStatus(
        code, error,
        absl::StrCat("creating a context of '", plugin->ops().name, "'"));
  }
  return std::unique_ptr<PluginContext>(
      new PluginContext(std::move(plugin), context));
}

PluginContext::~PluginContext() { ops().context_destroy(context_); }

absl::Status PluginContext::SetOption(const std::string& name,
                                      const std::string& value) {
  mig_error error = NewError();
  const int32_t code =
      ops().option_set(context_, name.c_str(), value.c_str(), &error);
  return MigToStatus(code, error,
                     absl::StrCat("option ", name, "=", value, " of plugin '",
                                  ops().name, "'"));
}

absl::StatusOr<std::string> PluginContext::GetOption(
    const std::string& name) const {
  std::string value(64, '\0');
  for (;;) {
    size_t needed = 0;
    mig_error error = NewError();
    const int32_t code = ops().option_get(context_, name.c_str(), value.data(),
                                          value.size(), &needed, &error);
    if (code < 0) {
      return MigToStatus(code, error, absl::StrCat("option ", name));
    }
    if (needed <= value.size()) return std::string(value.c_str());
    value.assign(needed, '\0');
  }
}

absl::StatusOr<std::vector<mig_device>> PluginContext::Probe() const {
  std::vector<mig_device> devices(8);
  for (;;) {
    size_t count = 0;
    mig_error error = NewError();
    const int32_t code = ops().probe(context_, devices.data(), devices.size(),
                                     sizeof(mig_device), &count, &error);
    if (code == MIG_E_UNSUPPORTED) return std::vector<mig_device>();
    if (code < 0) {
      return MigToStatus(code, error,
                         absl::StrCat("probing with '", ops().name, "'"));
    }
    const bool all = count <= devices.size();
    devices.resize(count);
    if (all) return devices;
  }
}

}  // namespace mig::sim
