// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "config.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

namespace mig::conformance {
namespace {

mig_plugin* g_plugin = nullptr;

void ReplaceAll(std::string& text, std::string_view what,
                const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// Where a plugin that names these schemes can be reached without privileges
// or a device; empty if nothing is known.
std::string DefaultUri(const std::string& name) {
  if (name == "tcp") return "tcp://127.0.0.1:0";
  if (name == "example") return "example:conformance-{pid}-{n}";
  return "";
}

}  // namespace

Config& GlobalConfig() {
  static Config config;
  return config;
}

mig_plugin* LoadedPlugin() { return g_plugin; }

const mig_transport_ops* Ops() {
  return g_plugin == nullptr ? nullptr : mig_plugin_ops(g_plugin);
}

std::string LoadPlugin() {
  Config& config = GlobalConfig();
  mig_loader_error error = {};
  error.size = sizeof(error);
  if (mig_loader_open(config.plugin.c_str(), &g_plugin, &error) != MIG_OK) {
    return error.message;
  }
  if (config.listen_uri.empty()) config.listen_uri = DefaultUri(Ops()->name);
  if (config.listen_uri.empty()) {
    return std::string("the plugin '") + Ops()->name + "' serves the schemes " +
           Ops()->uri_schemes +
           ": say with --listen-uri where a destination can listen";
  }
  return "";
}

std::string NextListenUri() {
  static std::atomic<uint64_t> counter{0};
  std::string uri = GlobalConfig().listen_uri;
  ReplaceAll(uri, "{n}", std::to_string(++counter));
  ReplaceAll(uri, "{pid}", std::to_string(getpid()));
  return uri;
}

}  // namespace mig::conformance
