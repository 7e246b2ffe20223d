// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_FABRIC_PROFILE_H_
#define MIGTRANSPORT_HOST_SIM_FABRIC_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mig::fabric {

// One cost of a network, as an option of the soft device, and where it is from.
struct Figure {
  const char* option;
  const char* value;
  const char* source;
};

// A network of the kind that guests migrate over. Constant.
struct Profile {
  const char* name;
  const char* about;
  const char* model;  // of the soft device
  double line_bits;   // a second, of which no protocol has all
  absl::Span<const Figure> figures;
};

// Errors: InvalidArgument, with the names that there are.
absl::StatusOr<const Profile*> FindProfile(absl::string_view name);
// A line a figure: option, value, source.
std::string ProfileText(const Profile& profile);
// The value of the plugin's option `device`: the profile with single figures
// changed by `changes` ("latency=2us"), which the plugin checks. Guest memory
// is never touched.
std::string DeviceOption(const Profile& profile,
                         const std::vector<std::string>& changes);

}  // namespace mig::fabric

#endif  // MIGTRANSPORT_HOST_SIM_FABRIC_PROFILE_H_
