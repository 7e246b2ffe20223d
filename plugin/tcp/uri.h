// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_TCP_URI_H_
#define PLUGIN_TCP_URI_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mig::tcp {

struct Uri {
  enum class Kind { kTcp, kUnix, kFd };
  Kind kind = Kind::kTcp;
  std::string host;  // tcp: without brackets, with %scope; may be empty
  std::string port;  // tcp: decimal, 0..65535
  std::string path;  // unix: absolute or relative path
  int fd = -1;       // fd
  std::string text;  // as given, for messages
};

// Parses tcp://HOST:PORT, tcp://[V6%SCOPE]:PORT, unix:PATH and fd:N (RFC 3986
// brackets; the scope id of RFC 4007 is taken as it is, or as %25 of RFC 6874).
// Errors: URI, saying what is wrong and the form that is right.
absl::StatusOr<Uri> ParseUri(absl::string_view text);

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_URI_H_
