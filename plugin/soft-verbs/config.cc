// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/config.h"

#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/error.h"
#include "soft-verbs/text.h"

namespace mig::soft {
namespace {

struct NumberOption {
  const char* name;
  uint64_t Config::*field;
};
struct CostOption {
  const char* name;
  uint64_t Costs::*field;
};
struct LimitOption {
  const char* name;
  uint64_t Limits::*field;
};
struct FlagOption {
  const char* name;
  bool Config::*field;
};

constexpr NumberOption kNumbers[] = {
    {"seed", &Config::seed},
    {"devices", &Config::devices},
    {"max-queue-bytes", &Config::max_queue_bytes},
    {"memlock", &Config::memlock},
};
constexpr NumberOption kTimes[] = {
    {"cm-delay", &Config::cm_delay_ns},
    {"cm-timeout", &Config::cm_timeout_ns},
};
constexpr CostOption kCosts[] = {
    {"wr-delay", &Costs::wr_delay},
    {"wr-cost", &Costs::wr_cost},
    {"latency", &Costs::latency},
    {"fetch-cost", &Costs::fetch},
    {"doorbell-cost", &Costs::doorbell},
    {"post-cost", &Costs::post},
    {"poll-cost", &Costs::poll},
    {"wake-cost", &Costs::wake},
    {"register-cost", &Costs::registration},
    {"pin-page-cost", &Costs::pin_page},
    {"fault-page-cost", &Costs::fault_page},
};
constexpr CostOption kCostNumbers[] = {
    {"bandwidth", &Costs::bandwidth},
    {"register-threads", &Costs::registration_threads},
};
constexpr LimitOption kLimits[] = {
    {"max-msg-size", &Limits::max_msg_size},
    {"max-mr-size", &Limits::max_mr_size},
    {"max-mr", &Limits::max_mr},
    {"max-qp", &Limits::max_qp},
    {"max-qp-wr", &Limits::max_qp_wr},
    {"max-sge", &Limits::max_sge},
    {"max-cq", &Limits::max_cq},
    {"max-cqe", &Limits::max_cqe},
    {"max-inline", &Limits::max_inline},
    {"max-pd", &Limits::max_pd},
};
constexpr FlagOption kFlags[] = {
    {"spread", &Config::spread},
    {"hidden", &Config::hidden},
    {"other-processes", &Config::other_processes},
    {"rkey-zero", &Config::rkey_zero},
    {"create-ex", &Config::create_ex},
    {"odp", &Config::odp},
    {"populate", &Config::populate},
};

std::optional<uint64_t> ParseScaled(
    absl::string_view text,
    std::initializer_list<std::pair<const char*, uint64_t>> units) {
  uint64_t scale = 1;
  for (const auto& [suffix, factor] : units) {
    if (absl::ConsumeSuffix(&text, suffix)) {
      scale = factor;
      break;
    }
  }
  uint64_t number = 0;
  if (text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &number) || number > UINT64_MAX / scale) {
    return std::nullopt;
  }
  return number * scale;
}

std::optional<uint64_t> ParseSize(absl::string_view text) {
  return ParseScaled(text, {{"K", uint64_t{1} << 10},
                            {"M", uint64_t{1} << 20},
                            {"G", uint64_t{1} << 30}});
}

std::optional<uint64_t> ParseTime(absl::string_view text) {
  return ParseScaled(
      text, {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}});
}

absl::Status BadValue(absl::string_view name, absl::string_view value,
                      absl::string_view allowed) {
  return MakeError(MIG_E_OPTION,
                   absl::StrCat("soft device: ", name, "=", value,
                                " is not allowed; use ", allowed));
}

absl::Status SetFaults(absl::string_view value, Config* config) {
  std::string text(value);
  if (absl::ConsumePrefix(&value, "@")) {
    std::ifstream file{std::string(value)};
    std::ostringstream whole;
    whole << file.rdbuf();
    if (!file) {
      return BadValue("faults", absl::StrCat("@", value), "a readable file");
    }
    text = whole.str();
  }
  absl::StatusOr<std::vector<Fault>> faults = ParseFaults(text);
  if (!faults.ok()) return faults.status();
  config->faults = *std::move(faults);
  return absl::OkStatus();
}

