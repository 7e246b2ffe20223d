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

// Answers an empty string, or why these options and this URI can't be used:
// said once here, and not again by every test.
std::string TryToListen() {
  const Config& config = GlobalConfig();
  mig_host_services services = {};
  services.size = sizeof(services);
  mig_session_params params = {};
  params.size = sizeof(params);
  params.role = MIG_ROLE_DESTINATION;
  params.attempt = 1;
  mig_error error = {};
  error.size = sizeof(error);
  mig_context* context = nullptr;
  mig_session* session = nullptr;
  int32_t status = Ops()->context_create(&services, &context, &error);
  for (const auto& [name, value] : config.options) {
    if (status != MIG_OK) break;
    status = Ops()->option_set(context, name.c_str(), value.c_str(), &error);
  }
  if (status == MIG_OK) {
    status = Ops()->session_create(context, &params, &session, &error);
  }
  if (status == MIG_OK) {
    status = Ops()->listen(session, NextListenUri().c_str(), &error);
  }
  Ops()->session_destroy(session);
  Ops()->context_destroy(context);
  return status == MIG_OK ? "" : error.message;
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
  return TryToListen();
}

std::string NextListenUri() {
  static std::atomic<uint64_t> counter{0};
  std::string uri = GlobalConfig().listen_uri;
  ReplaceAll(uri, "{n}", std::to_string(++counter));
  ReplaceAll(uri, "{pid}", std::to_string(getpid()));
  return uri;
}

}  // namespace mig::conformance
