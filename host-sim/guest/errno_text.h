// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_ERRNO_TEXT_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_ERRNO_TEXT_H_

#include <string>
#include <system_error>

namespace mig::sim {

// The system's text for errno value `error`. Any thread, unlike strerror().
inline std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_ERRNO_TEXT_H_
