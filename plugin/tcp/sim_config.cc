// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/sim_config.h"

#include <initializer_list>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/error.h"

namespace mig::tcp {
namespace {

constexpr uint64_t kMostLatencyNs = 3'600'000'000'000;
constexpr uint64_t kMostBuffer = uint64_t{1} << 30;
constexpr uint64_t kMostBandwidth = uint64_t{1} << 40;

using Units = std::initializer_list<std::pair<const char*, uint64_t>>;

// A number, at most `most`. With `strict` it has one of the units, or is 0.
std::optional<uint64_t> ParseScaled(absl::string_view text, Units units,
                                    bool strict, uint64_t most) {
  uint64_t scale = strict ? 0 : 1;
  for (const auto& [suffix, factor] : units) {
    if (absl::ConsumeSuffix(&text, suffix)) {
      scale = factor;
      break;
    }
  }
  uint64_t number = 0;
  if (text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &number) || (scale == 0 && number != 0) ||
      (scale != 0 && number > most / scale)) {
    return std::nullopt;
  }
  return number * scale;
}

std::optional<uint64_t> ParseBytes(absl::string_view text, uint64_t most) {
  return ParseScaled(text,
                     {{"K", uint64_t{1} << 10},
                      {"M", uint64_t{1} << 20},
                      {"G", uint64_t{1} << 30}},
                     /*strict=*/false, most);
}

absl::Status BadValue(absl::string_view key, absl::string_view value,
                      absl::string_view allowed) {
  return MakeError(MIG_E_OPTION,
                   absl::StrCat("simulated network: ", key, "=", value,
                                " is not allowed: use ", allowed));
}

absl::Status Set(absl::string_view key, absl::string_view value,
                 SimConfig* config) {
  if (key == "seed") {
    config->seed = ParseScaled(value, {}, /*strict=*/false, UINT64_MAX);
    if (!config->seed) return BadValue(key, value, "a number");
  } else if (key == "latency") {
    const auto time = ParseScaled(
        value,
        {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}},
        /*strict=*/true, kMostLatencyNs);
    if (!time) return BadValue(key, value, "a time to 3600s (ns, us, ms, s)");
    config->latency_ns = *time;
  } else if (key == "bandwidth") {
    const auto bytes = ParseBytes(value, kMostBandwidth);
    if (!bytes)
      return BadValue(key, value, "bytes a second to 1024G (K, M, G)");
    config->bandwidth = *bytes;
  } else if (key == "buffer") {
    const auto bytes = ParseBytes(value, kMostBuffer);
    if (!bytes || *bytes == 0) {
      return BadValue(key, value, "1 byte to 1G (K, M, G)");
    }
    config->buffer = *bytes;
  } else if (key == "unkind") {
    if (value != "on" && value != "off") {
      return BadValue(key, value, "on or off");
    }
    config->unkind = value == "on";
  } else if (key == "faults") {
    auto faults = ParseSimFaults(value);
    if (!faults.ok()) return faults.status();
    config->faults = *std::move(faults);
  } else {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("simulated network: there is no '", key,
                                  "': use seed, latency, bandwidth, buffer, "
                                  "unkind or faults"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimConfig> ParseSimConfig(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ',');
  SimConfig config;
  config.name = std::string(words[0]);
  if (config.name.empty() || config.name.find('=') != std::string::npos) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("simulated network: '", words[0],
                                  "' is no name: use sim:NAME[,KEY=VALUE]..., "
                                  "with one name for all who meet"));
  }
  std::set<absl::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    MIG_RETURN_IF_ERROR(Set(word.first, word.second, &config));
    if (!seen.insert(word.first).second) {
      return MakeError(MIG_E_OPTION,
                       absl::StrCat("simulated network: ", word.first,
                                    " is given twice: give it once"));
    }
  }
  return config;
}

}  // namespace mig::tcp