absl::Status SetWord(absl::string_view name, absl::string_view value,
                     Config* config) {
  if (name == "landing") {
    if (value == "earliest") {
      config->landing = Landing::kEarliest;
    } else if (value == "latest") {
      config->landing = Landing::kLatest;
    } else if (value == "random") {
      config->landing = Landing::kRandom;
    } else if (value == "none") {
      config->landing = Landing::kNone;
    } else {
      return BadValue(name, value, "earliest, latest, random or none");
    }
    return absl::OkStatus();
  }
  if (name == "inline-grant") {
    if (value == "model") {
      config->inline_grant = InlineGrant::kModel;
    } else if (value == "none") {
      config->inline_grant = InlineGrant::kNone;
    } else if (value == "half") {
      config->inline_grant = InlineGrant::kHalf;
    } else if (value == "more") {
      config->inline_grant = InlineGrant::kMore;
    } else {
      return BadValue(name, value, "model, none, half or more");
    }
    return absl::OkStatus();
  }
  if (name == "inline-errno") {
    const std::optional<int> error = ErrnoOfName(value);
    if (!error.has_value()) return BadValue(name, value, "an errno's name");
    config->inline_errno = *error;
    return absl::OkStatus();
  }
  if (name == "fabric") {
    config->fabric = std::string(value);
    return absl::OkStatus();
  }
  if (name == "addresses") {
    config->addresses = absl::StrSplit(value, '+', absl::SkipEmpty());
    return absl::OkStatus();
  }
  if (name == "faults") return SetFaults(value, config);
  return MakeError(
      MIG_E_OPTION,
      absl::StrCat("soft device: '", name,
                   "' is unknown; see plugin/soft-verbs/README.md"));
}

absl::Status SetNumber(absl::string_view name, absl::string_view value,
                       uint64_t* field) {
  const std::optional<uint64_t> number = ParseSize(value);
  if (!number.has_value()) return BadValue(name, value, "a number (K, M, G)");
  *field = *number;
  return absl::OkStatus();
}

absl::Status SetTime(absl::string_view name, absl::string_view value,
                     uint64_t* field) {
  const std::optional<uint64_t> time = ParseTime(value);
  if (!time.has_value()) return BadValue(name, value, "a time (ns, us, ms, s)");
  *field = *time;
  return absl::OkStatus();
}

// The one of that name in a table of options; null if there is none.
template <typename Option, size_t kCount>
const Option* Find(const Option (&options)[kCount], absl::string_view name) {
  for (const Option& option : options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

absl::Status SetOption(absl::string_view name, absl::string_view value,
                       Config* config) {
  if (const auto* const number = Find(kNumbers, name)) {
    return SetNumber(name, value, &(config->*number->field));
  }
  if (const auto* const limit = Find(kLimits, name)) {
    return SetNumber(name, value, &(config->limits.*limit->field));
  }
  if (const auto* const number = Find(kCostNumbers, name)) {
    return SetNumber(name, value, &(config->costs.*number->field));
  }
  if (const auto* const cost = Find(kCosts, name)) {
    return SetTime(name, value, &(config->costs.*cost->field));
  }
  if (const auto* const time = Find(kTimes, name)) {
    return SetTime(name, value, &(config->*time->field));
  }
  if (const auto* const flag = Find(kFlags, name)) {
    if (value != "on" && value != "off") {
      return BadValue(name, value, "on or off");
    }
    config->*flag->field = value == "on";
    return absl::OkStatus();
  }
  return SetWord(name, value, config);
}

}  // namespace

absl::StatusOr<Config> ParseConfig(absl::string_view text) {
  std::vector<absl::string_view> words = absl::StrSplit(text, ',');
  Config config;
  const absl::string_view name = words[0].empty() ? "mlx5" : words[0];
  config.model = FindModel(name);
  if (config.model == nullptr) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("soft device: no model '", name,
                                  "'; use mlx5, mlx4, irdma, rxe or siw"));
  }
  config.limits = config.model->limits;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    MIG_RETURN_IF_ERROR(SetOption(option.first, option.second, &config));
  }
  if (config.limits.max_mr == 0 || config.limits.max_mr > (1u << 22)) {
    return BadValue("max-mr", absl::StrCat(config.limits.max_mr), "1 to 4M");
  }
  const uint64_t threads = config.costs.registration_threads;
  if (threads == 0 || threads > 1024) {
    return BadValue("register-threads", absl::StrCat(threads), "1 to 1024");
  }
  if (config.devices == 0 || config.devices > 64) {
    return BadValue("devices", absl::StrCat(config.devices), "1 to 64");
  }
  return config;
}

}  // namespace mig::soft
