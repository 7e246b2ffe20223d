// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/profile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mig::fabric {
namespace {

// What is measured as a whole is split here: perftest's one-way latency has a
// post, a doorbell and a poll in it.
constexpr Figure kMlx5Figures[] = {
    {"bandwidth", "12254667305",
     "RoCE v2 at 100 Gb/s, MTU 4096: 82 bytes of preamble, Ethernet, IPv4, "
     "UDP, BTH, ICRC, FCS and gap a packet"},
    {"latency", "435ns",
     "ib_send_lat, RC, 32 bytes inline: 0.82 us one way (D. Potter's thesis, "
     "table of MTUs), less the thread's 385 ns"},
    {"fetch-cost", "450ns",
     "the same table: 1 KiB, too long to be inline, takes 0.7 us more, of "
     "which the bytes take 0.25"},
    {"doorbell-cost", "265ns",
     "one queue pair, one request a doorbell: 2.6 million a second, so 385 ns "
     "each, less posting and polling"},
    {"post-cost", "60ns", "estimate: a work request written to memory"},
    {"poll-cost", "60ns", "estimate: a completion read"},
    {"wake-cost", "8us",
     "estimate: from a completion to a thread that slept on its descriptor"},
    {"register-cost", "10us", "estimate: the system call and the key"},
    {"pin-page-cost", "343ns",
     "ibv_reg_mr takes about 90 ms a GiB of 4 KiB pages, serially"},
    {"fault-page-cost", "1907ns",
     "touching memory first takes about 0.5 s a GiB, in one thread"},
    {"register-threads", "4", "the plugin's default"},
};

constexpr Profile kProfiles[] = {
    {"100g-mlx5", "RoCE v2 at 100 Gb/s, an mlx5 device on both sides", "mlx5",
     100e9, kMlx5Figures},
};

}  // namespace

absl::StatusOr<const Profile*> FindProfile(absl::string_view name) {
  std::string names;
  for (const Profile& profile : kProfiles) {
    if (name == profile.name) return &profile;
    absl::StrAppend(&names, names.empty() ? "" : ", ", profile.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--profile '", name, "' is unknown: use ", names));
}

std::string ProfileText(const Profile& profile) {
  std::string text = absl::StrCat(profile.name, ": ", profile.about, "\n");
  for (const Figure& figure : profile.figures) {
    absl::StrAppendFormat(&text, "  %-17s %-12s %s\n", figure.option,
                          figure.value, figure.source);
  }
  return text;
}

std::string DeviceOption(const Profile& profile,
                         const std::vector<std::string>& changes) {
  std::string option = absl::StrCat("soft:", profile.model,
                                    ",landing=none,seed=1,fabric=experiment");
  for (const Figure& figure : profile.figures) {
    absl::StrAppend(&option, ",", figure.option, "=", figure.value);
  }
  for (const std::string& change : changes) {
    absl::StrAppend(&option, ",", change);
  }
  return option;
}

}  // namespace mig::fabric
