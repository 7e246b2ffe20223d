// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "report/plugin_json.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mig::sim {
namespace {

// A plugin's string that may be missing.
std::string Text(const char* text) { return text == nullptr ? "" : text; }

std::string FixedText(const char* text, size_t size) {
  return std::string(text, strnlen(text, size));
}

const char* TypeName(uint32_t type) {
  switch (type) {
    case MIG_OPTION_BOOL:
      return "bool";
    case MIG_OPTION_INTEGER:
      return "integer";
    case MIG_OPTION_SIZE:
      return "size";
    case MIG_OPTION_DURATION:
      return "duration";
    case MIG_OPTION_ENUM:
      return "enum";
    case MIG_OPTION_STRING:
      return "string";
    default:
      return "unknown";
  }
}

const char* KindName(uint32_t kind) {
  switch (kind) {
    case MIG_COUNTER_TOTAL:
      return "total";
    case MIG_COUNTER_GAUGE:
      return "gauge";
    case MIG_COUNTER_PEAK:
      return "peak";
    default:
      return "unknown";
  }
}

Json CountersJson(const Plugin& plugin) {
  Json counters = Json::array();
  for (const mig_counter& each : plugin.counters()) {
    Json counter;
    counter["name"] = Text(each.name);
    counter["unit"] = Text(each.unit);
    counter["kind"] = KindName(each.kind);
    counter["help"] = Text(each.help);
    counters.push_back(counter);
  }
  return counters;
}

void AddDevices(const PluginContext& context, Json* json) {
  (*json)["devices"] = Json::array();
  absl::StatusOr<std::vector<mig_device>> devices = context.Probe();
  if (!devices.ok()) {
    (*json)["devices_error"] = std::string(devices.status().message());
    return;
  }
  for (const mig_device& each : *devices) {
    Json device;
    device["name"] = FixedText(each.name, sizeof each.name);
    device["address"] = FixedText(each.address, sizeof each.address);
    device["port"] = each.port;
    device["speed_bps"] = each.speed_bps;
    device["usable"] = (each.flags & MIG_DEVICE_USABLE) != 0;
    device["detail"] = FixedText(each.detail, sizeof each.detail);
    (*json)["devices"].push_back(device);
  }
}

std::string String(const Json& json, const char* key) {
  return json.at(key).get<std::string>();
}

std::string DeviceText(const Json& device) {
  std::string name = String(device, "name");
  if (device.at("port") != 0) {
    absl::StrAppend(&name, " port ", device.at("port").get<uint32_t>());
  }
  std::string address = String(device, "address");
  const double gigabits = device.at("speed_bps").get<double>() / 1e9;
  // Once for a port: what has an address is a way to one that was named.
  if (address.empty() && device.at("usable") && gigabits > 0) {
    address = absl::StrFormat("%.4g Gb/s", gigabits);
  }
  return absl::StrFormat("  %-22s %s%s%s%s\n", name,
                         device.at("usable") ? "" : "NOT USABLE: ", address,
                         address.empty() ? "" : ", ", String(device, "detail"));
}

}  // namespace

Json OptionsJson(const PluginContext& context) {
  Json options = Json::array();
  for (const mig_option& each : context.plugin().options()) {
    Json option;
    option["name"] = Text(each.name);
    option["type"] = TypeName(each.type);
    option["default"] = Text(each.default_value);
    option["range"] = Text(each.range);
    option["secret"] = (each.flags & MIG_OPTION_SECRET) != 0;
    option["help"] = Text(each.help);
    absl::StatusOr<std::string> value = context.GetOption(Text(each.name));
    option["value"] = value.ok() ? *value : "";
    options.push_back(option);
  }
  return options;
}

Json PluginJson(const PluginContext& context) {
  const Plugin& plugin = context.plugin();
  const mig_transport_ops& ops = plugin.ops();
  Json json;
  json["name"] = Text(ops.name);
  json["version"] = Text(ops.version);
  json["description"] = Text(ops.description);
  json["path"] = plugin.path();
  json["abi_version"] = ops.abi_version;
  json["ops_size"] = plugin.ops_size();
  json["ops_size_of_host"] = sizeof(mig_transport_ops);
  json["wire_version_min"] = ops.wire_version_min;
  json["wire_version_max"] = ops.wire_version_max;
  json["uri_schemes"] = Text(ops.uri_schemes);
  json["licenses"] = Text(ops.licenses);
  json["options"] = OptionsJson(context);
  json["counters"] = CountersJson(plugin);
  AddDevices(context, &json);
  return json;
}

std::string OptionsText(const Json& options) {
  std::string text;
  for (const Json& each : options) {
    absl::StrAppendFormat(
        &text, "  %-22s %-9s now %s, range %s%s\n  %22s %s\n",
        String(each, "name"), String(each, "type"),
        String(each, "value").empty() ? "''" : String(each, "value"),
        String(each, "range"),
        each.at("value") == each.at("default")
            ? " (default)"
            : absl::StrCat(" (default '", String(each, "default"), "')"),
        "", String(each, "help"));
  }
  return text;
}

std::string PluginText(const Json& plugin) {
  std::string text =
      absl::StrCat(String(plugin, "name"), " ", String(plugin, "version"), ": ",
                   String(plugin, "description"), "\n");
  absl::StrAppend(&text, "  path      ", String(plugin, "path"),
                  "\n  ABI       ", plugin.at("abi_version").dump(),
                  ", table of ", plugin.at("ops_size").dump(),
                  " bytes (this host knows ",
                  plugin.at("ops_size_of_host").dump(), ")\n  wire      ",
                  plugin.at("wire_version_min").dump(), " to ",
                  plugin.at("wire_version_max").dump(), "\n  URIs      ",
                  String(plugin, "uri_schemes"), "\n  licences  ",
                  String(plugin, "licenses"), "\n");
  if (!plugin.at("options").empty()) {
    absl::StrAppend(&text, "options:\n", OptionsText(plugin.at("options")));
  }
  if (!plugin.at("counters").empty()) absl::StrAppend(&text, "counters:\n");
  for (const Json& each : plugin.at("counters")) {
    absl::StrAppendFormat(&text, "  %-22s %-5s %-6s %s\n", String(each, "name"),
                          String(each, "unit"), String(each, "kind"),
                          String(each, "help"));
  }
  absl::StrAppend(&text, "devices:\n");
  for (const Json& each : plugin.at("devices")) {
    absl::StrAppend(&text, DeviceText(each));
  }
  if (plugin.contains("devices_error")) {
    absl::StrAppend(&text, "  ", String(plugin, "devices_error"), "\n");
  } else if (plugin.at("devices").empty()) {
    absl::StrAppend(&text, "  none of its own\n");
  }
  return text;
}

}  // namespace mig::sim
